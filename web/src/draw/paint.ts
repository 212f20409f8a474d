// The content of a track, as pixels of its strip. One function for each form that the server answers in.
//
// Nothing is invisible: a run shorter than a pixel gets one, and where several things share one, a mark at the top says so.

import { firstPixel, type Place } from "../model/geometry.ts";
import type { Looks } from "./looks.ts";
import type { Strip } from "./strip.ts";
import { BEGIN_UNKNOWN, IN_DOUBT, NONE, type Counts, type Heat, type Instants, type Runs, type States, type ArrowCounts, type Arrows } from "../model/tile.ts";

/** A bar of one value that may have room for its name. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly value: number;
}

/** A part of the second value that is drawn beside the first one. */
const SECOND_SHARE = 0.25 * 65_535;
/** A bar that covers less than this of its bucket is as high as its share. */
const FULL_SHARE = 0.5 * 65_535;
/** Rows of the mark where an arrow leaves. */
const ARROW_ROWS = 6;
/** Bars of as many pixels have an edge at their left. */
const EDGE_PX = 4;

/** Bars of states. Returns those that are as wide as `barMin` pixels, for their names. */
export function paintStates(strip: Strip, place: Place, items: States, carry: number, looks: Looks, mark: number, barMin: number): Bar[] {
  const bars = new Bars(strip, place, looks, barMin);
  let held = carry;
  let x = place.from;
  for (let index = 0; index < items.bucket.length; index++) {
    const begin = place.left + (items.bucket[index] ?? 0) * place.step;
    const from = firstPixel(begin);
    const to = Math.max(firstPixel(begin + place.step), from + 1);
    if (x < from) {
      bars.span(x, from, held);
    }
    if (from < place.to && to > place.from) {
      bucket(strip, items, index, looks, mark, Math.max(from, place.from), Math.min(to, place.to));
      bars.end();
    }
    held = items.last[index] ?? NONE;
    x = to;
  }
  bars.span(x, place.to, held);
  return bars.finish();
}

/** The bar of a bucket in which something changes: the second value at the bottom, the first above it, the mark at the top. */
function bucket(strip: Strip, items: States, index: number, looks: Looks, mark: number, left: number, right: number): void {
  const value = items.value[index] ?? NONE;
  const second = items.second[index] ?? NONE;
  const share = items.share[index] ?? 0;
  const shareSecond = items.shareSecond[index] ?? 0;
  const begins = items.begins[index] ?? 0;
  let bottom = strip.rows;
  if (second !== NONE && (shareSecond > SECOND_SHARE || value === NONE)) {
    const part = Math.min(6, Math.max(2, Math.round((strip.rows * shareSecond) / Math.max(1, share + shareSecond))));
    const rows = Math.min(part, looks.rows[second] ?? part);
    strip.fill(left, right, bottom - rows, bottom, looks.packed[second] ?? mark);
    bottom -= rows;
  }
  if (value !== NONE) {
    const all = share < FULL_SHARE && second === NONE ? Math.max(2, Math.round((strip.rows * share) / 65_535)) : strip.rows;
    strip.fill(left, right, strip.rows - Math.min(all, looks.rows[value] ?? all), bottom, looks.packed[value] ?? mark);
  }
  if (begins > 1) {
    strip.fill(left, right, 0, begins > 7 ? 2 : 1, mark);
  }
}

/** Bars that reach over several pixels. */
class Bars {
  private readonly wide: Bar[] = [];
  private readonly strip: Strip;
  private readonly place: Place;
  private readonly looks: Looks;
  private readonly barMin: number;
  private open: { from: number; to: number; value: number } | null = null;

  constructor(strip: Strip, place: Place, looks: Looks, barMin: number) {
    this.strip = strip;
    this.place = place;
    this.looks = looks;
    this.barMin = barMin;
  }

  /** One value from pixel to pixel. */
  span(from: number, to: number, value: number): void {
    const [left, right] = [Math.max(from, this.place.from), Math.min(to, this.place.to)];
    if (value === NONE || left >= right) {
      return;
    }
    const look = this.looks.of(value);
    this.strip.fill(left, right, this.strip.rows - look.rows, this.strip.rows, look.packed);
    if (this.open !== null && this.open.value === value && this.open.to === left) {
      this.open.to = right;
    } else {
      this.close();
      this.open = { from: left, to: right, value };
    }
  }

  /** Something else begins. */
  end(): void {
    if (this.open !== null) {
      this.close();
    }
  }

  finish(): Bar[] {
    this.close();
    return this.wide;
  }

  private close(): void {
    if (this.open !== null && this.open.to - this.open.from >= this.barMin) {
      this.wide.push(this.open);
    }
    this.open = null;
  }
}

