// The legend: which values the rows on the screen show in the window, with their colors, and the choice of the filter that means each of them.
//
// Values are weighed by the time that they cover, events by their number. Each section has the heaviest ones, in the order of their names, so that
// entries stay in their places while the window moves.

import type { Piece } from "./cache.ts";
import type { Catalogue, TrackValue } from "./catalogue.ts";
import { allBut, isChosen, only, withItem, type Choice } from "./choice.ts";
import { isNamed as isEventNamed, namingOf } from "./facets.ts";
import { stateKey, threadOf, valueTest } from "./filter-values.ts";
import type { Filter } from "./filter.ts";
import { bucketsOf } from "./idle.ts";
import type { Colouring } from "./palette.ts";
import { NONE, type Runs, type States } from "./tile.ts";
import type { Viewport } from "./viewport.ts";
import { TILE_BUCKETS } from "../units/tiles.ts";
import type { Nanos } from "../units/time.ts";

/** The part of the filter that an entry chooses. */
export type LegendFacet = "threads" | "applications" | "states" | "events";

export interface LegendEntry {
  readonly label: string;
  /** The value with its color. */
  readonly value: TrackValue;
  /** `null`: the filter has no choice of this. */
  readonly facet: LegendFacet | null;
  readonly key: string | number;
}

export interface LegendSection {
  readonly title: string;
  readonly entries: readonly LegendEntry[];
  /** So many lighter ones are left out. */
  readonly more: number;
}

/** As many entries of a section. */
export const ENTRIES_MAX = 12;

const TITLES: Readonly<Record<string, string>> = { doing: "States", state: "States", thread: "Threads", call: "Calls", slice: "Durations", irq: "Interrupts", softirq: "Interrupts", event: "Events" };
/** Kinds of values that stand for several: a filter cannot choose them. */
const SEVERAL: ReadonlySet<string> = new Set(["others", "estimate"]);
const ORDER = ["States", "Threads", "Applications", "Calls", "Durations", "Interrupts", "Values", "Events"];

/** The sections for some rows' tiles in a window. */
export function legendOf(pieces: readonly Piece[], view: Viewport, origin: Nanos, catalogue: Catalogue, colouring: Colouring): readonly LegendSection[] {
  const weights = new Map<number, number>();
  for (const piece of pieces) {
    weigh(piece, view, origin, (value, weight) => value !== NONE && weight > 0 && weights.set(value, (weights.get(value) ?? 0) + weight));
  }
  const found = new Map<string, Map<string, { readonly entry: LegendEntry; weight: number }>>();
  for (const [number, weight] of weights) {
    const value = catalogue.values[number]?.number === number ? catalogue.values[number] : catalogue.values.find((one) => one.number === number);
    if (value === undefined) {
      continue;
    }
    const entry = entryOf(value, catalogue, colouring);
    const title = entry.facet === "applications" ? "Applications" : (TITLES[value.kind] ?? "Values");
    const section = found.get(title) ?? new Map<string, { entry: LegendEntry; weight: number }>();
    found.set(title, section);
    const id = `${entry.facet} ${entry.key}`;
    const before = section.get(id);
    section.set(id, { entry: before?.entry ?? entry, weight: (before?.weight ?? 0) + weight });
  }
  return ORDER.flatMap((title) => {
    const all = [...(found.get(title)?.values() ?? [])].sort((one, other) => other.weight - one.weight);
    const entries = all.slice(0, ENTRIES_MAX).map(({ entry }) => entry).sort((one, other) => one.label.localeCompare(other.label, "en", { numeric: true }));
    return entries.length === 0 ? [] : [{ title, entries, more: all.length - entries.length }];
  });
}

function entryOf(value: TrackValue, { tracks }: Catalogue, colouring: Colouring): LegendEntry {
  const { kind, label } = value;
  if (kind === "event") {
    return { label, value, facet: "events", key: label };
  }
  if (SEVERAL.has(kind)) {
    return { label, value, facet: null, key: label };
  }
  if (kind !== "thread") {
    return { label, value, facet: "states", key: stateKey(value) };
  }
  const application = value.owner?.application ?? null;
  if (colouring === "application" && application !== null) {
    return { label: application, value, facet: "applications", key: application };
  }
  const thread = threadOf(value, tracks);
  return thread === null ? { label, value, facet: null, key: label } : { label, value, facet: "threads", key: thread };
}

