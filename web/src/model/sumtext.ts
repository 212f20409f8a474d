// The sums of the selection as tables: of states and durations how long, of events how many, of counters from where to where; then row by row.

import { nanos, type Nanos } from "../units/time.ts";
import type { Catalogue, Track } from "./catalogue.ts";
import { grouped } from "./cells.ts";
import { duration } from "./clock.ts";
import { binBegin } from "./inspect.ts";
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
const ROWS_MAX = 12;
/** Of a row so many values are told. */
const NAMED = 2;

const KINDS: Readonly<Record<string, string>> = {
  thread: "Threads on CPUs",
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
      return track === null || (sum.count === 0 && sum.number === null && sum.values.size === 0) ? [] : [[nameOf(track), cells(sum, track)] as const];
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
    ...(states.length < 2 ? [] : named(states, "Row by row", ["most of the time"], (sum) => [mostText(sum, catalogue, span)])),
    ...(events.length < 2 ? [] : named(events, "Events, row by row", ["count"], ({ count, isExact }) => [countText(count, isExact)])),
  ];
}

/** A table for each kind of value: a row may show several, and several rows the same. */
function stateTables(states: readonly TrackSum[], catalogue: Catalogue, span: Nanos): SumTable[] {
  const kindOf = (value: number): string => catalogue.values[value]?.kind ?? "state";
  const kinds = new Set(states.flatMap(({ values }) => [...values.keys()].map(kindOf)));
  return [...kinds].map((kind) => {
    const shown = states.filter(({ values }) => [...values.keys()].some((value) => kindOf(value) === kind));
    const isExact = shown.every((sum) => sum.isExact);
    const ordered = [...merged(shown)].filter(([value]) => kindOf(value) === kind).sort(([, one], [, other]) => other.time - one.time);
    // How often, how long on average and at most is known where runs come one by one.
    const isCounted = ordered.every(([, { longest }]) => longest !== null);
    const cells = ({ time, count, longest }: ValueSum): string[] => [
      timeOf(time, isExact),
      partText(time, Number(span) * shown.length),
      ...(isCounted && count !== null && longest !== null ? [grouped(count), timeOf(time / count, true), timeOf(longest, true)] : []),
    ];
    const rows = ordered.slice(0, ROWS_MAX).map(([value, sum]) => [labelOf(catalogue, value), cells(sum)] as const);
    return { title: KINDS[kind] ?? kind, columns: ["time", "part", ...(isCounted ? ["count", "average", "longest"] : [])], rows, more: Math.max(0, ordered.length - ROWS_MAX) };
  });
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

function trackAt({ tracks }: Catalogue, number: number): Track | null {
  const likely = tracks[number];
  return likely?.number === number ? likely : (tracks.find((track) => track.number === number) ?? null);
}

function labelOf(catalogue: Catalogue, value: number): string {
  return catalogue.values[value]?.label ?? "…";
}

/** `~`: about. */
function timeOf(time: number, isExact: boolean): string {
  return `${isExact ? "" : "~"}${duration(nanos(Math.round(time)))}`;
}

function countText(count: number, isExact: boolean): string {
  return `${isExact ? "" : "~"}${grouped(count)}`;
}

function partText(time: number, of: number): string {
  const part = (time / of) * 100;
  return part > 0 && part < 0.1 ? "< 0.1 %" : `${part.toFixed(part >= 99.95 ? 0 : 1)} %`;
}
