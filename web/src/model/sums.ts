// The content of tracks in a span of time, added up: how long each value is there, how many events there are, the values of counters.
//
// It is added up of buckets as the server tells them, at least a thousand in the span; where a track comes one by one, of its runs and instants,
// and is exact then (`runsums.ts`). Buckets at the edges count for that part of them which is in the span. A bucket names the two values that cover most of
// it: the time of all others in it is known, but not whose it is.

import { RunSum } from "./runsums.ts";
import { BUCKETS_MAX } from "./decode.ts";
import { TILE_BUCKETS } from "../units/tiles.ts";
import { bucketSpan, levelWithin, tilesIn, type Levels, type TileRange } from "./wanted.ts";
import { NONE, type Answer, type Counter, type Counts, type Heat, type Instants, type Runs, type States, type TrackItems } from "./tile.ts";
import { endOf, type Extent, type Viewport } from "./viewport.ts";

/** A value on a track. */
export interface ValueSum {
  /** Nanoseconds. */
  time: number;
  /** Runs of which a part is in the span, or events; `null`: there is no count by value. */
  count: number | null;
  /** The longest part of a run in the span; `null`: unknown. */
  longest: number | null;
}

/** A track in the span. */
export interface TrackSum {
  readonly track: number;
  readonly form: "states" | "events" | "counter" | "durations" | "arrows";
  /** By value; [`NONE`]: other values, which are not known. */
  readonly values: ReadonlyMap<number, ValueSum>;
  /** Runs that begin, events, durations, arrows, changes of a counter. */
  readonly count: number;
  /** Of a counter, as long as it is anything. */
  readonly number: { readonly min: number; readonly max: number; readonly mean: number } | null;
  /** Of durations the bins of the shortest and the longest. */
  readonly bins: readonly [number, number] | null;
  /** Of states so many nanoseconds at most are of values that are not told apart. */
  readonly untold: number;
  /** Nothing of it is rounded. */
  readonly isExact: boolean;
}

export interface Sums {
  readonly tracks: readonly TrackSum[];
  /** All of the span was read. */
  readonly isRead: boolean;
}

/** The rounding of two shares of a bucket, in their units. */
const SHARE_STEPS = 2;
const SHARE_FULL = 65_535;
/** So many buckets at most: in whole tiles they are what the server tells in one answer. */
const BUCKETS = BUCKETS_MAX - 2 * TILE_BUCKETS;

/** The buckets that are added up. */
export function bucketsFor(meant: Viewport, extent: Extent, levels: Levels): TileRange {
  return tilesIn(meant, extent, levelWithin(meant.span, BUCKETS, levels));
}

/** An answer, added up over a span of time of traces that go so far. */
export function sumsOf(answer: Answer, meant: Viewport, extent: Extent): Sums {
  const { level, first, tracks } = answer;
  const { parts, isRead } = knownIn(answer, meant, extent);
  const bucket = Number(bucketSpan(level));
  // Behind the end of the traces nothing is left out of the last bucket.
  const last = endOf(meant) >= extent.end ? Math.floor(Number(extent.end - 1n - extent.begin - first * bucketSpan(level)) / bucket) : -1;
  const sheet = new Sheet(bucket, parts, last);
  return { tracks: tracks.map((track) => sheet.sum(track)).map((sum) => ({ ...sum, isExact: sum.isExact && isRead })), isRead };
}

/** Whether an answer knows all of a span of time. */
export function isReadIn(answer: Answer, meant: Viewport, extent: Extent): boolean {
  return knownIn(answer, meant, extent).isRead;
}

/** The parts of a span of time that an answer knows, in nanoseconds after its begin. */
function knownIn({ level, first, spans }: Answer, meant: Viewport, { begin: origin }: Extent): { readonly parts: ReadonlyArray<readonly [number, number]>; readonly isRead: boolean } {
  const bucket = Number(bucketSpan(level));
  const begin = Number(meant.begin - origin - first * bucketSpan(level));
  const [low, high] = [Math.max(0, begin), begin + Number(meant.span)];
  const known = spans.filter(({ quality }) => quality === "exact" || quality === "building");
  const parts = known.map((span) => [Math.max(low, span.begin * bucket), Math.min(high, span.end * bucket)] as const).filter(([from, to]) => to > from);
  const length = parts.reduce((sum, [from, to]) => sum + to - from, 0);
  return { parts, isRead: length >= high - low && !known.some(({ quality }) => quality !== "exact") };
}

