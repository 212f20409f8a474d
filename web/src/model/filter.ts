// The one filter: the chosen CPUs, processes, threads and events, and an expression. Everything that asks the server asks
// with it: rows, lists, statistics, arrows.
//
// Events say in fields on which CPU and by which thread they were made, and each tracer calls these fields as it likes. Which of these fields the
// traces have is asked once (`api/filter.ts`) and kept in the filter; without such a field nothing is asked that the server would refuse, and
// the page says so (`unanswered`).

import type { Choice } from "./choice.ts";
import type { Owners } from "./owners.ts";
import { ranges } from "./ranges.ts";

/** The treatment of items that are not chosen: their rows are paler, or not there; or analyses also compute without them. */
export type FilterMode = "dim" | "hide" | "exclude";

export const FILTER_MODES: readonly FilterMode[] = ["dim", "hide", "exclude"];

/** The facets to choose from. */
export type Facet = "events" | "cpus" | "applications" | "processes" | "threads" | "states";

export interface Filter {
  /** An expression of the filter language; empty: none. */
  readonly text: string;
  /** Names of events; `*` in them stands for any text. `null`, as in all that follow: no choice was made, all are meant. */
  readonly events: Choice<string> | null;
  readonly cpus: Choice<number> | null;
  /** Names of applications: all threads of their processes are meant. */
  readonly applications: Choice<string> | null;
  /** Numbers of processes; text that is no number is the name of one. */
  readonly processes: Choice<string> | null;
  readonly threads: Choice<number> | null;
  /** States and names of durations, calls and interrupts (`stateKey`): no request has them, they only tell which bars are paler. */
  readonly states: Choice<string> | null;
  readonly mode: FilterMode;
  /** The names of these fields in the traces' events; `null` until the server has said so. */
  readonly names: FieldNames | null;
  /** Which threads are of which application, as far as is known; `null` while the page does not need it. */
  readonly owners: Owners | null;
}

export const PLAIN_FILTER: Filter = { text: "", events: null, cpus: null, applications: null, processes: null, threads: null, states: null, mode: "dim", names: null, owners: null };

/** A field that some events have. */
export interface FieldName {
  readonly name: string;
  /** All events have it. */
  readonly isEverywhere: boolean;
}

/** The fields that select events: fields that there are, in the order in which they are believed. */
export interface FieldNames {
  readonly cpu: readonly FieldName[];
  readonly thread: readonly FieldName[];
  readonly process: readonly FieldName[];
  /** Names of processes, as opposed to numbers. */
  readonly processName: readonly FieldName[];
}

/** The names that tracers give these fields: those that Kymograph's own mappings of tracers know. `$ctx` is any context, also that of a packet. */
export const FIELD_CANDIDATES: Readonly<Record<keyof FieldNames, readonly string[]>> = {
  cpu: ["$ctx.cpu_id", "$ctx.cpu", "perf_cpu", "common_cpu"],
  thread: ["$ctx.tid", "$ctx.vtid", "perf_tid", "common_pid"],
  process: ["$ctx.pid", "$ctx.vpid", "perf_pid", "env.vpid"],
  processName: ["$ctx.procname", "$ctx.comm", "$ctx.thread_name", "perf_comm", "env.procname"],
};

/** The selection of events for a request: an expression, and names. */
export interface Asked {
  readonly filter?: string;
  readonly event?: readonly string[];
}

/** The server takes as many names beside an expression. */
const NAMES_MAX = 64;

/** The selection for a request that takes names of events beside an expression. Empty where nothing is chosen. */
export function questionOf(filter: Filter): Asked {
  const named = filter.events?.only ?? null;
  if (named !== null && named.length > NAMES_MAX) {
    return { filter: expressionOf(filter) };
  }
  const but = filter.events === null || filter.events.but.length === 0 ? [] : [notNamed(filter.events.but)];
  const expression = joined([...own(filter), ...fieldParts(filter), ...but]);
  return { ...(expression === "" ? {} : { filter: expression }), ...(named === null ? {} : { event: named }) };
}

