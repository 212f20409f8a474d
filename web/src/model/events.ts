// A list of events as the server hands it out: which events, places between rows, pages, and which columns a list has.
//
// A place is a time and how many rows of that time are before it. So there is one between any two rows, also where many have the same
// time, and no row needs a number: the number of rows before it is unknown in a trace of 10^9.

import { nanos, type Nanos } from "../units/time.ts";
import { timesOf, type Column, type Rows } from "./arrow.ts";

/** Which events. */
export interface EventQuestion {
  /** An expression; `null`: all. */
  readonly filter: string | null;
  /** Names, that may have `*` and `?`; none: all. */
  readonly names: readonly string[];
  /** Only events that happened while their CPU ran one of these threads: numbers and ranges of them, `7,100-2150`. */
  readonly threads?: string;
}

export const ALL_EVENTS: EventQuestion = { filter: null, names: [] };

export interface Place {
  readonly time: Nanos;
  /** Rows of that time before it. */
  readonly rank: number;
}

/** Before everything, and behind everything. */
export const FIRST_PLACE: Place = { time: nanos(-(2n ** 63n)), rank: 0 };
export const LAST_PLACE: Place = { time: nanos(2n ** 63n - 1n), rank: 0 };

export function placeText({ time, rank }: Place): string {
  return rank === 0 ? `${time}` : `${time}.${rank}`;
}

/** The place that the server sends; `null` if that is none. */
export function readPlace(text: string | null): Place | null {
  const [, time, rank] = /^(-?\d{1,19})(?:\.(\d{1,15}))?$/.exec(text ?? "") ?? [];
  return time === undefined ? null : { time: nanos(BigInt(time)), rank: Number(rank ?? 0) };
}

/** Rows behind a place, or before one. */
export type Direction = "from" | "before";

export interface EventPage {
  readonly rows: Rows;
  readonly times: BigInt64Array;
  readonly before: Place;
  readonly after: Place;
  /** There are no more in the direction that was asked for. */
  readonly isEnd: boolean;
}

export function pageOf(rows: Rows, before: Place, after: Place, isEnd: boolean): EventPage {
  return { rows, times: timesOf(rows), before, after, isEnd };
}

/** The question with another condition. */
export function narrowed(question: EventQuestion, condition: string): EventQuestion {
  return { ...question, filter: question.filter === null ? condition : `(${question.filter}) && (${condition})` };
}

/** As the server is asked, without a `?`. */
export function questionText({ filter, names, threads }: EventQuestion): string {
  const parts = new URLSearchParams(names.map((name) => ["event", name]));
  if (filter !== null) {
    parts.set("filter", filter);
  }
  if (threads !== undefined) {
    parts.set("threads", threads);
  }
  return parts.toString();
}

/** Names as the user types them: between spaces or commas. */
export function readNames(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ""))];
}

/** Whether the events have one name, so that their columns are those of that event. */
export function isSingle({ names }: EventQuestion): boolean {
  return names.length === 1 && !/[*?]/.test(names[0] ?? "");
}

/** The kind of a column of the list. */
export type ColumnKind = "time" | "delta" | "event" | "cpu" | "thread" | "field" | "fields";

/** A column of the list. */
export interface ListColumn {
  readonly kind: ColumnKind;
  readonly title: string;
  /** The fields that it shows; of a thread its name, then its number. */
  readonly names: readonly string[];
}

/** Columns that say of each event where it happened, as tracers call them: the first one that there is. */
const CPU = ["cpu_id", "perf_cpu", "common_cpu"];
const THREAD_NAME = ["procname", "perf_comm", "common_comm"];
const THREAD = ["vtid", "tid", "perf_tid", "common_pid"];
/** Fields that tracers write for all events alike. They come before the fields of single events, which may have the same names: a `tid` behind
 * them is that of the woken thread, not of the running one. */
