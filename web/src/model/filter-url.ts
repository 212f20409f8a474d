// The filter in the URL: `filter` is the expression, `cpu`, `app`, `process`, `thread`, `state` and `event` are the chosen items, `no-cpu` and so on those taken out.

import { only, type Choice } from "./choice.ts";
import { FILTER_MODES, PLAIN_FILTER, type Filter } from "./filter.ts";
import { ranges } from "./ranges.ts";

/** A URL longer than this is no place to keep a choice; browsers and mails cut it. */
const NAMES_MAX = 200;
const NUMBERS_MAX = 20_000;

/** As members of a URL, in their order. */
export function filterParts(filter: Filter): [string, string][] {
  return [
    ...(filter.text.trim() === "" ? [] : [["filter", filter.text] as [string, string]]),
    ...texts("event", filter.events),
    ...numbers("cpu", filter.cpus),
    ...texts("app", filter.applications),
    ...texts("process", filter.processes),
    ...numbers("thread", filter.threads),
    ...texts("state", filter.states),
    ...(filter.mode === PLAIN_FILTER.mode ? [] : [["mode", filter.mode] as [string, string]]),
  ];
}

/** Reads the output of [`filterParts`]; parts that it does not understand are left out. */
export function readFilter(parts: URLSearchParams): Filter {
  const mode = FILTER_MODES.find((one) => one === parts.get("mode")) ?? PLAIN_FILTER.mode;
  const text = parts.get("filter") ?? "";
  return {
    text,
    events: choiceOf(readTexts(parts, "event"), readTexts(parts, "no-event")),
    cpus: choiceOf(readNumbers(parts, "cpu"), readNumbers(parts, "no-cpu")),
    applications: choiceOf(readTexts(parts, "app"), readTexts(parts, "no-app")),
    processes: choiceOf(readTexts(parts, "process"), readTexts(parts, "no-process")),
    threads: choiceOf(readNumbers(parts, "thread"), readNumbers(parts, "no-thread")),
    states: choiceOf(readTexts(parts, "state"), readTexts(parts, "no-state")),
    mode,
    names: null,
    owners: null,
  };
}

function texts(name: string, choice: Choice<string> | null): [string, string][] {
  const all = (key: string, items: readonly string[]): [string, string][] => items.slice(0, NAMES_MAX).map((item) => [key, item]);
  return choice === null ? [] : [...all(name, choice.only ?? []), ...all(`no-${name}`, choice.but)];
}

function numbers(name: string, choice: Choice<number> | null): [string, string][] {
  const list = (key: string, items: readonly number[]): [string, string][] =>
    items.length === 0 ? [] : [[key, ranges(items).map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",")]];
  return choice === null ? [] : [...list(name, choice.only ?? []), ...list(`no-${name}`, choice.but)];
}

function readTexts(parts: URLSearchParams, name: string): readonly string[] {
  return [...new Set(parts.getAll(name))].filter((text) => text !== "").slice(0, NAMES_MAX);
}

function readNumbers(parts: URLSearchParams, name: string): readonly number[] {
  const found: number[] = [];
  for (const text of (parts.get(name) ?? "").split(",")) {
    const [, from, to] = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(text) ?? [];
    const [first, last] = [Number(from), Number(to ?? from)];
    for (let number = first; number <= last && found.length < NUMBERS_MAX; number++) {
      found.push(number);
    }
  }
  return found;
}

function choiceOf<T>(named: readonly T[], but: readonly T[]): Choice<T> | null {
  return but.length === 0 ? only(named) : { only: named.length === 0 ? null : named, but };
}