/** All of it as one expression, for requests that take nothing else; empty: nothing is chosen. */
export function expressionOf(filter: Filter): string {
  const { events } = filter;
  const named = events?.only ?? null;
  const names = named === null ? [] : [isNamed(named)];
  const but = events === null || events.but.length === 0 ? [] : [notNamed(events.but)];
  return joined([...own(filter), ...fieldParts(filter), ...names, ...but]);
}

/** The selection for analyses: they are about all of the traces unless the user wants to exclude the rest. */
export function analysisOf(filter: Filter): Asked {
  const expression = filter.mode === "exclude" ? expressionOf(filter) : "";
  return expression === "" ? {} : { filter: expression };
}

/** A filter's question as part of a URL: `filter=…&event=…`, empty if there is none. */
export function queryOf(filter: Filter): string {
  const { filter: expression, event } = questionOf(filter);
  const parts = new URLSearchParams();
  if (expression !== undefined) {
    parts.set("filter", expression);
  }
  event?.forEach((name) => parts.append("event", name));
  return parts.toString();
}

/** Whether it lets anything away. */
export function isActive(filter: Filter): boolean {
  return filter.text.trim() !== "" || FACETS.some((facet) => filter[facet] !== null);
}

export const FACETS: readonly Facet[] = ["cpus", "applications", "processes", "threads", "states", "events"];

/** The chosen facets that no event's fields express: rows follow, lists and statistics cannot. */
export function unanswered(filter: Filter): readonly Facet[] {
  const { names } = filter;
  if (names === null) {
    return [];
  }
  const [numbers, texts] = processParts(filter.processes);
  const lacking: Facet[] = [];
  if (filter.cpus !== null && names.cpu.length === 0) {
    lacking.push("cpus");
  }
  if (filter.applications !== null && filter.owners !== null && applicationPart(filter, names).length === 0) {
    lacking.push("applications");
  }
  if ((numbers !== null && names.process.length === 0) || (texts !== null && names.processName.length === 0)) {
    lacking.push("processes");
  }
  if (filter.threads !== null && names.thread.length === 0) {
    lacking.push("threads");
  }
  return lacking;
}

/** Whether the filter means only some events, of any thread: tracks of events follow, all others count all events. */
export function choosesEvents(filter: Filter): boolean {
  return filter.text.trim() !== "" || filter.events !== null;
}

/** Whether the page has to ask the server which fields there are. */
export function needsNames(filter: Filter): boolean {
  return filter.names === null && ["cpus", "applications", "processes", "threads"].some((facet) => filter[facet as Facet] !== null);
}

function own(filter: Filter): string[] {
  return filter.text.trim() === "" ? [] : [filter.text];
}