/** Adds up, of the parts of time that are meant and known. Times are nanoseconds after the begin of the first bucket. */
class Sheet {
  private readonly bucket: number;
  private readonly parts: ReadonlyArray<readonly [number, number]>;
  /** The bucket in which traces end, if they are meant up to there. */
  private readonly last: number;

  constructor(bucket: number, parts: ReadonlyArray<readonly [number, number]>, last: number) {
    this.bucket = bucket;
    this.parts = parts;
    this.last = last;
  }

  sum({ track, items, carry }: TrackItems): TrackSum {
    const plain = { track, number: null, bins: null, untold: 0, isExact: false };
    switch (items.form) {
      case "states":
        return { ...plain, form: "states", ...this.states(items, carry) };
      case "runs":
        return { ...plain, form: "states", ...this.runs(items), isExact: true };
      case "counts":
        return { ...plain, form: "events", ...this.counts(items), isExact: this.isWhole(items.bucket) };
      case "instants":
        return { ...plain, form: "events", ...this.instants(items), isExact: true };
      case "counter":
        return { ...plain, form: "counter", values: new Map(), ...this.counter(items) };
      case "heat":
        return { ...plain, form: "durations", values: new Map(), ...this.heat(items) };
      case "arrow counts":
        return { ...plain, form: "arrows", values: new Map(), count: this.counted(items.bucket, items.count), isExact: this.isWhole(items.bucket) };
      case "arrows":
        return { ...plain, form: "arrows", values: new Map(), count: items.begin.reduce((sum, at) => sum + this.inside(at), 0), isExact: true };
    }
  }

  /** How much of a time is meant. */
  private overlap(from: number, to: number): number {
    return this.parts.reduce((sum, [low, high]) => sum + Math.max(0, Math.min(to, high) - Math.max(from, low)), 0);
  }

  private inside(at: number): number {
    return this.parts.some(([low, high]) => low <= at && at < high) ? 1 : 0;
  }

  /** Which part of a bucket is meant. */
  private part(bucket: number): number {
    return this.overlap(bucket * this.bucket, (bucket + 1) * this.bucket) / this.bucket;
  }

  /** How many of a bucket's occurrences are meant: all of them but at the edges, where that is about so many. */
  private partOfCount(bucket: number): number {
    return bucket === this.last && this.part(bucket) > 0 ? 1 : this.part(bucket);
  }

  /** Whether nothing that is counted lies in a bucket at an edge. */
  private isWhole(buckets: Uint32Array): boolean {
    return buckets.every((bucket) => [0, 1].includes(this.partOfCount(bucket)));
  }

  private get end(): number {
    return this.parts.at(-1)?.[1] ?? 0;
  }

  private states(items: States, carry: number): Pick<TrackSum, "values" | "count" | "untold"> {
    const values = new Map<number, ValueSum>();
    let [held, since, count, untold] = [carry, 0, 0, 0];
    const add = (value: number, time: number): void => addTo(values, value, { time, count: null, longest: null });
    for (const [at, bucket] of items.bucket.entries()) {
      add(held, this.overlap(since, bucket * this.bucket));
      const part = this.part(bucket);
      const [share, second] = [items.share[at] ?? 0, items.shareSecond[at] ?? 0];
      const first = items.value[at] ?? NONE;
      // One that covers nothing of its bucket is there all the same.
      if (part > 0 && share === 0 && !values.has(first)) {
        values.set(first, { time: 0, count: null, longest: null });
      }
      add(first, (share / SHARE_FULL) * part * this.bucket);
      add(items.second[at] ?? NONE, (second / SHARE_FULL) * part * this.bucket);
      // Where there is no second value, the rest of the bucket has none at all.
      const left = items.second[at] === NONE ? 0 : SHARE_FULL - share - second;
      untold += left > SHARE_STEPS ? (left / SHARE_FULL) * part * this.bucket : 0;
      count += (items.begins[at] ?? 0) * part;
      [held, since] = [items.last[at] ?? NONE, (bucket + 1) * this.bucket];
    }
    add(held, this.overlap(since, this.end));
    values.delete(NONE);
    return { values, count: Math.round(count), untold };
  }

