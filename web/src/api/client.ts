// Sends requests to the server. Every failure becomes an `ApiFault` with a kind, so that the page can give advice.

import type { Fault, FaultKind } from "../model/fault.ts";
import { Shape, ShapeFault, parseJson } from "../model/json.ts";
import { plain } from "../model/plain.ts";

/** Why there is no answer. */
export class ApiFault extends Error implements Fault {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string) {
    // A message names things of the traces.
    super(message.split("\n").map(plain).join("\n"));
    this.kind = kind;
  }
}

/** Bytes with the tag of their version, or that those with the given tag are still right. */
export type Bytes = { readonly bytes: ArrayBuffer; readonly etag: string | null } | "unchanged";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export class Client {
  private readonly base: string;
  private readonly token: string | null;
  private readonly fetch: Fetch;
  private readonly told: Map<string, string>;

  /** `base` is where the API begins, without a slash at its end. The client does not send the first request for a path in `told`. */
  constructor(base: string, token: string | null, fetch: Fetch, told: ReadonlyMap<string, string> = new Map()) {
    this.base = base;
    this.token = token;
    this.fetch = fetch;
    this.told = new Map(told);
  }

  /** The server's answer, as JSON. */
  async json(path: string, signal?: AbortSignal): Promise<Shape> {
    const told = this.told.get(path);
    this.told.delete(path);
    const text = told === undefined ? await this.text(path, signal) : told;
    return guarded(async () => new Shape(parseJson(text), path.split("?")[0] ?? path), signal);
  }

  /** The server's answer, as text. */
  async text(path: string, signal?: AbortSignal): Promise<string> {
    const response = await this.ask(path, {}, signal);
    return guarded(() => response.text(), signal);
  }

  /** Has the server keep a body, which is JSON. */
  async put(path: string, body: string): Promise<void> {
    await this.ask(path, { "Content-Type": "application/json" }, undefined, { method: "PUT", body });
  }

  /** The server's answer to a body, which is JSON. */
  async post(path: string, body: string, signal?: AbortSignal): Promise<Shape> {
    const response = await this.ask(path, { "Content-Type": "application/json" }, signal, { method: "POST", body });
    return guarded(async () => new Shape(parseJson(await response.text()), path), signal);
  }

  /** Has the server keep bytes; says meanwhile how many it has. */
  async send(path: string, bytes: Blob, told: (bytes: number) => void, signal: AbortSignal): Promise<void> {
    // `fetch` does not report the progress of a request's body.
    const request = new XMLHttpRequest();
    request.open("PUT", `${this.base}/${path}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    if (this.token !== null) {
      request.setRequestHeader("Authorization", `Bearer ${this.token}`);
    }
    request.upload.onprogress = (event) => told(event.loaded);
    const abort = (): void => request.abort();
    signal.addEventListener("abort", abort);
    await new Promise<void>((done) => {
      request.onloadend = () => done();
      request.send(bytes);
    });
    signal.removeEventListener("abort", abort);
    if (signal.aborted) {
      throw new ApiFault("aborted", "it is not needed any more");
    }
    if (request.status === 0) {
      throw new ApiFault("unreachable", "the server does not answer");
    }
    if (request.status >= 300) {
      throw faultFor(request.status, request.responseText);
    }
  }

  /** Has the server forget something; also while the page is being closed. */
  async remove(path: string): Promise<void> {
    await this.ask(path, {}, undefined, { method: "DELETE", keepalive: true });
  }

  /** The server's answer, as bytes, unless its entity tag is `etag`. */
  async bytes(path: string, etag: string | null, signal?: AbortSignal): Promise<Bytes> {
    const response = await this.ask(path, etag === null ? {} : { "If-None-Match": etag }, signal);
    if (response.status === 304) {
      return "unchanged";
    }
    return guarded(async () => ({ bytes: await response.arrayBuffer(), etag: response.headers.get("ETag") }), signal);
  }

  /** The server's answer, as bytes, with the headers that describe them. */
  async whole(path: string, signal?: AbortSignal): Promise<{ readonly bytes: ArrayBuffer; readonly headers: Headers }> {
    const response = await this.ask(path, {}, signal);
    return guarded(async () => ({ bytes: await response.arrayBuffer(), headers: response.headers }), signal);
  }

  /** An answer that goes on; the caller reads its body. */
  async stream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await this.ask(path, { Accept: "text/event-stream" }, signal);
    if (response.body === null) {
      throw new ApiFault("nonsense", `${path} has no body`);
    }
    return response.body;
  }

  private async ask(path: string, headers: Record<string, string>, signal?: AbortSignal, more: RequestInit = {}): Promise<Response> {
    const all = this.token === null ? headers : { ...headers, Authorization: `Bearer ${this.token}` };
    // The page keeps its tiles itself, with their tags; the browser would keep them a second time.
    const init: RequestInit = { ...more, headers: all, cache: "no-store", ...(signal === undefined ? {} : { signal }) };
    const response = await guarded(() => this.fetch(`${this.base}/${path}`, init), signal);
    if (!response.ok && response.status !== 304) {
      throw await faultOf(response);
    }
    return response;
  }
}

/** Runs work that may fail because of the network, or of the answer that came over it. */
async function guarded<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (signal?.aborted === true) {
      throw new ApiFault("aborted", "it is not needed any more");
    }
    if (error instanceof SyntaxError) {
      throw new ApiFault("nonsense", `the answer is no JSON: ${error.message}`);
    }
    throw new ApiFault("unreachable", "the server does not answer");
  }
}

async function faultOf(response: Response): Promise<ApiFault> {
  return faultFor(response.status, await response.text().catch(() => ""));
}

function faultFor(status: number, text: string): ApiFault {
  return new ApiFault(kindOf(status), messageOf(text) ?? `the server answered with status ${status}`);
}

function kindOf(status: number): FaultKind {
  if (status === 401) {
    return "token";
  }
  if (status === 409) {
    return "traces";
  }
  if (status === 404) {
    return "absent";
  }
  if (status === 429 || status === 503) {
    return "busy";
  }
  return status >= 500 ? "server" : "refused";
}

/** The message of a server error: `{"error": {"message": ...}}`. */
function messageOf(text: string): string | null {
  try {
    return new Shape(parseJson(text), "answer").get("error").get("message").text();
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ShapeFault) {
      return null;
    }
    throw error;
  }
}
