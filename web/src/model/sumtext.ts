// The sums of the selection as tables: of states and durations how long, of events how many, of counters from where to where; then row by row.

import { nanos, type Nanos } from "../units/time.ts";
import type { Catalogue, Track, TrackValue } from "./catalogue.ts";
import { grouped } from "./cells.ts";
import { duration } from "./clock.ts";
import { binBegin } from "./inspect.ts";
import { plain } from "./plain.ts";
import { shortQuantity } from "./quantity.ts";
import { nameOf } from "./rows.ts";
import { added, type Sums, type TrackSum, type ValueSum } from "./sums.ts";
import { NONE } from "./tile.ts";

/** A table of sums. */
export interface SumTable {
  readonly title: string;
  readonly columns: readonly string[];
  /** The name of each row, and its cells. */
  readonly rows: ReadonlyArray<readonly [string, readonly string[]]>;
  /** So many more have less. */
  readonly more: number;
}

/** The row of all events of the traces. */
const ALL_EVENTS = "all/events";
const ROWS_MAX = 1_000;
/** Of a row so many values are told. */
const NAMED = 2;
/** The kind of the value that stands for all that a bucket of the server does not tell apart. */
const OTHERS = "others";
const NOT_TOLD = "not told apart";
const UNNAMED = "(not named yet)";

/** Titles of the tables about threads that CPUs run. */
export const PROCESSES = "Processes on CPUs";
export const THREADS = "Threads on CPUs";
export const CPUS = "CPUs";
/** The column with the thread that a CPU ran most. */
export const MOSTLY = "mostly with";

const KINDS: Readonly<Record<string, string>> = {
  thread: THREADS,
  doing: "States of threads",
  call: "System calls",
  irq: "Interrupts",
  softirq: "Softirqs",
  slice: "Durations",
  state: "States",
};

export function tablesOf({ tracks }: Sums, catalogue: Catalogue, span: Nanos): readonly SumTable[] {
  const of = (form: TrackSum["form"]): readonly TrackSum[] => tracks.filter((track) => track.form === form);
  const named = (sums: readonly TrackSum[], title: string, columns: readonly string[], cells: (sum: TrackSum, track: Track) => readonly string[]): SumTable[] => {
    const rows = sums.flatMap((sum) => {
      const track = trackAt(catalogue, sum.track);
      return track === null || (sum.count === 0 && sum.number === null && sum.values.size === 0) ? [] : [[rowName(track, catalogue), cells(sum, track)] as const];
    });
    return rows.length === 0 ? [] : [{ title, columns, rows: rows.slice(0, ROWS_MAX), more: Math.max(0, rows.length - ROWS_MAX) }];
  };
  const [states, events] = [of("states"), of("events")];
  return [
    ...stateTables(states, catalogue, span),
    ...eventTables(events, catalogue),
    ...named(of("durations"), "Durations", ["count", "shortest", "longest"], ({ count, bins, isExact }) => [countText(count, isExact), ...(bins ?? []).map((bin) => `~${duration(binBegin(bin))}`)]),
    ...named(of("counter"), "Counters", ["least", "average", "most"], ({ number }, { unit }) => (number === null ? [] : [number.min, number.mean, number.max].map((value) => shortQuantity(value, unit ?? null)))),
    ...named(of("arrows"), "Arrows", ["count"], ({ count, isExact }) => [countText(count, isExact)]),
    ...(states.length < 2 ? [] : named(states.filter((sum) => kindIn(sum, catalogue) !== "thread"), "Row by row", ["most of the time"], (sum) => [mostText(sum, catalogue, span)])),
    ...(events.length < 2 ? [] : named(events, "Events, row by row", ["count"], ({ count, isExact }) => [countText(count, isExact)])),
  ];
}

