// The states of a track, as pixels of its strip: runs one by one, and buckets that sum them up, look the same.
//
//     longer than a pixel     from pixel to pixel, as high as the state: running is high, blocked is low
//     shorter than a pixel    all of a pixel together: at the bottom the state at rest, and on it, as high as their share of the pixel,
//                             those at work, whichever threads or names
//
//     │      ┌─┐             A CPU that is busy for 60 % of a pixel has a column of 60 % of the height there, also if a hundred threads
//     │▁▁▁▁▁▁│ │▄▄█▄▁▁       run for that. Nothing is invisible: a run of a nanosecond has two rows. On rows in which things happen now
//                             and then, as threads that run for a moment, a column begins at three quarters of the height, so that it is found.

import type { Place } from "../model/geometry.ts";
import { BEGIN_UNKNOWN, IN_DOUBT, NONE, type Runs, type States } from "../model/tile.ts";
import type { Looks } from "./looks.ts";
import type { Strip } from "./strip.ts";

/** A bar of one value that may have room for its name. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly value: number;
}

/** A pixel tracks as many values; the painter adds up further ones that are not at rest. */
const VALUES_MAX = 8;
/** A second value that covers so much of a pixel is drawn below the first one. */
const SECOND_SHARE = 0.25;
/** A state at rest that covers less of a pixel is not drawn below those at work. */
const REST_SHARE = 1 / 32;
/** Rows of the smallest part of a pixel. */
const ROWS_MIN = 2;
/** How high that is on rows where single runs are to be found, of all rows. */
const FOUND_SHARE = 0.75;
/** Bars of as many pixels have an edge at their left. */
const EDGE_PX = 4;
/** More than the error of a place on the screen, and far less than a pixel. */
const ROUNDING = 1e-6;
/** More begins in a pixel than this have a higher mark. */
const MANY_BEGINS = 7;

/** Paints the states of one track. Its pieces come from left to right. */
export class StatePainter {
  private readonly strip: Strip;
  private readonly looks: Looks;
  private readonly mark: number;
  private readonly barMin: number;
  private readonly rowsMin: number;
  private readonly bars: Bar[] = [];
  private readonly edges: { readonly x: number; readonly value: number }[] = [];
  /** The pixel that is being summed up, and the sums. */
  private x = -1;
  private count = 0;
  private readonly value = new Uint32Array(VALUES_MAX);
  private readonly part = new Float64Array(VALUES_MAX);
  private readonly isLong = new Uint8Array(VALUES_MAX);
  private readonly isPale = new Uint8Array(VALUES_MAX);
  /** The part of values at work that are not told apart. */
  private more = 0;
  private begins = 0;
  /** The value at the end of the latest piece, since when it lasts, and where that piece ends. */
  private last = { value: NONE, since: 0, end: -1 };

  /** `mark` is the color of marks; `finish` returns bars of at least `barMin` pixels, for their names. `isLoad`: the height of columns is a share alone. */
  constructor(strip: Strip, looks: Looks, { mark, barMin, isLoad }: { readonly mark: number; readonly barMin: number; readonly isLoad: boolean }) {
    this.strip = strip;
    this.looks = looks;
    this.mark = mark;
    this.barMin = barMin;
    this.rowsMin = isLoad ? 0 : Math.round(strip.rows * FOUND_SHARE);
  }

  /** Buckets of a tile; `carry` is the value before the first one. */
  states(place: Place, items: States, carry: number): void {
    let held = carry;
    let since = place.low;
    let hasBegun = false;
    // The value at the begin may have lasted in the piece before.
    let lasted = this.last.value === carry && Math.abs(this.last.end - place.low) < 1e-3 ? this.last.since : since;
    for (let index = 0; index < items.bucket.length; index++) {
      const from = place.left + (items.bucket[index] ?? 0) * place.step;
      const to = from + place.step;
      if (to <= place.low) {
        held = items.last[index] ?? NONE;
        lasted = since;
        continue;
      }
      if (from >= place.high) {
        break;
      }
      this.held(since, Math.min(from, place.high), held, hasBegun);
      const next = place.left + (items.bucket[index + 1] ?? Infinity) * place.step;
      const lasting = { before: from - lasted >= 1 ? held : NONE, behind: next - to >= 1 ? (items.last[index] ?? NONE) : NONE };
      this.bucket(items, index, Math.max(from, place.low), Math.min(to, place.high), lasting);
      held = items.last[index] ?? NONE;
      hasBegun = true;
      since = to;
      lasted = to;
    }
    this.held(since, place.high, held, hasBegun);
    this.last = { value: held, since: lasted, end: place.high };
  }