const CONTEXT = /^(time|cycles|stream|name|cpu_id|procname|hostname|ip|prio|nice|pthread_id|v?p?pid|v?tid|v[ug]id|\w+_ns|(perf|common)_\w+|handler_level)$/;
/** Fields that are rarely of use in a list. */
const LEFT_OUT: ReadonlySet<string> = new Set(["time", "name", "cycles", "stream", "handler_level"]);

function contextOf(all: readonly string[]): readonly string[] {
  const end = all.findIndex((name) => !CONTEXT.test(name));
  return end < 0 ? all : all.slice(0, end);
}

/** Where events happened: the column of the CPU, and those of the thread's name and number. */
function whereOf(all: readonly string[]): { readonly cpu: readonly string[]; readonly thread: readonly string[] } {
  const context = contextOf(all);
  const first = (names: readonly string[], among = context): readonly string[] => names.filter((name) => among.includes(name)).slice(0, 1);
  // A CPU field means where something happens, in any event; where only some classes of events have it, it stands behind fields of others.
  return { cpu: first(CPU, all), thread: [...first(THREAD_NAME), ...first(THREAD)] };
}

/** Which columns to ask for so that rows can be shown at once: reading all fields of a kernel's events takes ten times as long. */
export function baseNames(all: readonly string[]): readonly string[] {
  const { cpu, thread } = whereOf(all);
  const base = new Set(["time", "name", ...cpu, ...thread]);
  return all.filter((name) => base.has(name));
}

/** The columns that the user wants to see by themselves, as they are called in the list. */
export function wantedNames(all: readonly string[], text: string): readonly string[] {
  const fields = fieldNames(all);
  return readNames(text).flatMap((wanted) => fields.filter((name) => name === wanted || titleOf(name) === wanted));
}

/** The columns of a list, of all that the server has. Fields that are wanted stand alone; of events of one name without the others. */
export function listColumns(all: readonly string[], single: boolean, wanted: readonly string[] = []): readonly ListColumn[] {
  const has = (name: string): boolean => all.includes(name);
  const { cpu, thread } = whereOf(all);
  const columns: (ListColumn | null)[] = [
    { kind: "time", title: "Time", names: ["time"] },
    { kind: "delta", title: "Δ", names: ["time"] },
    has("name") ? { kind: "event", title: "Event", names: ["name"] } : null,
    cpu.length > 0 ? { kind: "cpu", title: "CPU", names: cpu } : null,
    thread.length > 0 ? { kind: "thread", title: "Thread", names: thread } : null,
  ];
  const fields = fieldNames(all);
  const column = (name: string): ListColumn => ({ kind: "field", title: titleOf(name), names: [name] });
  const rest: ListColumn[] = fields.length === 0 ? [] : [{ kind: "fields", title: "Fields", names: [] }];
  const last = single ? (wanted.length === 0 ? fields : wanted).map(column) : [...wanted.map(column), ...rest];
  return [...columns.filter((column) => column !== null), ...last];
}

/** Fields of events: without the fields that all events have, lengths of lists, and fields that only repeat another one in words. */
export function fieldNames(all: readonly string[]): readonly string[] {
  const known = new Set(all);
  const { cpu, thread } = whereOf(all);
  const out = new Set([...LEFT_OUT, ...cpu, ...thread]);
  const isExtra = (name: string): boolean => {
    const [, of] = /^(.*)_(?:label|labels|bytes)$/.exec(name) ?? [];
    return of !== undefined && known.has(of);
  };
  return all.filter((name) => !out.has(name) && !isExtra(name) && !/^(payload\.)?_.*_length$/.test(name));
}

/** How a field is called where it stands: the server says `payload.name` where an event's `name` has a field beside it. */
export function titleOf(name: string): string {
  return name.replace(/^payload\./, "");
}

/** The columns of some rows by their name. */
export type Named = ReadonlyMap<string, Column>;

export function named(rows: Rows): Named {
  return new Map(rows.columns.map((column) => [column.name, column]));
}