  private runs(items: Runs): Pick<TrackSum, "values" | "count"> {
    const sum = new RunSum();
    this.parts.forEach((part) => sum.add(items, 0, part));
    return { values: sum.values, count: sum.count };
  }

  private counts(items: Counts): Pick<TrackSum, "values" | "count"> {
    const values = new Map<number, ValueSum>();
    let all = 0;
    for (const [at, bucket] of items.bucket.entries()) {
      const part = this.partOfCount(bucket);
      const [count, ofValue] = [(items.count[at] ?? 0) * part, (items.countOfValue[at] ?? 0) * part];
      addTo(values, items.value[at] ?? NONE, { time: 0, count: ofValue, longest: null });
      addTo(values, NONE, { time: 0, count: count - ofValue, longest: null });
      all += count;
    }
    return { values: new Map([...values].filter(([, { count }]) => (count ?? 0) > 0).map(([value, sum]) => [value, { ...sum, count: Math.round(sum.count ?? 0) }])), count: Math.round(all) };
  }

  private instants(items: Instants): Pick<TrackSum, "values" | "count"> {
    const values = new Map<number, ValueSum>();
    const meant = [...items.value].filter((_, at) => this.inside(items.time[at] ?? NaN) === 1);
    meant.forEach((value) => addTo(values, value, { time: 0, count: 1, longest: null }));
    return { values, count: meant.length };
  }

  private counter(items: Counter): Pick<TrackSum, "count" | "number"> {
    let [held, since, time, integral, min, max] = [items.held, 0, 0, 0, Infinity, -Infinity];
    const add = (mean: number, low: number, high: number, length: number): void => {
      if (length > 0 && !Number.isNaN(mean)) {
        [time, integral, min, max] = [time + length, integral + mean * length, Math.min(min, low), Math.max(max, high)];
      }
    };
    for (const [at, bucket] of items.bucket.entries()) {
      add(held, held, held, this.overlap(since, bucket * this.bucket));
      add(items.mean[at] ?? NaN, items.min[at] ?? NaN, items.max[at] ?? NaN, this.part(bucket) * this.bucket);
      [held, since] = [items.last[at] ?? NaN, (bucket + 1) * this.bucket];
    }
    add(held, held, held, this.overlap(since, this.end));
    return { count: this.counted(items.bucket, items.changes), number: time === 0 ? null : { min, max, mean: integral / time } };
  }

  private heat(items: Heat): Pick<TrackSum, "count" | "bins"> {
    const bins = [...items.bin].filter((_, at) => this.part(items.bucket[at] ?? 0) > 0);
    return { count: this.counted(items.bucket, items.count), bins: bins.length === 0 ? null : [bins.reduce((one, other) => Math.min(one, other)), bins.reduce((one, other) => Math.max(one, other))] };
  }

  private counted(buckets: Uint32Array, counts: Uint32Array): number {
    return Math.round(counts.reduce((sum, count, at) => sum + count * this.partOfCount(buckets[at] ?? 0), 0));
  }
}

/** Nothing is added where there is nothing; a number that one of two does not know, their sum does not know. */
function addTo(values: Map<number, ValueSum>, value: number, more: ValueSum): void {
  const before = values.get(value);
  if (more.time <= 0 && (more.count ?? 0) <= 0) {
    return;
  }
  values.set(value, before === undefined ? more : added(before, more));
}

/** Two sums as one. */
export function added(one: ValueSum, other: ValueSum): ValueSum {
  const count = one.count === null || other.count === null ? null : one.count + other.count;
  const longest = one.longest === null || other.longest === null ? null : Math.max(one.longest, other.longest);
  return { time: one.time + other.time, count, longest };
}

/** The values that sums speak of have numbers below this one. */
export function valuesIn({ tracks }: Sums): number {
  return tracks.reduce((most, { values }) => [...values.keys()].reduce((max, value) => (value === NONE ? max : Math.max(max, value + 1)), most), 0);
}