  /** Runs of a tile, in the order of their begins. */
  runs(place: Place, items: Runs): void {
    for (let index = 0; index < items.begin.length; index++) {
      const value = items.value[index] ?? NONE;
      const begin = place.left + (items.begin[index] ?? 0) * place.perNs;
      const end = place.left + (items.end[index] ?? 0) * place.perNs;
      const from = Math.max(begin, place.low);
      const to = Math.max(from, Math.min(end, place.high));
      // A run without length belongs to the piece in which it begins.
      const begins = begin > place.low - ROUNDING;
      if (value === NONE || begin >= place.high || (end <= place.low && !begins)) {
        continue;
      }
      const flags = items.flags[index] ?? 0;
      const isKnown = begins && (flags & BEGIN_UNKNOWN) === 0;
      if (begins) {
        this.begin(Math.floor(from), 1);
      }
      this.cover(from, to, value, end - begin >= 1, (flags & IN_DOUBT) !== 0);
      this.bar(from, to, value, isKnown);
    }
  }

  /** Draws the last pixel. Returns the bars that are wide. */
  finish(): Bar[] {
    this.flush();
    for (const { x, value } of this.edges) {
      const { edge, rows } = this.looks.of(value);
      this.strip.fill(x, x + 1, this.strip.rows - rows, this.strip.rows, edge);
    }
    return this.bars;
  }

  /** One value between two buckets. */
  private held(from: number, to: number, value: number, hasBegun: boolean): void {
    if (value !== NONE && from < to) {
      this.cover(from, to, value, true, false);
      this.bar(from, to, value, hasBegun);
    }
  }

  /** A bucket in which something changes. Values that last before or behind it for a pixel are drawn from pixel to pixel. */
  private bucket(items: States, index: number, from: number, to: number, { before, behind }: { readonly before: number; readonly behind: number }): void {
    const [value, second, busiest] = [items.value[index] ?? NONE, items.second[index] ?? NONE, items.busiest[index] ?? NONE];
    const [share, shareSecond] = [(items.share[index] ?? 0) / 65_535, (items.shareSecond[index] ?? 0) / 65_535];
    const atWork = (one: number, of: number): number => (one === NONE || this.looks.rest[one] === 1 ? 0 : of);
    const others = Math.max(0, (items.busy[index] ?? 0) / 65_535 - atWork(value, share) - atWork(second, shareSecond));
    const width = Math.max(to - from, Number.MIN_VALUE);
    for (let x = Math.floor(from); x < to; x++) {
      const part = Math.min(to, x + 1) - Math.max(from, x);
      if (value !== NONE) {
        this.add(x, value, part * share, value === before || value === behind, false);
      }
      if (second !== NONE) {
        this.add(x, second, part * shareSecond, second === before || second === behind, false);
      }
      if (others > 1 / 4_096 && busiest !== NONE) {
        this.add(x, busiest, part * others, false, false);
      }
      this.begin(x, ((items.begins[index] ?? 0) * part) / width);
    }
  }

  /** One value from place to place. */
  private cover(from: number, to: number, value: number, isLong: boolean, isPale: boolean): void {
    const [first, last] = [Math.floor(from), Math.floor(to)];
    if (first === last) {
      this.add(first, value, to - from, isLong, isPale);
      return;
    }
    this.add(first, value, first + 1 - from, isLong, isPale);
    if (last > first + 1) {
      this.flush();
      const look = this.looks.of(value);
      this.strip.fill(first + 1, last, this.strip.rows - look.rows, this.strip.rows, isPale ? look.pale : look.packed);
    }
    if (to > last) {
      this.add(last, value, to - last, isLong, isPale);
    }
  }

  /** Remembers a bar that is wide, and the edge at its begin. */
  private bar(begin: number, end: number, value: number, isBeginKnown: boolean): void {
    if (end - begin < EDGE_PX - 1) {
      return;
    }
    const [from, to] = [Math.round(begin), Math.round(end)];
    if (to - from >= EDGE_PX && isBeginKnown) {
      this.edges.push({ x: from, value });
    }
    const before = this.bars.at(-1);
    if (to - from < this.barMin) {
      return;
    }
    if (before !== undefined && before.value === value && before.to === from && !isBeginKnown) {
      this.bars[this.bars.length - 1] = { ...before, to };
    } else {
      this.bars.push({ from, to, value });
    }
  }