/** Runs, each for itself. Returns those that are as wide as `barMin` pixels. */
export function paintRuns(strip: Strip, place: Place, items: Runs, looks: Looks, mark: number, barMin: number): Bar[] {
  const wide: Bar[] = [];
  let taken = -1;
  for (let index = 0; index < items.begin.length; index++) {
    const begin = firstPixel(place.left + (items.begin[index] ?? 0) * place.perNs);
    const end = Math.max(firstPixel(place.left + (items.end[index] ?? 0) * place.perNs), begin + 1);
    const [from, to] = [Math.max(begin, place.from), Math.min(end, place.to)];
    const value = items.value[index] ?? NONE;
    if (from >= to || value === NONE) {
      continue;
    }
    const look = looks.of(value);
    const flags = items.flags[index] ?? 0;
    strip.fill(from, to, strip.rows - look.rows, strip.rows, (flags & IN_DOUBT) === 0 ? look.packed : look.pale);
    if (to - from >= EDGE_PX && begin >= place.from && (flags & BEGIN_UNKNOWN) === 0) {
      strip.fill(from, from + 1, strip.rows - look.rows, strip.rows, look.edge);
    }
    if (from <= taken) {
      strip.fill(from, from + 1, 0, 1, mark);
    }
    taken = to - 1;
    if (to - from >= barMin) {
      wide.push({ from, to, value });
    }
  }
  return wide;
}

/** Counted instants: the more there are, the higher, each doubling one row. */
export function paintCounts(strip: Strip, place: Place, items: Counts, looks: Looks, isPale: (bucket: number) => boolean): void {
  for (let index = 0; index < items.bucket.length; index++) {
    const number = items.bucket[index] ?? 0;
    const look = looks.of(items.value[index] ?? NONE);
    column(strip, place, number, rowsFor(items.count[index] ?? 0), isPale(number) ? look.pale : look.packed);
  }
}

/** Counted arrows, as counted instants. */
export function paintArrowCounts(strip: Strip, place: Place, items: ArrowCounts, colour: number): void {
  for (let index = 0; index < items.bucket.length; index++) {
    column(strip, place, items.bucket[index] ?? 0, rowsFor(items.count[index] ?? 0), colour);
  }
}

/** Arrows, each for itself: a mark where one leaves, and a line until it has come. */
export function paintArrows(strip: Strip, place: Place, items: Arrows, colour: number): void {
  for (let index = 0; index < items.begin.length; index++) {
    const begin = firstPixel(place.left + (items.begin[index] ?? 0) * place.perNs);
    const end = Math.max(firstPixel(place.left + (items.end[index] ?? 0) * place.perNs), begin + 1);
    strip.fill(Math.max(begin, place.from), Math.min(end, place.to), strip.rows - 2, strip.rows, colour);
    if (begin >= place.from && begin < place.to) {
      strip.fill(begin, begin + 1, strip.rows - ARROW_ROWS, strip.rows, colour);
    }
  }
}

function column(strip: Strip, place: Place, bucketNumber: number, rows: number, colour: number): void {
  const begin = place.left + bucketNumber * place.step;
  const from = firstPixel(begin);
  // Buckets that are wide on the screen say when something happened only as exactly as they are.
  const to = Math.max(firstPixel(begin + place.step), from + 1);
  strip.fill(Math.max(from, place.from), Math.min(to, place.to), strip.rows - rows, strip.rows, colour);
}

function rowsFor(count: number): number {
  return count <= 0 ? 0 : Math.min(8, 2 + Math.floor(Math.log2(count)));
}

/** Instants, each for itself, `wide` pixels each. */
export function paintInstants(strip: Strip, place: Place, items: Instants, looks: Looks, wide: number): void {
  for (let index = 0; index < items.time.length; index++) {
    const x = Math.floor(place.left + (items.time[index] ?? 0) * place.perNs);
    if (x >= place.from - wide && x < place.to) {
      strip.fill(x, x + wide, 1, strip.rows, looks.of(items.value[index] ?? NONE).packed);
    }
  }
}

/** Which bins a heat map shows, from the bottom to the top. */
export interface Bins {
  readonly low: number;
  readonly high: number;
}

/** How often durations were how long: the more often, the stronger the color. */
export function paintHeat(strip: Strip, place: Place, items: Heat, bins: Bins, shades: readonly number[]): void {
  const all = Math.max(1, bins.high - bins.low + 1);
  for (let index = 0; index < items.bucket.length; index++) {
    const begin = place.left + (items.bucket[index] ?? 0) * place.step;
    const from = firstPixel(begin);
    const to = Math.max(firstPixel(begin + place.step), from + 1);
    const bin = (items.bin[index] ?? 0) - bins.low;
    const bottom = strip.rows - Math.floor((bin * strip.rows) / all);
    const top = Math.min(bottom - 1, strip.rows - Math.floor(((bin + 1) * strip.rows) / all));
    const step = Math.min(shades.length - 1, Math.floor(Math.log2(Math.max(1, items.count[index] ?? 0))));
    strip.fill(Math.max(from, place.from), Math.min(to, place.to), top, bottom, shades[step] ?? 0);
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
