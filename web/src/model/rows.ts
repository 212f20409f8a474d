// The rows of the timeline, from top to bottom, and their places: pinned tracks, then each group with its tracks below its head.

import { cssPx, type CssPx } from "../units/screen.ts";
import type { Catalogue, Track } from "./catalogue.ts";
import { trackTest } from "./filter-tracks.ts";
import { PLAIN_FILTER, type Filter } from "./filter.ts";
import { shownTest, sizeOf, type Layout, type RowSize } from "./layout.ts";

export { PLAIN_LAYOUT, type Layout } from "./layout.ts";

/** A row: of a track, or the head of a group. */
export interface Row {
  /** Unique among rows, and the same as long as the row is there. */
  readonly key: string;
  readonly top: CssPx;
  readonly height: CssPx;
  readonly group: string;
  readonly track: Track | null;
  readonly pinned: boolean;
  /** Of a head: how many tracks it stands for, and whether they are folded. */
  readonly count: number;
  readonly folded: boolean;
  /** It is of a track that the filter does not mean. */
  readonly dimmed: boolean;
}

export const PINNED_GROUP = "Pinned";
export const HEAD_HEIGHT = cssPx(24);

const HEIGHTS: Readonly<Record<Track["kind"], CssPx>> = {
  states: cssPx(20),
  instants: cssPx(20),
  counter: cssPx(44),
  arrows: cssPx(20),
  heat: cssPx(60),
};
/** Parts of tracks are lower, so that a deep stack of them fits. */
const NESTED_HEIGHT = cssPx(16);

/** Where groups stand; all others lie between the first and the last ones, in the order in which they were met. */
const GROUPS_FIRST = ["CPUs", "Threads"];
const GROUPS_LAST = ["Latencies", "Arrows", "Events"];

/** Ids with how long a number is before each, so that they are in the order of numbers. Kept, because traces have ten thousands of tracks. */
const sortKeys = new WeakMap<Track, string>();

function sortKey(track: Track): string {
  let key = sortKeys.get(track);
  if (key === undefined) {
    key = track.id.replace(/\d+/g, (digits) => String.fromCharCode(digits.length) + digits);
    sortKeys.set(track, key);
  }
  return key;
}

/** All rows. Tracks of a group stand in the order of their ids, so that it is the same each time; parts of a track below it. `idle` are tracks
 * in which nothing happens, as far as that is known. */
export function rowsOf(catalogue: Catalogue, layout: Layout, filter: Filter = PLAIN_FILTER, idle: ReadonlySet<number> | null = null): Row[] {
  const isShown = shownTest(layout);
  const folded = new Set(layout.folded);
  const isMeant = trackTest(filter, catalogue.tracks) ?? (() => true);
  const isAwake = (track: Track): boolean => !layout.active || idle === null || !idle.has(track.number);
  const isThere = (track: Track): boolean => isShown(track) && (filter.mode === "dim" || isMeant(track)) && isAwake(track);
  const rows = new Rows(filter.mode === "dim" ? isMeant : () => true, sizeOf(layout));
  const pins = new Set(layout.pinned);
  const byId = new Map(pins.size === 0 ? [] : catalogue.tracks.filter((track) => pins.has(track.id) && isThere(track)).map((track) => [track.id, track]));
  const pinned = layout.pinned.flatMap((id) => byId.get(id) ?? []);
  if (pinned.length > 0) {
    rows.group(PINNED_GROUP, pinned, folded.has(PINNED_GROUP), true);
  }
  for (const [group, tracks] of groupsIn(catalogue.tracks, layout)) {
    const shown = tracks.filter(isThere);
    if (shown.length > 0) {
      rows.group(group, shown, folded.has(group), false);
    }
  }
  return rows.all;
}

/** Groups with their tracks, of the last lists that were asked for: putting ten thousands of tracks in order takes longer than a frame. */
const ordered = new WeakMap<readonly Track[], readonly (readonly [string, readonly Track[]])[]>();

/** Groups from top to bottom, with all of their tracks from top to bottom. */
export function groupsOf(tracks: readonly Track[]): readonly (readonly [string, readonly Track[]])[] {
  let groups = ordered.get(tracks);
  if (groups === undefined) {
    const sorted = [...grouped(tracks)].sort(([one], [other]) => rankOf(one) - rankOf(other));
    groups = sorted.map(([group, some]) => [group, nestedOrder(some)] as const);
    ordered.set(tracks, groups);
  }
  return groups;
}

/** The same in the order that the layout says. */
export function groupsIn(tracks: readonly Track[], { groups }: Layout): readonly (readonly [string, readonly Track[]])[] {
  const all = groupsOf(tracks);
  if (groups.length === 0) {
    return all;
  }
  const place = new Map(groups.map((group, index) => [group, index]));
  const placeOf = (group: string): number => place.get(group) ?? groups.length;
  return [...all].sort(([one], [other]) => placeOf(one) - placeOf(other));
}