/** A table for each kind of value, where threads run also by process and by CPU. A row may show several kinds, and several rows the same. */
function stateTables(states: readonly TrackSum[], catalogue: Catalogue, span: Nanos): SumTable[] {
  const kinds = new Set(states.flatMap((sum) => [...sum.values.keys()].flatMap((value) => kindOf(value, sum, catalogue) ?? [])));
  return [...kinds].flatMap((kind) => {
    const shown = states.filter((sum) => [...sum.values.keys()].some((value) => kindOf(value, sum, catalogue) === kind));
    const ofKind = shown.map((sum) => ({ ...sum, untold: untoldIn(sum, catalogue), values: new Map([...sum.values].filter(([value]) => kindOf(value, sum, catalogue) === kind)) }));
    const [isExact, whole] = [shown.every((sum) => sum.isExact), Number(span) * shown.length];
    const untold = ofKind.reduce((sum, track) => sum + track.untold, 0);
    const table = (title: string, sums: ReadonlyArray<readonly [string, ValueSum]>): SumTable => valueTable(title, sums, { isExact, whole, untold });
    const values = [...merged(ofKind)];
    const named = table(KINDS[kind] ?? kind, values.map(([value, sum]) => [labelOf(catalogue, value), sum]));
    return kind === "thread" ? [table(PROCESSES, byProcess(values, catalogue)), named, cpuTable(ofKind, catalogue, span)] : [named];
  });
}

interface Kind {
  readonly isExact: boolean;
  /** The time of all rows together, and how much of it is not told apart. */
  readonly whole: number;
  readonly untold: number;
}

function valueTable(title: string, sums: ReadonlyArray<readonly [string, ValueSum]>, { isExact, whole, untold }: Kind): SumTable {
  const ordered = [...sums].sort(([, one], [, other]) => other.time - one.time);
  // How often, how long on average and at most is known where runs come one by one.
  const isCounted = ordered.every(([, { longest }]) => longest !== null);
  const cells = ({ time, count, longest }: ValueSum): string[] => [
    timeOf(time, isExact),
    partText(time, whole),
    ...(isCounted && count !== null && longest !== null ? [grouped(count), timeOf(time / count, true), timeOf(longest, true)] : []),
  ];
  const rows = ordered.slice(0, ROWS_MAX).map(([name, sum]) => [name, cells(sum)] as const);
  const rest = untold > 0 ? [[NOT_TOLD, [`≤ ${timeOf(untold, false)}`, partText(untold, whole)]] as const] : [];
  return { title, columns: ["time", "part", ...(isCounted ? ["count", "average", "longest"] : [])], rows: [...rest, ...rows], more: Math.max(0, ordered.length - ROWS_MAX) };
}

/** Running threads, by the processes that own them. */
function byProcess(values: ReadonlyArray<readonly [number, ValueSum]>, { values: known }: Catalogue): ReadonlyArray<readonly [string, ValueSum]> {
  const sums = new Map<string, ValueSum>();
  for (const [number, sum] of values) {
    const value = known[number];
    const { process, application } = value?.owner ?? {};
    const name = value === undefined || isIdle(value) ? (value?.label ?? UNNAMED) : process === undefined ? "process unknown" : application == null ? process : `${application} (${process})`;
    const before = sums.get(name);
    sums.set(name, before === undefined ? sum : added(before, sum));
  }
  return [...sums];
}

/** How busy each CPU was, and with which thread most. */
function cpuTable(cpus: readonly TrackSum[], catalogue: Catalogue, span: Nanos): SumTable {
  const rows = cpus.map((cpu) => {
    const busy = [...cpu.values].filter(([value]) => !isIdle(catalogue.values[value]));
    const [most] = busy.sort(([, one], [, other]) => other.time - one.time);
    const [idle, { untold }] = [sumOfTimes([...cpu.values]) - sumOfTimes(busy), cpu];
    // The time that is not told apart may be of either.
    const cell = (time: number): string => (untold > 0 ? `${timeOf(time, false)}..${duration(nanos(Math.round(time + untold)))}` : timeOf(time, cpu.isExact));
    const track = trackAt(catalogue, cpu.track);
    return [track === null ? UNNAMED : nameOf(track), [cell(sumOfTimes(busy)), partText(sumOfTimes(busy), Number(span)), cell(idle), most === undefined ? "" : labelOf(catalogue, most[0])]] as const;
  });
  return { title: CPUS, columns: ["busy", "part", "idle", MOSTLY], rows: rows.slice(0, ROWS_MAX), more: Math.max(0, rows.length - ROWS_MAX) };
}

function sumOfTimes(values: ReadonlyArray<readonly [number, ValueSum]>): number {
  return values.reduce((sum, [, { time }]) => sum + time, 0);
}

