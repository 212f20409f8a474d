// The choices before traces are open, as the server says them, and files that the user wants to send it.

import { SECOND, nanos, type Nanos } from "../units/time.ts";
import type { Shape } from "./json.ts";

/** Traces that were opened together. */
export interface RecentTraces {
  readonly paths: readonly string[];
  readonly opened: Nanos;
  /** Whether they are where they were. */
  readonly there: boolean;
}

/** One way to record a trace: the command, and its effect. */
export interface RecordHint {
  readonly command: string;
  readonly what: string;
}

export interface StartInfo {
  /** `waiting`: traces were named that a recorder has begun, and no event is there yet. */
  readonly state: "choosing" | "opening" | "waiting" | "open";
  /** The reason for waiting, in a sentence. */
  readonly waiting: string | null;
  readonly recent: readonly RecentTraces[];
  /** Why nothing is known of recent traces, if something is wrong. */
  readonly problem: string | null;
  readonly record: readonly RecordHint[];
  /** There is a sample trace for users without one. */
  readonly sample: boolean;
  /** Bytes of all files together that may be sent; 0: none may. */
  readonly uploadBytesMax: number;
  /** Why the latest choice could not be opened. */
  readonly failure: string | null;
}

const STATES = ["choosing", "opening", "waiting", "open"] as const;

/** The server's choices. Throws a `ShapeFault`. */
export function readStart(shape: Shape): StartInfo {
  const text = (name: string): string | null => (shape.get(name).given ? shape.get(name).text() : null);
  const state = shape.get("state").text();
  return {
    state: STATES.find((known) => known === state) ?? "open",
    waiting: text("waiting"),
    recent: shape.get("recent").list().map(readRecent),
    problem: text("problem"),
    record: shape.get("record").list().map((hint) => ({ command: hint.get("command").text(), what: hint.get("what").text() })),
    sample: shape.get("sample").flag(),
    uploadBytesMax: shape.get("upload_bytes_max").number(),
    failure: text("failure"),
  };
}

function readRecent(shape: Shape): RecentTraces {
  const paths = shape.get("paths").list().map((path) => path.text());
  return { paths, opened: nanos(shape.get("opened_ns").whole()), there: shape.get("there").flag() };
}

/** The title of traces: the last part of each path. */
export function titleOf(paths: readonly string[]): string {
  return paths.map((path) => path.replace(/[/\\]+$/, "").split(/[/\\]/).at(-1) || path).join(", ");
}

const UNITS: ReadonlyArray<readonly [bigint, string]> = [
  [86_400n, "day"],
  [3_600n, "hour"],
  [60n, "minute"],
];

/** How long ago something was, as people say it. */
export function agoText(then: Nanos, now: Nanos): string {
  const seconds = (now - then) / SECOND;
  const found = UNITS.find(([unit]) => seconds >= unit);
  if (found === undefined) {
    return "just now";
  }
  const count = seconds / found[0];
  return `${count} ${found[1]}${count === 1n ? "" : "s"} ago`;
}

/** Bytes as people say them. */
export function bytesText(bytes: number): string {
  const names = ["bytes", "KiB", "MiB", "GiB"];
  const power = Math.min(names.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  const count = bytes / 1024 ** power;
  return `${power === 0 || count >= 100 ? Math.round(count) : Number(count.toFixed(1))} ${names[power]}`;
}

/** A file, and where it is among those that were dropped together. */
export interface Dropped<F> {
  /** Names between `/`. */
  readonly path: string;
  readonly size: number;
  readonly file: F;
}

/** Files as they are sent. The files of a trace that were dropped without their folder get one, as traces are called by their folders. */
export function arranged<F>(files: readonly Dropped<F>[]): readonly Dropped<F>[] {
  const isLoose = (file: Dropped<F>): boolean => !file.path.includes("/");
  const isTrace = files.some((file) => file.path === "metadata");
  return files.map((file) => (isTrace && isLoose(file) ? { ...file, path: `dropped/${file.path}` } : file));
}

/** The fault of files before any is sent, in one sentence with the remedy; `null`: there is none. */
export function refusalOf(files: ReadonlyArray<{ readonly size: number }>, bytesMax: number): string | null {
  if (files.length === 0) {
    return "The drop contains no file: drop the folder of a trace, its files, or an archive of it.";
  }
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  return bytes <= bytesMax ? null : `These files have ${bytesText(bytes)}, and ${bytesText(bytesMax)} are the most that can be sent: type the path of the trace instead.`;
}
