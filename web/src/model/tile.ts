// The content of a track in some neighboring buckets, as columns: item `i` is entry `i` of each of them.
//
// Buckets count from the first one of the piece; times are nanoseconds after its begin, as doubles, which are exact there.

import { TILE_BUCKETS, type Level, type TileIndex, type TrackNumber } from "../units/tiles.ts";

/** Instead of a value: there is none. */
export const NONE = 0xffffffff;

/** How far the data of a bucket can be relied upon. */
export type Quality = "exact" | "estimated" | "building" | "unknown";

/** Buckets from `begin` to before `end` that have one quality. */
export interface Span {
  readonly begin: number;
  readonly end: number;
  readonly quality: Quality;
}

/** Runs of states, summed up by bucket. A bucket without an item is covered by the `last` of the item before it. */
export interface States {
  readonly form: "states";
  readonly bucket: Uint32Array;
  /** Covers most of the bucket. */
  readonly value: Uint32Array;
  /** Covers most of the rest, or `NONE`. */
  readonly second: Uint32Array;
  /** The value at the bucket's end, or `NONE`. */
  readonly last: Uint32Array;
  /** How many runs begin in the bucket. */
  readonly begins: Uint32Array;
  /** Parts of the bucket that `value` and `second` cover, of 65535. */
  readonly share: Uint16Array;
  readonly shareSecond: Uint16Array;
  /** Covers most of the bucket among values that are not at rest, or `NONE`. */
  readonly busiest: Uint32Array;
  /** The part of the bucket that all values cover that are not at rest. */
  readonly busy: Uint16Array;
}

/** A run's begin is before the known range. */
export const BEGIN_UNKNOWN = 1;
/** A run's end is behind the known range. */
export const END_UNKNOWN = 2;
/** Events are missing around it. */
export const IN_DOUBT = 4;
/** A message was received before it was sent, as clocks say: it begins where it is received. */
export const RECEIVED_FIRST = 8;

/** Runs, each for itself. They may begin before the first bucket and end behind the last. */
export interface Runs {
  readonly form: "runs";
  readonly begin: Float64Array;
  readonly end: Float64Array;
  readonly value: Uint32Array;
  readonly flags: Uint32Array;
}

/** Instants, counted by bucket. */
export interface Counts {
  readonly form: "counts";
  readonly bucket: Uint32Array;
  /** The most frequent value in the bucket. */
  readonly value: Uint32Array;
  readonly count: Uint32Array;
  readonly countOfValue: Uint32Array;
}

/** A number over time, by bucket. It keeps its value until it changes. */
export interface Counter {
  readonly form: "counter";
  /** The value when the first bucket begins; not a number where there is nothing yet. */
  readonly held: number;
  readonly bucket: Uint32Array;
  readonly changes: Uint32Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly last: Float64Array;
  readonly mean: Float64Array;
}

/** Arrows from track to track, counted by bucket. */
export interface ArrowCounts {
  readonly form: "arrow counts";
  readonly bucket: Uint32Array;
  readonly from: Uint32Array;
  readonly to: Uint32Array;
  readonly count: Uint32Array;
  readonly longestNs: Float64Array;
}

/** How often something fell into a bin, by bucket. */
export interface Heat {
  readonly form: "heat";
  readonly bucket: Uint32Array;
  readonly bin: Uint32Array;
  readonly count: Uint32Array;
}

/** Instants, each for itself. */
export interface Instants {
  readonly form: "instants";
  readonly time: Float64Array;
  readonly value: Uint32Array;
  readonly flags: Uint32Array;
}

/** Arrows, each for itself. */
export interface Arrows {
  readonly form: "arrows";
  readonly begin: Float64Array;
  readonly end: Float64Array;
  readonly from: Uint32Array;
  readonly to: Uint32Array;
  readonly value: Uint32Array;
  readonly flags: Uint32Array;
}

export type Items = States | Runs | Counts | Counter | ArrowCounts | Heat | Instants | Arrows;

/** A track in neighboring buckets. */
export interface TrackItems {
  readonly track: TrackNumber;
  /** The value that holds when the first bucket begins, or `NONE`. */
  readonly carry: number;
  readonly items: Items;
}

/** The server's answer: `count` buckets from `first` on, for some tracks. */
export interface Answer {
  readonly level: Level;
  readonly first: bigint;
  readonly count: number;
  readonly spans: readonly Span[];
  readonly tracks: readonly TrackItems[];
}

/** One tile of one track. */
export interface Tile extends TrackItems {
  readonly level: Level;
  readonly index: TileIndex;
  readonly spans: readonly Span[];
}

/** A tile that will not change: everything in it is exact. */
export function isSealed(spans: readonly Span[]): boolean {
  return spans.every((span) => span.quality === "exact") && coversAll(spans);
}

function coversAll(spans: readonly Span[]): boolean {
  return spans.reduce((sum, span) => sum + span.end - span.begin, 0) >= TILE_BUCKETS;
}

/** How many items there are. */
export function lengthOf(items: Items): number {
  return items.form === "instants" ? items.time.length : items.form === "runs" || items.form === "arrows" ? items.begin.length : items.bucket.length;
}

/** The highest number of a value that a tile shows, or -1. */
export function valueMax({ items, carry }: TrackItems): number {
  const columns = items.form === "states" ? [items.value, items.second, items.last, items.busiest] : "value" in items ? [items.value] : [];
  let most = carry === NONE ? -1 : carry;
  for (const column of columns) {
    for (const value of column) {
      most = value !== NONE && value > most ? value : most;
    }
  }
  return most;
}

/** The memory that a tile takes, about. */
export function bytesOf(tile: Tile): number {
  let bytes = 200 + 60 * tile.spans.length;
  for (const column of Object.values(tile.items)) {
    bytes += typeof column === "object" ? (column as ArrayBufferView).byteLength : 0;
  }
  return bytes;
}
