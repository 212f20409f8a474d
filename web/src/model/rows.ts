// The rows of the timeline, from top to bottom, and their places: pinned tracks, then each group with its tracks below its head.

import { cssPx, type CssPx } from "../units/screen.ts";
import type { Catalogue, Track } from "./catalogue.ts";
import { trackTest } from "./filter-tracks.ts";
import { PLAIN_FILTER, type Filter } from "./filter.ts";
import { groupsIn } from "./groups.ts";
import { shownTest, sizeOf, type Layout, type RowSize } from "./layout.ts";
import { pinnedTracks } from "./pins.ts";
import { plain } from "./plain.ts";
import { thingsIn, thingsText } from "./things.ts";

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
  /** Of a head: how many CPUs, threads or other things it stands for, and whether their tracks are folded. */
  readonly count: number;
  /** Of a head: the same in words, with the number of rows. */
  readonly counted: string;
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

/** All rows. Tracks of a group stand in the order of their ids, so that it is the same each time; parts of a track below it. `idle` are tracks
 * in which nothing happens, as far as that is known. */
export function rowsOf(catalogue: Catalogue, layout: Layout, filter: Filter = PLAIN_FILTER, idle: ReadonlySet<number> | null = null): Row[] {
  const isShown = shownTest(layout);
  const folded = new Set(layout.folded);
  const isMeant = trackTest(filter, catalogue.tracks) ?? (() => true);
  const isAwake = (track: Track): boolean => !layout.active || idle === null || !idle.has(track.number);
  const isWanted = (track: Track): boolean => isShown(track) && (filter.mode === "dim" || isMeant(track));
  const isThere = (track: Track): boolean => isWanted(track) && isAwake(track);
  const rows = new Rows(catalogue.tracks, filter.mode === "dim" ? isMeant : () => true, sizeOf(layout));
  // The user wants to see these in any case: they do not come and go with the window.
  const pinned = pinnedTracks(layout, catalogue.tracks).filter((track) => isWanted(track));
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

class Rows {
  readonly all: Row[] = [];
  private readonly isMeant: (track: Track) => boolean;
  private readonly sizeOf: (track: Track) => RowSize;
  private readonly known: readonly Track[];
  private bottom = 0;

  constructor(known: readonly Track[], isMeant: (track: Track) => boolean, size: (track: Track) => RowSize) {
    this.known = known;
    this.isMeant = isMeant;
    this.sizeOf = size;
  }

  group(group: string, tracks: readonly Track[], folded: boolean, pinned: boolean): void {
    const [count, told] = [thingsIn(group, tracks), thingsText(group, tracks, this.known)];
    this.add({ key: `group ${group}`, group, track: null, pinned, count, counted: told, folded, dimmed: false }, HEAD_HEIGHT);
    if (folded) {
      return;
    }
    for (const track of tracks) {
      const key = `${pinned ? "pinned" : "track"} ${track.id}`;
      this.add({ key, group, track, pinned, count: 0, counted: "", folded: false, dimmed: !this.isMeant(track) }, heightIn(track, this.sizeOf(track)));
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

/** The name of a track as it is shown. */
export function nameOf(track: Track): string {
  return plain(nameIn(track));
}

/** The name of a track where it stands: a part of a thread that has no row of its own says of which one, and of which host. */
function nameIn(track: Track): string {
  if (track.parent === null && track.tid !== null && track.depth !== null && track.depth > 0 && track.name.startsWith("durations")) {
    return `thread ${track.tid}: depth ${track.depth}${track.host === null ? "" : ` · ${track.host}`}`;
  }
  const name = track.parent === null && track.tid !== null && !track.name.includes(String(track.tid)) ? `thread ${track.tid}: ${track.name}` : track.name;
  return track.host === null ? name : `${name} · ${track.host}`;
}

/** The same below the head of its group, which says that these are threads: names that differ at their ends are not cut so soon. */
export function labelOf(track: Track): string {
  return plain(nameIn(track).replace(/^thread (?=\d+: )/, ""));
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