/** Several conditions as one. A line end closes a comment that may stand behind one. */
function joined(parts: readonly string[]): string {
  return parts.length <= 1 ? (parts[0] ?? "") : parts.map((part) => (/\/\//.test(part) ? `(${part}\n)` : `(${part})`)).join(" && ");
}

function fieldParts(filter: Filter): string[] {
  const { names } = filter;
  if (names === null) {
    return [];
  }
  const [numbers, texts] = processParts(filter.processes);
  return [
    ...choicePart(filter.cpus, names.cpu, numberList),
    ...applicationPart(filter, names),
    ...eitherPart([numbers, names.process], [texts, names.processName]),
    ...choicePart(filter.threads, names.thread, numberList),
  ];
}

/** Applications as their threads, where events say theirs; else as their processes, or by the names of these. */
function applicationPart({ applications, owners }: Filter, names: FieldNames): string[] {
  if (applications === null || owners === null) {
    return [];
  }
  const { only: named, but } = applications;
  const numbered = (numbersOf: (application: string) => readonly number[]): Choice<number> => ({ only: named?.flatMap(numbersOf) ?? null, but: but.flatMap(numbersOf) });
  if (names.thread.length > 0) {
    return choicePart(numbered((one) => owners.members.get(one)?.threads ?? []), names.thread, numberList);
  }
  if (names.process.length > 0) {
    return choicePart(numbered((one) => owners.members.get(one)?.processes.filter((process) => /^\d{1,15}$/.test(process)).map(Number) ?? []), names.process, numberList);
  }
  return choicePart(applications, names.processName, applicationList);
}

/** Numbers of processes, and names of others. */
function processParts(choice: Choice<string> | null): [Choice<number> | null, Choice<string> | null] {
  if (choice === null) {
    return [null, null];
  }
  const isNumber = (text: string): boolean => /^\d{1,15}$/.test(text);
  const split = <T>(keep: (text: string) => boolean, read: (text: string) => T): Choice<T> | null => {
    const [named, but] = [choice.only?.filter(keep).map(read) ?? null, choice.but.filter(keep).map(read)];
    return (named === null || named.length === 0) && but.length === 0 ? null : { only: named, but };
  };
  return [split(isNumber, Number), split((text) => !isNumber(text), String)];
}

/** Processes that are named are chosen by either; those that are taken out are by both. */
function eitherPart(numbers: [Choice<number> | null, readonly FieldName[]], texts: [Choice<string> | null, readonly FieldName[]]): string[] {
  const named = [...onlyPart(numbers[0], numbers[1], numberList), ...onlyPart(texts[0], texts[1], textList)];
  const one = named.length <= 1 ? named : [named.map((part) => `(${part})`).join(" || ")];
  return [...one, ...butPart(numbers[0], numbers[1], numberList), ...butPart(texts[0], texts[1], textList)];
}

function choicePart<T>(choice: Choice<T> | null, names: readonly FieldName[], list: (items: readonly T[]) => string): string[] {
  return [...onlyPart(choice, names, list), ...butPart(choice, names, list)];
}

function onlyPart<T>(choice: Choice<T> | null, names: readonly FieldName[], list: (items: readonly T[]) => string): string[] {
  const named = choice?.only ?? null;
  return named === null || named.length === 0 || names.length === 0 ? [] : [oneOf(names, list(named))];
}

function butPart<T>(choice: Choice<T> | null, names: readonly FieldName[], list: (items: readonly T[]) => string): string[] {
  return choice === null || choice.but.length === 0 || names.length === 0 ? [] : [`!(${oneOf(names, list(choice.but))})`];
}

/** Whether the first of these fields that an event has is in a list. False, not unknown, where it has none: so its opposite is true. */
function oneOf(names: readonly FieldName[], list: string): string {
  const terms: string[] = [];
  const before: string[] = [];
  for (const { name, isEverywhere } of names) {
    const has = isEverywhere ? [] : [`has(${name})`];
    terms.push([...before.map((other) => `!has(${other})`), ...has, `${name} in (${list})`].join(" && "));
    if (isEverywhere) {
      break;
    }
    before.push(name);
  }
  return terms.join(" || ");
}

/** Numbers as short as the language has them: neighbors are a range. */
function numberList(numbers: readonly number[]): string {
  return ranges(numbers).map(([from, to]) => (from === to ? String(from) : to === from + 1 ? `${from}, ${to}` : `${from}..=${to}`)).join(", ");
}

/** An application also covers names that have its name before a slash. */
function applicationList(names: readonly string[]): string {
  // A star of the language stands behind the quoted text.
  return names.map((name) => textList([name])).flatMap((text) => [text, `${text.slice(0, -1)}/*"`]).join(", ");
}

function textList(texts: readonly string[]): string {
  return texts.map((text) => quoted(text).replaceAll("*", "\\*")).join(", ");
}

/** A text of the filter language. A star in it stays a star of the language. */
export function quoted(text: string): string {
  const escaped = text.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
  return `"${escaped}"`;
}

function isNamed(names: readonly string[]): string {
  const list = names.map(quoted).join(", ");
  return names.length === 1 ? `event.name == ${list}` : `event.name in (${list})`;
}

function notNamed(names: readonly string[]): string {
  return names.length === 1 ? `event.name != ${names.map(quoted).join("")}` : `!(${isNamed(names)})`;
}