/** Tells the weight of each value of a piece: nanoseconds, or how many events. */
function weigh({ tile, begin, end }: Piece, view: Viewport, origin: Nanos, add: (value: number, weight: number) => void): void {
  const { items, level, index, carry } = tile;
  const seen = bucketsOf(view, origin, level);
  const [from, to] = [Math.max(begin, seen.from - index * TILE_BUCKETS), Math.min(end, seen.to - index * TILE_BUCKETS)];
  const bucket = 2 ** level;
  switch (items.form) {
    case "states":
      return weighStates(items, carry, from, to, (value, buckets) => add(value, buckets * bucket));
    case "runs":
      return weighRuns(items, from * bucket, to * bucket, add);
    case "counts":
      return items.bucket.forEach((at, one) => (at + 1 > from && at < to ? add(items.value[one] ?? NONE, items.count[one] ?? 0) : undefined));
    case "instants":
      return items.time.forEach((at, one) => (at >= from * bucket && at < to * bucket ? add(items.value[one] ?? NONE, 1) : undefined));
    default:
      return undefined;
  }
}

function weighStates(items: States, carry: number, from: number, to: number, add: (value: number, buckets: number) => void): void {
  let [held, since] = [carry, from];
  for (let index = 0; index < items.bucket.length && (items.bucket[index] ?? 0) < to; index++) {
    const at = items.bucket[index] ?? 0;
    if (at + 1 > from) {
      add(held, at - since);
      // The first one is there also if it covers nothing.
      add(items.value[index] ?? NONE, Math.max(items.share[index] ?? 0, 1) / 65_535);
      add(items.second[index] ?? NONE, (items.shareSecond[index] ?? 0) / 65_535);
      since = at + 1;
    }
    held = items.last[index] ?? NONE;
  }
  add(held, to - since);
}

function weighRuns({ begin, end, value }: Runs, from: number, to: number, add: (value: number, time: number) => void): void {
  begin.forEach((at, index) => {
    const time = Math.min(end[index] ?? 0, to) - Math.max(at, from);
    // One that takes no time is drawn where it begins.
    add(value[index] ?? NONE, at >= from && at < to ? Math.max(time, 1) : time);
  });
}

/** Whether an entry is one of those that were chosen by name. */
export function isNamed({ facet, key }: LegendEntry, filter: Filter): boolean {
  return facet !== null && (filter[facet]?.only as readonly (string | number)[] | null | undefined)?.includes(key) === true;
}

/** Tells which entries the filter leaves out: those whose bars are paler, and events that are not selected. */
export function outTest(filter: Filter, catalogue: Catalogue): (entry: LegendEntry) => boolean {
  const isMeant = valueTest(filter, catalogue) ?? (() => true);
  return ({ facet, key, value }) => {
    switch (facet) {
      case null:
        return false;
      case "events":
        return !isChosen(filter.events, String(key), isEventNamed);
      case "applications":
        return !isChosen(filter.applications, String(key));
      default:
        return !isMeant(value);
    }
  };
}

/** The effects of a click: `only` this, or all again if it was so; `also` this, or no more; `but` this. */
export type LegendAct = "only" | "also" | "but";

/** The filter's part after that. */
export function chosenBy({ facet, key }: LegendEntry, act: LegendAct, filter: Filter, { values }: Pick<Catalogue, "values">): Partial<Filter> {
  if (facet === null) {
    return {};
  }
  const choice = filter[facet] as Choice<string | number> | null;
  const isAlone = choice?.only?.length === 1 && choice.only[0] === key && choice.but.length === 0;
  const isTakenOut = choice?.only === null && choice.but.length === 1 && choice.but[0] === key;
  switch (act) {
    case "only":
      return { [facet]: isAlone ? null : only([key]) };
    case "but":
      return { [facet]: isTakenOut ? null : allBut([key]) };
    case "also": {
      if (facet === "events") {
        // A chosen name may be a pattern.
        const naming = namingOf(values.flatMap(({ kind, label }) => (kind === "event" ? [label] : [])));
        return { events: filter.events === null ? only([String(key)]) : withItem(filter.events, String(key), !isChosen(filter.events, String(key), naming.matches), naming) };
      }
      return { [facet]: choice === null ? only([key]) : withItem(choice, key, !isChosen(choice, key)) };
    }
  }
}
