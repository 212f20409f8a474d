// The facets to choose from, with counts: CPUs, processes and threads of the tracks, events, and the subsystems of events.

import type { Catalogue, Track } from "./catalogue.ts";
import type { Counted, Counts, Whose } from "./counts.ts";
import { isChosen, type Choice, type Naming } from "./choice.ts";
import { processesOf } from "./filter-tracks.ts";
import type { Owners } from "./owners.ts";
import { nameOf } from "./rows.ts";
import { counted } from "../units/counted.ts";

/** Something that can be chosen. */
export interface Entry<T> {
  readonly key: T;
  readonly label: string;
  /** Further details of the entry. */
  readonly detail: string;
  /** Events, as far as they were counted. */
  readonly count: bigint | null;
}

/** CPUs, in the order of their numbers. */
export function cpusOf(tracks: readonly Track[], whose: Whose | null): Entry<number>[] {
  const found = new Set(tracks.flatMap((track) => track.cpu ?? []));
  const byCpu = whose?.byCpu ?? null;
  byCpu?.forEach((_, cpu) => found.add(cpu));
  const all = [...found].sort((one, other) => one - other);
  return all.map((cpu) => ({ key: cpu, label: `CPU ${cpu}`, detail: "", count: byCpu === null ? null : (byCpu.get(cpu) ?? 0n) }));
}

/** Processes and threads, by their numbers. */
export interface People {
  readonly processes: readonly Entry<string>[];
  readonly threads: readonly Entry<number>[];
}

const known = new WeakMap<readonly Track[], People>();

/** Processes and threads that tracks tell of. Kept, as there may be ten thousands of them. */
export function peopleOf(tracks: readonly Track[]): People {
  let people = known.get(tracks);
  if (people === undefined) {
    people = findPeople(tracks);
    known.set(tracks, people);
  }
  return people;
}

function findPeople(tracks: readonly Track[]): People {
  const processOf = processesOf(tracks);
  const names = new Map<number, string>();
  const owners = new Map<number, string | null>();
  const members = new Map<string, Set<number>>();
  for (const track of tracks) {
    const { tid } = track;
    if (tid === null) {
      continue;
    }
    if (!names.has(tid) || (track.kind === "states" && track.parent === null && track.depth === null)) {
      names.set(tid, threadName(track, tid));
    }
    const process = processOf(track);
    owners.set(tid, process ?? owners.get(tid) ?? null);
    if (process !== null) {
      members.set(process, (members.get(process) ?? new Set()).add(tid));
    }
  }
  const threads = [...names].map(([tid, label]): Entry<number> => {
    const process = owners.get(tid) ?? null;
    const isMain = process === null || process === String(tid);
    return { key: tid, label, detail: isMain ? "" : (names.get(Number(process)) ?? `process ${process}`), count: null };
  });
  const processes = [...members].map(([process, some]): Entry<string> => {
    const label = names.get(Number(process)) ?? (/^\d+$/.test(process) ? `process ${process}` : process);
    return { key: process, label, detail: some.size === 1 ? "" : counted(some.size, "thread"), count: null };
  });
  return { processes: processes.sort(byLabel), threads: threads.sort(byLabel) };
}

const IDLE = 0;

/** Whether events of idle CPUs are those of one of these threads. */
export function hasIdle(threads: readonly Entry<number>[]): boolean {
  return threads.some(({ key }) => key === IDLE);
}

/** Threads with their counts, those with most events first; also those that have no track. */
export function threadsOf({ threads }: People, whose: Whose | null): readonly Entry<number>[] {
  if (whose === null) {
    return threads;
  }
  // Where thread 0 has a track, it is the one that idle CPUs run: these events are counted apart.
  const counts = hasIdle(threads) ? new Map<number, Counted>([...whose.byThread, [IDLE, { count: whose.idle, name: "idle" }]]) : whose.byThread;
  return withCounts(threads, counts, whose.omitted === 0, (tid, name) => (name === null ? `thread ${tid}` : `${name} (${tid})`));
}

/** The same of processes. */
export function processEntries({ processes }: People, whose: Whose | null): readonly Entry<string>[] {
  return whose === null ? processes : withCounts(processes, whose.byProcess, true, (pid, name) => (name === null ? `process ${pid}` : `${name} (${pid})`));
}

/** Applications that are known of tracks or were counted. */
export function applicationsOf(owners: Owners, whose: Whose | null): readonly Entry<string>[] {
  const entries = [...owners.members].map(([name, { threads }]): Entry<string> => ({ key: name, label: name, detail: threads.length === 1 ? "" : counted(threads.length, "thread"), count: null }));
  const known = whose === null ? null : new Map([...whose.byApplication].map(([name, count]) => [name, { count, name }]));
  return known === null ? entries.sort(byLabel) : withCounts(entries, known, true, (name) => name);
}

/** `isAll`: entries without a count have no events; else their number is unknown. */
function withCounts<K extends string | number>(entries: readonly Entry<K>[], counts: ReadonlyMap<K, Counted>, isAll: boolean, labelOf: (key: K, name: string | null) => string): Entry<K>[] {
  const seen = new Set(entries.map(({ key }) => key));
  const others = [...counts].filter(([key]) => !seen.has(key)).map(([key, { name }]): Entry<K> => ({ key, label: labelOf(key, name), detail: "", count: null }));
  const known = [...entries, ...others].map((entry) => {
    const { count = isAll ? 0n : null, name = null } = counts.get(entry.key) ?? {};
    // Tracks of programs may know no more than numbers.
    return { ...entry, label: entry.label === labelOf(entry.key, null) ? labelOf(entry.key, name) : entry.label, count };
  });
  return known.sort(byCount);
}

