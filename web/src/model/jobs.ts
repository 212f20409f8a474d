// Questions to analyses, and how far the server is with them.

import { nanos } from "../units/time.ts";
import { duration } from "./clock.ts";
import type { Shape } from "./json.ts";
import { readColumns, type Answer, type Column } from "./tables.ts";

/** The values of an option; whole numbers of any size. Lists are of texts or numbers. */
export type Option = string | number | bigint | boolean | readonly (string | number)[] | { readonly [name: string]: Option } | undefined;
export type Options = { readonly [name: string]: Option };

/** One analysis, and its options, which docs/http.md lists. */
export interface Question {
  readonly kind: string;
  readonly options: Options;
}

/** An analysis that the server knows. */
export interface Analysis {
  readonly kind: string;
  readonly title: string;
  readonly description: string;
  readonly tables: ReadonlyArray<{ readonly name: string; readonly title: string; readonly columns: readonly Column[] }>;
  /** The values that `by` may have. */
  readonly by: readonly string[];
  /** It can be about some threads only. */
  readonly ofThreads: boolean;
  /** It can be about some events only: it does not need every change of threads. */
  readonly ofEvents: boolean;
}

/** How far a job is. */
export interface Job {
  readonly id: string;
  readonly state: "waiting" | "running" | "done" | "failed";
  readonly done: number;
  readonly total: number;
  readonly etaMs: number | null;
  readonly failure: Failure | null;
}

/** The reason for a missing answer. `code` is the server's name for it. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** The state of a question that was asked. */
export type Asked =
  | { readonly state: "asking" | "waiting" }
  | { readonly state: "running"; readonly done: number; readonly total: number; readonly etaMs: number | null }
  | { readonly state: "done"; readonly answer: Answer }
  | { readonly state: "failed"; readonly failure: Failure }
  /** The user did not want to wait. */
  | { readonly state: "cancelled" };

/** The body of the question; also its key among others. Members stand in the order of their names; options that are not given are left out. */
export function bodyOf({ kind, options }: Question): string {
  return `{"kind":${JSON.stringify(kind)},"options":${optionText(options)}}`;
}

function optionText(value: Option): string {
  if (typeof value === "bigint") {
    return String(value);
  }
  if (typeof value !== "object") {
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    return JSON.stringify(value);
  }
  const members = Object.entries(value as Options).filter(([, one]) => one !== undefined);
  const texts = members.sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, one]) => `${JSON.stringify(name)}:${optionText(one)}`);
  return `{${texts.join(",")}}`;
}

/** Which analyses there are. Throws a `ShapeFault`. */
export function readAnalyses(shape: Shape): Analysis[] {
  return shape.get("analyses").list().map((one) => ({
    kind: one.get("kind").text(),
    title: one.get("title").text(),
    description: one.get("description").text(),
    tables: one.get("tables").list().map((table) => ({ name: table.get("class").text(), title: table.get("title").text(), columns: readColumns(table.get("columns")) })),
    by: one.get("understands").get("by").list().map((word) => word.text()),
    ofThreads: one.get("understands").get("threads").given && one.get("understands").get("threads").flag(),
    ofEvents: !one.get("understands").get("events").given || one.get("understands").get("events").flag(),
  }));
}

const STATES: ReadonlySet<string> = new Set(["waiting", "running", "done", "failed"]);

/** How far a job is. Throws a `ShapeFault`. */
export function readJob(shape: Shape): Job {
  const state = shape.get("state").text();
  const failure = shape.get("failure");
  return {
    id: shape.get("id").text(),
    // A server that is newer than the page may know more states, in which there is no answer yet.
    state: STATES.has(state) ? (state as Job["state"]) : "waiting",
    done: shape.get("done").number(),
    total: shape.get("total").number(),
    etaMs: shape.get("eta_ms").given ? shape.get("eta_ms").number() : null,
    failure: failure.given ? { code: failure.get("code").text(), message: failure.get("message").text() } : null,
  };
}

/** How far it is, in words. */
export function progressText(asked: Asked): string {
  switch (asked.state) {
    case "asking":
    case "waiting":
      return "waits for its turn";
    case "running": {
      const percent = asked.total === 0 ? 0 : Math.floor((100 * asked.done) / asked.total);
      const rest = asked.etaMs === null || asked.etaMs < 1 ? "" : `, ${duration(nanos(Math.round(asked.etaMs) * 1_000_000), 2)} left`;
      return `${percent} % read${rest}`;
    }
    default:
      return "";
  }
}

/** The advice for a failure. */
export function adviceFor(code: string): string {
  switch (code) {
    case "traces":
      return "Choose another analysis, or map your events to roles in a file: `kymo view --roles FILE`.";
    case "large":
      return "Ask for fewer rows, or for a shorter time.";
    case "filter":
    case "parameter":
    case "question":
    case "refused":
      return "Change the request.";
    case "busy":
      return "Cancel something else, then ask again.";
    case "unreachable":
      return "Is `kymo view` still running? Then ask again.";
    case "token":
      return "Open the URL that `kymo view` has printed.";
    case "forgotten":
      return "Ask again.";
    default:
      return "Try again; the terminal output of `kymo view` may say more.";
  }
}
