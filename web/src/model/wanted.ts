// The tiles that a window needs.
//
// The level is the highest one with buckets of a device pixel or less, for a screen of at least 2048 pixels: so a window shows the same on a
// narrow screen, on a wide one, and beside an open panel. The server may not have levels that low or high: then its nearest one is taken.

import type { Px } from "../units/screen.ts";
import { LEVEL_MAX, TILE_BUCKETS, level, tileIndex, type Level, type TileIndex } from "../units/tiles.ts";
import { nanos, type Nanos } from "../units/time.ts";
import { endOf, type Extent, type Viewport } from "./viewport.ts";

/** The levels that a server has. */
export interface Levels {
  readonly min: Level;
  readonly max: Level;
}

/** Neighboring tiles of a level: `count` from `first` on. */
export interface TileRange {
  readonly level: Level;
  readonly first: TileIndex;
  readonly count: number;
}

const TILE_BITS = BigInt(Math.log2(TILE_BUCKETS));

/** Screens up to so many pixels have the same levels; wider ones those of the next power of two. */
const PIXELS_MIN = 2_048;

/** The level in which a bucket is a pixel or less. */
export function levelFor(span: Nanos, width: Px, levels: Levels): Level {
  const pixels = BigInt(2 ** Math.ceil(Math.log2(Math.max(PIXELS_MIN, width))));
  let found = 0;
  while (found < LEVEL_MAX && pixels << BigInt(found + 1) <= span) {
    found++;
  }
  return level(Math.min(Math.max(found, levels.min), levels.max));
}

/** The lowest level in which a span has at most so many buckets. */
export function levelWithin(span: Nanos, most: number, levels: Levels): Level {
  let found = 0;
  while (found < LEVEL_MAX && BigInt(most) << BigInt(found) < span) {
    found++;
  }
  return level(Math.min(Math.max(found, levels.min), levels.max));
}

/** How long a bucket is. */
export function bucketSpan(of: Level): Nanos {
  return nanos(1n << BigInt(of));
}

/** How long a tile is. */
export function tileSpan(of: Level): Nanos {
  return nanos(1n << (BigInt(of) + TILE_BITS));
}

/** When a tile begins. */
export function tileBegin(of: Level, tile: TileIndex, origin: Nanos): Nanos {
  return nanos(origin + (BigInt(tile) << (BigInt(of) + TILE_BITS)));
}

/** The tiles of a level that a window touches; none before the begin of the traces, none behind their end. */
export function tilesIn(view: Viewport, extent: Extent, of: Level): TileRange {
  const shift = BigInt(of) + TILE_BITS;
  const latest = (extent.end > extent.begin ? extent.end - extent.begin - 1n : 0n) >> shift;
  const limit = (index: bigint): bigint => (index < 0n ? 0n : index > latest ? latest : index);
  const first = limit((view.begin - extent.begin) >> shift);
  const last = limit((endOf(view) - extent.begin - 1n) >> shift);
  return { level: of, first: tileIndex(Number(first)), count: Number(last - first) + 1 };
}

/** The same with as many tiles more on each side as `margin` says, which are asked for when nothing else is. */
export function around(range: TileRange, extent: Extent, margin: number): TileRange {
  const all = tilesIn({ begin: extent.begin, span: nanos(extent.end - extent.begin) }, extent, range.level);
  const first = Math.max(all.first, range.first - margin);
  const end = Math.min(all.first + all.count, range.first + range.count + margin);
  return { level: range.level, first: tileIndex(first), count: Math.max(0, end - first) };
}