/** The name of a thread; the name of a track of its activity may say less. */
function threadName(track: Track, tid: number): string {
  return track.kind === "states" && track.depth === null && track.name.includes(String(tid)) ? nameOf(track) : `thread ${tid}`;
}

const ORDER = new Intl.Collator("en", { numeric: true });

function byLabel(one: { readonly label: string }, other: { readonly label: string }): number {
  return ORDER.compare(one.label, other.label);
}

/** Names of events: those that were known, and those that the timeline has met. */
export function eventNames(catalogue: Catalogue, counts: Counts | null): readonly string[] {
  const met = catalogue.values.flatMap((value) => (value.kind === "event" ? [value.label] : []));
  return [...new Set([...(counts?.byName?.keys() ?? []), ...met])].sort(ORDER.compare);
}

/** Events, the most frequent first. */
export function eventsOf(names: readonly string[], counts: Counts | null): Entry<string>[] {
  const entries = names.map((name): Entry<string> => ({ key: name, label: name, detail: "", count: counts?.byName == null ? null : (counts.byName.get(name) ?? 0n) }));
  return entries.sort(byCount);
}

function byCount(one: Entry<string | number>, other: Entry<string | number>): number {
  const [more, less] = [other.count ?? 0n, one.count ?? 0n];
  return more > less ? 1 : more < less ? -1 : byLabel(one, other);
}

/** Some events that belong together. */
export interface Subsystem extends Entry<string> {
  readonly events: readonly string[];
  /** Names that mean these events and no others: a pattern, where there is one. */
  readonly names: readonly string[];
}

/** The subsystem of an event: the provider before `:`, else the text before the first `_`, as kernels have it. */
export function subsystemOf(event: string): string {
  return event.split(":", 1)[0] !== event ? (event.split(":", 1)[0] ?? event) : (event.split("_", 1)[0] ?? event);
}

/** Parts of which events are, the largest first. */
export function subsystemsOf(names: readonly string[], counts: Counts | null): Subsystem[] {
  const members = new Map<string, string[]>();
  for (const name of names) {
    const subsystem = subsystemOf(name);
    const list = members.get(subsystem);
    if (list === undefined) {
      members.set(subsystem, [name]);
    } else {
      list.push(name);
    }
  }
  const all = [...members].map(([subsystem, events]): Subsystem => {
    const byName = counts?.byName ?? null;
    const count = byName === null ? null : events.reduce((sum, name) => sum + (byName.get(name) ?? 0n), 0n);
    const detail = events.length === 1 ? "" : counted(events.length, "name");
    return { key: subsystem, label: subsystem, detail, count, events, names: patternFor(subsystem, events, names) };
  });
  return all.sort(byCount);
}

function patternFor(subsystem: string, events: readonly string[], all: readonly string[]): readonly string[] {
  if (events.length === 1) {
    return events;
  }
  for (const pattern of [`${subsystem}:*`, `${subsystem}_*`]) {
    const meant = all.filter((name) => isNamed(pattern, name));
    if (meant.length === events.length && meant.every((name) => subsystemOf(name) === subsystem)) {
      return [pattern];
    }
  }
  return events;
}

const patterns = new Map<string, RegExp>();
/** As many patterns are kept. */
const PATTERNS_MAX = 500;

/** Whether a name means an event: `*` in it is any text. */
export function isNamed(named: string, event: string): boolean {
  if (!named.includes("*")) {
    return named === event;
  }
  let pattern = patterns.get(named);
  if (pattern === undefined) {
    const escaped = named.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
    pattern = new RegExp(`^${escaped}$`, "s");
    if (patterns.size >= PATTERNS_MAX) {
      patterns.clear();
    }
    patterns.set(named, pattern);
  }
  return pattern.test(event);
}

/** How names of events mean events. */
export function namingOf(events: readonly string[]): Naming<string> {
  return { matches: isNamed, expand: (named) => (named.includes("*") ? events.filter((event) => isNamed(named, event)) : [named]) };
}

/** Whether all, some or none of a subsystem's events are chosen. */
export function shareOf(choice: Choice<string> | null, subsystem: Subsystem): "all" | "some" | "none" {
  const chosen = subsystem.events.filter((event) => isChosen(choice, event, isNamed)).length;
  return chosen === subsystem.events.length ? "all" : chosen === 0 ? "none" : "some";
}

/** The choice with all events of a subsystem in it, or without any. `all` are the events that there are. */
export function withSubsystem(choice: Choice<string> | null, subsystem: Subsystem, isIn: boolean, all: readonly string[]): Choice<string> | null {
  const own = new Set([...subsystem.events, ...subsystem.names]);
  const others = (list: readonly string[]): readonly string[] => list.filter((name) => !own.has(name));
  const named = choice?.only ?? null;
  if (!isIn) {
    const rest = named === null ? null : others(named);
    if (rest !== null && rest.length === 0) {
      return null;
    }
    const next: Choice<string> = { only: rest, but: others(choice?.but ?? []) };
    return shareOf(next, subsystem) === "none" ? next : { ...next, but: [...next.but, ...subsystem.names] };
  }
  // A pattern that takes out more than these is told one by one first.
  const { expand } = namingOf(all);
  const but = (choice?.but ?? []).flatMap((name) => (subsystem.events.some((event) => isNamed(name, event)) ? others(expand(name)) : [name]));
  const next: Choice<string> = { only: named, but };
  const full = shareOf(next, subsystem) === "all" ? next : { ...next, only: [...others(next.only ?? []), ...subsystem.names] };
  return full.only === null && full.but.length === 0 ? null : full;
}
