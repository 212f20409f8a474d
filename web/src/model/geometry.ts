// The places of a tile's buckets on the screen.

import { TILE_BUCKETS, type Level, type TileIndex } from "../units/tiles.ts";
import type { Px } from "../units/screen.ts";
import type { Nanos } from "../units/time.ts";
import { pixelOf, type Viewport } from "./viewport.ts";
import { tileBegin } from "./wanted.ts";

/** Turns times into pixels. */
export interface Frame {
  readonly view: Viewport;
  readonly width: Px;
  /** When the traces begin: buckets count from there. */
  readonly origin: Nanos;
}

/** A tile on the screen: its bucket `b` begins at pixel `left + b * step`. */
export interface Place {
  readonly left: number;
  /** Pixels of a bucket. */
  readonly step: number;
  /** Pixels of a nanosecond. */
  readonly perNs: number;
  /** Whole pixels to draw: from `from` to before `to`. */
  readonly from: number;
  readonly to: number;
  /** The same, not rounded: pieces that meet in a pixel have a part of it each. */
  readonly low: number;
  readonly high: number;
}

/** Where a tile lies, and which pixels its buckets from `begin` to before `end` have. */
export function placeOf(frame: Frame, level: Level, index: TileIndex, begin = 0, end: number = TILE_BUCKETS): Place {
  const perNs = frame.width / Number(frame.view.span);
  const left = pixelOf(frame.view, tileBegin(level, index, frame.origin), frame.width);
  const step = 2 ** level * perNs;
  const from = Math.max(0, firstPixel(left + begin * step));
  const to = Math.min(frame.width, firstPixel(left + end * step));
  return { left, step, perNs, from, to, low: Math.max(0, left + begin * step), high: Math.min(frame.width, left + end * step) };
}

/** The pixels of a part of a tile, from one place on the screen to another: at least one, however short the part is. A part that begins within half a
 * pixel before the tile's end is on the tile's last pixel, because the next tile does not know it. */
export function pixelsOf(place: Place, left: number, right: number): readonly [number, number] {
  const begin = firstPixel(left);
  const from = begin === place.to && left < place.high ? begin - 1 : begin;
  return [from, Math.max(firstPixel(right), from + 1)];
}

/** The first pixel with its middle not left of `x`: an interval between two places covers the pixels between their first ones. */
export function firstPixel(x: number): number {
  return Math.ceil(x - 0.5);
}