  private begin(x: number, times: number): void {
    this.move(x);
    this.begins += times;
  }

  private move(x: number): void {
    if (x !== this.x) {
      this.flush();
      this.x = x;
    }
  }

  /** A part of a pixel. */
  private add(x: number, value: number, part: number, isLong: boolean, isPale: boolean): void {
    this.move(x);
    let slot = 0;
    while (slot < this.count && this.value[slot] !== value) {
      slot++;
    }
    if (slot === VALUES_MAX) {
      this.more += this.looks.rest[value] === 1 ? 0 : part;
      return;
    }
    if (slot === this.count) {
      this.count++;
      this.value[slot] = value;
      this.part[slot] = 0;
      this.isLong[slot] = 1;
      this.isPale[slot] = 0;
    }
    this.part[slot] = (this.part[slot] ?? 0) + part;
    this.isLong[slot] = (this.isLong[slot] ?? 0) & (isLong ? 1 : 0);
    this.isPale[slot] = (this.isPale[slot] ?? 0) | (isPale ? 1 : 0);
  }

  /** Draws the pixel that was summed up. */
  private flush(): void {
    if (this.count > 0) {
      if (this.hasShort()) {
        this.drawShares();
      } else {
        this.drawNearest();
      }
      if (this.begins > 1) {
        this.strip.fill(this.x, this.x + 1, 0, this.begins > MANY_BEGINS ? 2 : 1, this.mark);
      }
    }
    this.x = -1;
    this.count = 0;
    this.more = 0;
    this.begins = 0;
  }

  private hasShort(): boolean {
    let all = 1;
    for (let slot = 0; slot < this.count; slot++) {
      all &= this.isLong[slot] ?? 0;
    }
    return all === 0;
  }

  /** Of long runs that meet in the pixel the one that covers most of it, if that is more than there is of nothing. */
  private drawNearest(): void {
    let [most, rest] = [0, 1];
    for (let slot = 0; slot < this.count; slot++) {
      most = (this.part[slot] ?? 0) > (this.part[most] ?? 0) ? slot : most;
      rest -= this.part[slot] ?? 0;
    }
    if ((this.part[most] ?? 0) >= rest) {
      this.fill(0, this.looks.rows[this.value[most] ?? 0] ?? 1, most);
    }
  }

  /** The state at rest, and on it those at work, as high as their share. */
  private drawShares(): void {
    let [rest, restNext, top, topNext] = [-1, -1, -1, -1];
    let busy = this.more;
    const partOf = (slot: number): number => (slot < 0 ? -1 : (this.part[slot] ?? 0));
    for (let slot = 0; slot < this.count; slot++) {
      const part = this.part[slot] ?? 0;
      if (this.looks.rest[this.value[slot] ?? 0] === 1) {
        [rest, restNext] = part > partOf(rest) ? [slot, rest] : part > partOf(restNext) ? [rest, slot] : [rest, restNext];
      } else {
        busy += part;
        [top, topNext] = part > partOf(top) ? [slot, top] : part > partOf(topNext) ? [top, slot] : [top, topNext];
      }
    }
    const rowsOf = (slot: number): number => this.looks.rows[this.value[slot] ?? 0] ?? 1;
    let base = 0;
    if (rest >= 0 && (top < 0 || partOf(rest) >= REST_SHARE)) {
      base = rowsOf(rest);
      this.fill(0, base, rest);
      if (top < 0 && partOf(restNext) > SECOND_SHARE) {
        this.fill(0, Math.min(base, rowsOf(restNext), this.strip.rows >> 2), restNext);
      }
    }
    if (top >= 0) {
      const room = Math.max(ROWS_MIN, rowsOf(top) - base);
      const least = Math.min(room, Math.max(0, this.rowsMin - base));
      const rows = Math.max(ROWS_MIN, least + Math.round((room - least) * Math.min(1, busy)));
      this.fill(base, base + rows, top);
      if (partOf(topNext) > SECOND_SHARE) {
        this.fill(base, base + Math.max(ROWS_MIN, Math.round((rows * partOf(topNext)) / busy)), topNext);
      }
    }
  }

  /** Rows of the pixel, counted from the bottom, in the color of a value. */
  private fill(from: number, to: number, slot: number): void {
    const value = this.value[slot] ?? 0;
    const colour = this.isPale[slot] === 1 ? this.looks.of(value).pale : (this.looks.packed[value] ?? this.mark);
    this.strip.fill(this.x, this.x + 1, this.strip.rows - to, this.strip.rows - from, colour);
  }
}
