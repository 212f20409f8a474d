// The content of a track without states, as pixels of its strip. One function for each form that the server answers in.
//
// Buckets may be narrower than a pixel: those of one pixel are added up, also if they are of different tiles.

import { firstPixel, type Place } from "../model/geometry.ts";
import type { Looks } from "./looks.ts";
import type { Strip } from "./strip.ts";
import { NONE, type ArrowCounts, type Arrows, type Counts, type Heat, type Instants } from "../model/tile.ts";

/** Rows of the mark where an arrow leaves, and of its line. */
const ARROW_ROWS = 12;
const LINE_ROWS = 4;
/** More than the error of a place on the screen, and far less than a pixel. */
const ROUNDING = 1e-6;

/** Counts of instants or arrows of a track; its pieces come from left to right: the more there are, the higher, each doubling two rows. */
export class CountPainter {
  private readonly strip: Strip;
  private from = -1;
  private to = -1;
  private count = 0;
  private most = 0;
  private colour = 0;

  constructor(strip: Strip) {
    this.strip = strip;
  }

  counts(place: Place, items: Counts, looks: Looks, isPale: (bucket: number) => boolean): void {
    for (let index = 0; index < items.bucket.length; index++) {
      const number = items.bucket[index] ?? 0;
      const look = looks.of(items.value[index] ?? NONE);
      this.add(place, number, items.count[index] ?? 0, isPale(number) ? look.pale : look.packed);
    }
  }

  arrows(place: Place, items: ArrowCounts, colour: number): void {
    for (let index = 0; index < items.bucket.length; index++) {
      this.add(place, items.bucket[index] ?? 0, items.count[index] ?? 0, colour);
    }
  }

  /** Draws the last pixel. */
  finish(): void {
    this.strip.fill(this.from, this.to, this.strip.rows - rowsFor(this.count), this.strip.rows, this.colour);
    this.count = 0;
  }

  private add(place: Place, bucket: number, count: number, colour: number): void {
    const [from, to] = bucketPixels(place, bucket);
    if (from >= to || count === 0) {
      return;
    }
    if (from !== this.from || to !== this.to) {
      this.finish();
      [this.from, this.to, this.most] = [from, to, 0];
    }
    this.count += count;
    if (count > this.most) {
      [this.most, this.colour] = [count, colour];
    }
  }
}

/** The pixels of a bucket, in which something happens somewhere: the one with its middle, or those that it covers. Empty outside of the piece. */
function bucketPixels(place: Place, bucket: number): [number, number] {
  const [begin, end] = [Math.max(place.left + bucket * place.step, place.low), Math.min(place.left + (bucket + 1) * place.step, place.high)];
  if (begin >= end) {
    return [0, 0];
  }
  if (place.step <= 1) {
    const x = Math.floor((begin + end) / 2);
    return [x, x + 1];
  }
  const from = firstPixel(begin);
  return [from, Math.max(firstPixel(end), from + 1)];
}

/** Arrows, each for itself: a mark where one leaves, and a line until it has come. */
export function paintArrows(strip: Strip, place: Place, items: Arrows, colour: number): void {
  for (let index = 0; index < items.begin.length; index++) {
    const begin = place.left + (items.begin[index] ?? 0) * place.perNs + ROUNDING;
    const end = place.left + (items.end[index] ?? 0) * place.perNs;
    if (end + ROUNDING < place.low || begin >= place.high) {
      continue;
    }
    const x = Math.floor(Math.max(begin, place.low));
    strip.fill(x, Math.max(firstPixel(Math.min(end, place.high)), x + 1), strip.rows - LINE_ROWS, strip.rows, colour);
    if (begin >= place.low) {
      strip.fill(x, x + 1, strip.rows - ARROW_ROWS, strip.rows, colour);
    }
  }
}

function rowsFor(count: number): number {
  return count <= 0 ? 0 : 2 * Math.min(8, 2 + Math.floor(Math.log2(count)));
}

/** Instants, each for itself, `wide` pixels each. */
export function paintInstants(strip: Strip, place: Place, items: Instants, looks: Looks, wide: number): void {
  for (let index = 0; index < items.time.length; index++) {
    // Doubles may put the window's first instant a little before it.
    const at = place.left + (items.time[index] ?? 0) * place.perNs + ROUNDING;
    if (at >= place.low - wide && at < place.high) {
      strip.fill(Math.floor(at), Math.floor(at) + wide, 1, strip.rows, looks.of(items.value[index] ?? NONE).packed);
    }
  }
}

/** Which bins a heat map shows, from the bottom to the top. */
export interface Bins {
  readonly low: number;
  readonly high: number;
}

/** How often durations were how long, of a track; its pieces come from left to right: the more often, the stronger the color. */
export class HeatPainter {
  private readonly strip: Strip;
  private readonly bins: Bins;
  private readonly shades: readonly number[];
  /** Counts of the pixels that are being added up, by bin. */
  private readonly counts: Float64Array;
  private from = -1;
  private to = -1;

  constructor(strip: Strip, bins: Bins, shades: readonly number[]) {
    this.strip = strip;
    this.bins = bins;
    this.shades = shades;
    this.counts = new Float64Array(Math.max(1, bins.high - bins.low + 1));
  }

  heat(place: Place, items: Heat): void {
    for (let index = 0; index < items.bucket.length; index++) {
      const [from, to] = bucketPixels(place, items.bucket[index] ?? 0);
      if (from !== this.from || to !== this.to) {
        this.finish();
        [this.from, this.to] = [from, to];
      }
      const bin = (items.bin[index] ?? 0) - this.bins.low;
      this.counts[bin] = (this.counts[bin] ?? 0) + (items.count[index] ?? 0);
    }
  }

  /** Draws the last pixel. */
  finish(): void {
    const { rows } = this.strip;
    const all = this.counts.length;
    for (let bin = 0; bin < all; bin++) {
      const count = this.counts[bin] ?? 0;
      if (count > 0) {
        const bottom = rows - Math.floor((bin * rows) / all);
        const top = Math.min(bottom - 1, rows - Math.floor(((bin + 1) * rows) / all));
        const step = Math.min(this.shades.length - 1, Math.floor(Math.log2(Math.max(1, count))));
        this.strip.fill(this.from, this.to, top, bottom, this.shades[step] ?? 0);
      }
    }
    this.counts.fill(0);
  }
}

/** The bins that tiles have something in. */
export function binsOf(all: readonly Heat[]): Bins {
  let [low, high] = [Infinity, -Infinity];
  for (const { bin } of all) {
    for (const one of bin) {
      low = Math.min(low, one);
      high = Math.max(high, one);
    }
  }
  return low <= high ? { low, high } : { low: 0, high: 0 };
}