/** Nanoseconds at most of which it is not known which values of a track they show: rarer ones of a bucket, and those that the server counts as others. */
function untoldIn({ values, untold }: TrackSum, { values: known }: Catalogue): number {
  return [...values].reduce((sum, [value, { time }]) => sum + (known[value]?.kind === OTHERS ? time : 0), untold);
}

/** The kind of a value. One that has no name yet is what the other values of its track are; `null`: it is not one value. */
function kindOf(value: number, sum: TrackSum, catalogue: Catalogue): string | null {
  const kind = catalogue.values[value]?.kind ?? kindIn(sum, catalogue);
  return kind === OTHERS ? null : kind;
}

function kindIn({ values }: TrackSum, { values: known }: Catalogue): string {
  return [...values.keys()].flatMap((value) => known[value]?.kind ?? []).find((kind) => kind !== OTHERS) ?? "state";
}

function isIdle(value: TrackValue | undefined): boolean {
  return value?.label === "idle" && value.owner === undefined;
}

/** An event is on the row of its thread, on that of its stream, and on the one of all events: each of these is counted for itself. */
function eventTables(events: readonly TrackSum[], catalogue: Catalogue): SumTable[] {
  const kindOf = ({ track }: TrackSum): string => {
    const id = trackAt(catalogue, track)?.id ?? "";
    return id === ALL_EVENTS ? "All events" : id.startsWith("thread/") ? "Events of threads" : "Events of streams";
  };
  return [...new Set(events.map(kindOf))].flatMap((kind) => eventTable(events.filter((sum) => kindOf(sum) === kind), kind, catalogue));
}

function eventTable(events: readonly TrackSum[], kind: string, catalogue: Catalogue): SumTable[] {
  const isExact = events.every((sum) => sum.isExact);
  const all = events.reduce((sum, { count }) => sum + count, 0);
  // Values that are not told apart stand last, however many these are.
  const ordered = [...merged(events)].sort(([one, { count: left }], [other, { count: right }]) => Number(one === NONE) - Number(other === NONE) || (right ?? 0) - (left ?? 0));
  const rows = ordered.slice(0, ROWS_MAX).map(([value, { count }]) => [value === NONE ? "others" : labelOf(catalogue, value), [countText(count ?? 0, isExact)]] as const);
  return all === 0 ? [] : [{ title: `${kind}: ${countText(all, isExact)}`, columns: ["count"], rows, more: Math.max(0, ordered.length - ROWS_MAX) }];
}

function merged(sums: readonly TrackSum[]): ReadonlyMap<number, ValueSum> {
  const all = new Map<number, ValueSum>();
  for (const [value, sum] of sums.flatMap(({ values }) => [...values])) {
    const before = all.get(value);
    all.set(value, before === undefined ? sum : added(before, sum));
  }
  return all;
}

function mostText({ values }: TrackSum, catalogue: Catalogue, span: Nanos): string {
  const ordered = [...values].sort(([, one], [, other]) => other.time - one.time);
  return ordered.slice(0, NAMED).map(([value, { time }]) => `${labelOf(catalogue, value)} ${partText(time, Number(span))}`).join(", ");
}

/** A row below another one, such as the interrupts of a CPU, is named with that. */
function rowName(track: Track, catalogue: Catalogue): string {
  const above = track.parent === null ? null : trackAt(catalogue, track.parent);
  return above === null ? nameOf(track) : `${nameOf(above)}: ${nameOf(track)}`;
}

function trackAt({ tracks }: Catalogue, number: number): Track | null {
  const likely = tracks[number];
  return likely?.number === number ? likely : (tracks.find((track) => track.number === number) ?? null);
}

function labelOf(catalogue: Catalogue, value: number): string {
  return plain(catalogue.values[value]?.label ?? UNNAMED);
}

/** `~`: about. */
function timeOf(time: number, isExact: boolean): string {
  return `${isExact ? "" : "~"}${duration(nanos(Math.round(time)))}`;
}

function countText(count: number, isExact: boolean): string {
  return `${isExact ? "" : "~"}${grouped(count)}`;
}

export function partText(time: number, of: number): string {
  const part = (time / of) * 100;
  return part > 0 && part < 0.1 ? "< 0.1 %" : `${part.toFixed(part >= 99.95 ? 0 : 1)} %`;
}
