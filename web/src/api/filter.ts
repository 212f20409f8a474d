// The server's answers about filters: the meaning of an expression, how many events match, and the fields by which events name their CPU and thread.

import { FIELD_CANDIDATES, type FieldName, type FieldNames } from "../model/filter.ts";
import type { Shape } from "../model/json.ts";
import type { Client } from "./client.ts";

/** A problem with a part of an expression. */
export interface Problem {
  readonly message: string;
  /** The right spelling, where the server can guess it. */
  readonly help: string | null;
  /** The part, in units of UTF-16, which is how the page counts. */
  readonly begin: number;
  readonly end: number;
}

/** The meaning of an expression for the traces. */
export interface Checked {
  /** It can be asked. */
  readonly isValid: boolean;
  /** Errors, and warnings about an expression that can be asked all the same. */
  readonly problems: readonly Problem[];
  /** Classes of events some of which may be meant, those of which none can be, and those that have fields of other types. */
  readonly applies: number;
  readonly never: number;
  readonly untyped: number;
}

export async function checkExpression(client: Client, expression: string, signal?: AbortSignal): Promise<Checked> {
  const answer = await client.post("filter/check", JSON.stringify({ filter: expression }), signal);
  return {
    isValid: answer.get("valid").flag(),
    problems: answer.get("problems").list().map(readProblem),
    applies: answer.get("applies").number(),
    never: answer.get("never").number(),
    untyped: answer.get("untyped").number(),
  };
}

function readProblem(shape: Shape): Problem {
  const help = shape.get("help");
  return {
    message: shape.get("message").text(),
    help: help.given ? help.text() : null,
    begin: shape.get("begin_utf16").number(),
    end: shape.get("end_utf16").number(),
  };
}

/** How many events there are, or about how many. */
export interface Count {
  readonly events: bigint;
  readonly isExact: boolean;
}

/** `query` is the result of `queryOf`, and from when to when. */
export async function countEvents(client: Client, query: string, signal?: AbortSignal): Promise<Count> {
  const answer = await client.json(query === "" ? "events/count" : `events/count?${query}`, signal);
  return { events: answer.get("events").whole(), isExact: answer.get("exact").flag() };
}

/** Which fields the traces' events have. */
export async function askNames(client: Client, signal?: AbortSignal): Promise<FieldNames> {
  const kinds = Object.keys(FIELD_CANDIDATES) as (keyof FieldNames)[];
  const found = await Promise.all(kinds.map((kind) => thoseThere(client, FIELD_CANDIDATES[kind], signal)));
  const [cpu = [], thread = [], process = [], processName = []] = found;
  return { cpu, thread, process, processName };
}

async function thoseThere(client: Client, candidates: readonly string[], signal?: AbortSignal): Promise<FieldName[]> {
  const checks = await Promise.all(candidates.map((name) => checkExpression(client, `has(${name})`, signal)));
  return candidates.flatMap((name, index) => {
    const { applies = 0, never = 0, untyped = 0 } = checks[index] ?? {};
    return applies === 0 ? [] : [{ name, isEverywhere: never === 0 && untyped === 0 }];
  });
}

/** Whether the server can tell of tracks of events how many of some events there are: its own description says so. */
export async function knowsFilteredTiles(client: Client, signal?: AbortSignal): Promise<boolean> {
  const path = (await client.json("openapi.json", signal)).get("paths").get("/api/v1/tiles");
  const names = path.get("get").get("parameters").list().map((parameter) => parameter.get("name"));
  return names.some((name) => name.given && name.text() === "filter") && names.some((name) => name.given && name.text() === "event");
}
