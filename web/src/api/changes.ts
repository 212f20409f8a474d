// The server's messages about changes: server-sent events, read with `fetch`, because an `EventSource` can send the token only in the URL.

import { passes } from "../model/fault.ts";
import { ApiFault, type Client } from "./client.ts";

/** One event: its name, and its data as text. */
export interface Change {
  readonly name: string;
  readonly data: string;
}

/** Waits before it is tried again: a quarter of a second, then twice as long each time, up to ten. */
export function pauseMs(failures: number): number {
  return Math.min(10_000, 250 * 2 ** Math.max(0, failures - 1));
}

/** Splits a stream of text into events. Text is given as it comes; the parser keeps an incomplete rest. */
export class ChangeParser {
  private rest = "";
  private name = "message";
  private data: string[] = [];

  take(text: string): Change[] {
    const lines = (this.rest + text).split(/\r\n|\r(?!$)|\n/);
    this.rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.line(line) ?? []);
  }

  private line(line: string): Change | null {
    if (line === "") {
      const change = { name: this.name, data: this.data.join("\n") };
      const any = this.data.length > 0;
      this.name = "message";
      this.data = [];
      return any ? change : null;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === "event") {
      this.name = value ?? "";
    } else if (field === "data") {
      this.data.push(value ?? "");
    }
    return null;
  }
}

/** Receives the changes. */
export interface Listener {
  change(change: Change): void;
  /** The server is heard again. */
  connected(): void;
  /** It is not, and it is tried again. */
  lost(fault: ApiFault): void;
}

/** Listens until the signal ends it, or the server refuses to tell anything. */
export async function listen(client: Client, listener: Listener, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const stream = await client.stream("changes", signal);
      failures = 0;
      listener.connected();
      await drain(stream, listener);
      // The server has ended it: it is asked again, but not at once.
      await pause(pauseMs(1), signal);
    } catch (error) {
      const fault = error instanceof ApiFault ? error : new ApiFault("unreachable", "the server does not answer");
      if (signal.aborted) {
        return;
      }
      listener.lost(fault);
      if (!passes(fault.kind)) {
        return;
      }
      failures++;
      await pause(pauseMs(failures), signal);
    }
  }
}

async function drain(stream: ReadableStream<Uint8Array>, listener: Listener): Promise<void> {
  const [reader, parser, decoder] = [stream.getReader(), new ChangeParser(), new TextDecoder()];
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    for (const change of parser.take(decoder.decode(part.value, { stream: true }))) {
      listener.change(change);
    }
  }
}

/** Some time, or less if the signal ends it, which is not listened to any longer than that. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : milliseconds);
    signal.addEventListener("abort", end);
  });
}