function rankOf(group: string): number {
  const [first, last] = [GROUPS_FIRST.indexOf(group), GROUPS_LAST.indexOf(group)];
  return first >= 0 ? first - GROUPS_FIRST.length : last >= 0 ? last + 1 : 0;
}

function grouped(tracks: readonly Track[]): Map<string, Track[]> {
  const groups = new Map<string, Track[]>();
  for (const track of tracks) {
    const group = groups.get(track.group);
    if (group === undefined) {
      groups.set(track.group, [track]);
    } else {
      group.push(track);
    }
  }
  return groups;
}

/** Tracks with those that are part of them right below, in the order of depth. */
function nestedOrder(unordered: readonly Track[]): Track[] {
  const keyed = unordered.map((track) => ({ track, key: sortKey(track) }));
  const tracks = keyed.sort((one, other) => (one.key < other.key ? -1 : 1)).map(({ track }) => track);
  const inside = new Set(tracks.map((track) => track.number));
  const parts = new Map<number, Track[]>();
  const tops: Track[] = [];
  for (const track of tracks) {
    if (track.parent !== null && inside.has(track.parent) && track.parent !== track.number) {
      parts.set(track.parent, [...(parts.get(track.parent) ?? []), track]);
    } else {
      tops.push(track);
    }
  }
  const ordered: Track[] = [];
  const seen = new Set<number>();
  const add = (track: Track): void => {
    if (seen.has(track.number)) {
      return;
    }
    seen.add(track.number);
    ordered.push(track);
    const below = [...(parts.get(track.number) ?? [])].sort((one, other) => (one.depth ?? 0) - (other.depth ?? 0));
    below.forEach(add);
  };
  tops.forEach(add);
  // Tracks that are part of each other would hide one another.
  tracks.forEach(add);
  return ordered;
}

class Rows {
  readonly all: Row[] = [];
  private readonly isMeant: (track: Track) => boolean;
  private readonly sizeOf: (track: Track) => RowSize;
  private bottom = 0;

  constructor(isMeant: (track: Track) => boolean, size: (track: Track) => RowSize) {
    this.isMeant = isMeant;
    this.sizeOf = size;
  }

  group(group: string, tracks: readonly Track[], folded: boolean, pinned: boolean): void {
    this.add({ key: `group ${group}`, group, track: null, pinned, count: tracks.length, folded, dimmed: false }, HEAD_HEIGHT);
    if (folded) {
      return;
    }
    for (const track of tracks) {
      const key = `${pinned ? "pinned" : "track"} ${track.id}`;
      this.add({ key, group, track, pinned, count: 0, folded: false, dimmed: !this.isMeant(track) }, heightIn(track, this.sizeOf(track)));
    }
  }

  private add(row: Omit<Row, "top" | "height">, height: CssPx): void {
    this.all.push({ ...row, top: cssPx(this.bottom), height });
    this.bottom += height;
  }
}

/** Rows that are small have room for bars; names need more. */
const FACTORS: Readonly<Record<RowSize, number>> = { small: 0.6, plain: 1, large: 2 };

function heightIn(track: Track, size: RowSize): CssPx {
  const isNested = track.parent !== null && track.kind === "states";
  return cssPx(Math.round((isNested ? NESTED_HEIGHT : HEIGHTS[track.kind]) * FACTORS[size]));
}

/** The name of a track where it stands: a part of a thread that has no row of its own says of which one, and of which host. */
export function nameOf(track: Track): string {
  if (track.parent === null && track.tid !== null && track.depth !== null && track.depth > 0 && track.name.startsWith("durations")) {
    return `thread ${track.tid}: depth ${track.depth}${track.host === null ? "" : ` · ${track.host}`}`;
  }
  const name = track.parent === null && track.tid !== null && !track.name.includes(String(track.tid)) ? `thread ${track.tid}: ${track.name}` : track.name;
  return track.host === null ? name : `${name} · ${track.host}`;
}

/** The same below the head of its group, which says that these are threads: names that differ at their ends are not cut so soon. */
export function labelOf(track: Track): string {
  return nameOf(track).replace(/^thread (?=\d+: )/, "");
}

/** How high all rows are together. */
export function heightOf(rows: readonly Row[]): CssPx {
  const last = rows.at(-1);
  return cssPx(last === undefined ? 0 : last.top + last.height);
}

/** Those rows of which something lies between two heights. */
export function rowsBetween(rows: readonly Row[], top: number, bottom: number): readonly Row[] {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const row = rows[middle];
    if (row !== undefined && row.top + row.height <= top) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  let end = low;
  while (end < rows.length && (rows[end]?.top ?? bottom) < bottom) {
    end++;
  }
  return rows.slice(low, end);
}

/** The list with `item` in it, or without it if it was there. */
export function toggled(list: readonly string[], item: string): readonly string[] {
  return list.includes(item) ? list.filter((other) => other !== item) : [...list, item];
}
