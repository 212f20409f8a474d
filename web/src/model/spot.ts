// Where a click points: which time of a track it means, and how long something may be that is meant by it.
//
// A pixel is longer than most runs and events. Those that tiles list one by one are pointed at even beside the pointer; of those that tiles
// sum up, the first thing of the bucket is meant, and only the server knows when that is.

import type { Piece } from "./cache.ts";
import { lowerBound } from "./split.ts";
import { END_UNKNOWN, NONE, type Arrows, type Instants, type Runs, type States } from "./tile.ts";
import { bucketSpan, tileBegin } from "./wanted.ts";
import { between, nanos, plus, type Nanos } from "../units/time.ts";
import type { Extent } from "./viewport.ts";

/** The place that the pointer asks for: the item at `time`, else the first one before `until`. */
export interface Spot {
  readonly time: Nanos;
  readonly until: Nanos;
  /** From when to when it is, where the tile says so. */
  readonly extent: Extent | null;
}

/** The item under the pointer, at most `reach` away from a time; `null` if the tiles say that there is nothing. */
export function spotAt(pieces: readonly Piece[], origin: Nanos, time: Nanos, reach: Nanos): Spot | null {
  for (const { tile, begin, end } of pieces) {
    const tileNs = tileBegin(tile.level, tile.index, origin);
    const bucket = bucketSpan(tile.level);
    const index = (time - tileNs) / bucket;
    if (time < tileNs || index < BigInt(Math.floor(begin)) || Number(index) >= end) {
      continue;
    }
    const at: Place = { time, tileNs, bucket: Number(bucket), since: Number(time - tileNs), reach: Math.max(1, Number(reach)) };
    const { items } = tile;
    const quality = tile.spans.find((span) => span.begin <= Number(index) && Number(index) < span.end)?.quality ?? "unknown";
    // Items that the server has not read may be there all the same.
    const otherwise = quality === "exact" ? null : momentOf(at);
    switch (items.form) {
      case "runs":
        return ofRuns(items, at) ?? otherwise;
      case "states":
        return ofStates(items, tile.carry, at) ?? otherwise;
      case "instants":
        return nearest(items.time, at) ?? otherwise;
      case "arrows":
        return ofArrows(items, at) ?? otherwise;
      case "counts":
      case "arrow counts":
        return ofBuckets(items.bucket, at) ?? otherwise;
      case "counter":
      case "heat":
        return momentOf(at);
    }
  }
  return momentOf({ time });
}

interface Place {
  readonly time: Nanos;
  /** When the tile begins, and how long a bucket of it is. */
  readonly tileNs: Nanos;
  readonly bucket: number;
  /** The time since the tile's begin, and how far from it one may be. */
  readonly since: number;
  readonly reach: number;
}

function momentOf({ time }: { readonly time: Nanos }): Spot {
  return { time, until: plus(time, nanos(1)), extent: null };
}

/** The run that covers the time, else the nearest one. */
function ofRuns(items: Runs, at: Place): Spot | null {
  let [found, distance] = [-1, at.reach];
  for (let index = lowerBound(items.begin, at.since + at.reach); index-- > 0; ) {
    const [begin, end] = [items.begin[index] ?? 0, items.end[index] ?? 0];
    const away = Math.max(begin - at.since, at.since - end + 1, 0);
    if (away < distance || (away === 0 && found < 0)) {
      [found, distance] = [index, away];
    }
    // Runs of a track are one behind the other: a run further left is further away.
    if (end < at.since) {
      break;
    }
  }
  if (found < 0) {
    return null;
  }
  const extent = { begin: timeOf(at, items.begin[found] ?? 0), end: timeOf(at, items.end[found] ?? 0) };
  const last = extent.end > extent.begin ? nanos(extent.end - 1n) : extent.begin;
  const isWhole = ((items.flags[found] ?? 0) & END_UNKNOWN) === 0;
  return { ...momentOf({ time: between(at.time, extent.begin, last) }), extent: isWhole ? extent : null };
}

/** Where nothing changes, the state there. In a bucket with a change, the state at the time, if that can be said; else its first. */
function ofStates(items: States, carry: number, at: Place): Spot | null {
  const bucket = Math.floor(at.since / at.bucket);
  const index = lowerBound(items.bucket, bucket);
  const held = index === 0 ? carry : (items.last[index - 1] ?? NONE);
  if (items.bucket[index] !== bucket) {
    return held === NONE ? ofBuckets(items.bucket, at) : momentOf(at);
  }
  const isCovered = held !== NONE && items.last[index] !== NONE;
  return { time: isCovered ? at.time : timeOf(at, bucket * at.bucket), until: timeOf(at, (bucket + 1) * at.bucket), extent: null };
}

/** All of the nearest bucket in which there is something. */
function ofBuckets(buckets: Uint32Array, at: Place): Spot | null {
  const bucket = Math.floor(at.since / at.bucket);
  const beside = Math.floor(at.reach / at.bucket);
  let found: number | null = null;
  for (let index = lowerBound(buckets, bucket - beside); index < buckets.length; index++) {
    const other = buckets[index] ?? 0;
    if (other > bucket + beside) {
      break;
    }
    found = found === null || Math.abs(other - bucket) < Math.abs(found - bucket) ? other : found;
  }
  return found === null ? null : { time: timeOf(at, found * at.bucket), until: timeOf(at, (found + 1) * at.bucket), extent: null };
}

function nearest(times: Instants["time"], at: Place): Spot | null {
  const after = lowerBound(times, at.since);
  const [one, other] = [times[after - 1] ?? -Infinity, times[after] ?? Infinity];
  const found = at.since - one < other - at.since ? one : other;
  if (Math.abs(found - at.since) >= at.reach) {
    return null;
  }
  const time = timeOf(at, found);
  return { ...momentOf({ time }), extent: { begin: time, end: time } };
}

/** The arrow that leaves nearest to the time, or is on its way then. */
function ofArrows(items: Arrows, at: Place): Spot | null {
  let [found, distance] = [-1, at.reach];
  for (let index = lowerBound(items.begin, at.since + at.reach); index-- > 0; ) {
    const [begin, end] = [items.begin[index] ?? 0, items.end[index] ?? 0];
    const away = end > at.since ? Math.max(begin - at.since, 0) : at.since - begin;
    if (away < distance) {
      [found, distance] = [index, away];
    }
  }
  if (found < 0) {
    return null;
  }
  const extent = { begin: timeOf(at, items.begin[found] ?? 0), end: timeOf(at, items.end[found] ?? 0) };
  return { ...momentOf({ time: extent.begin }), extent };
}

/** Times of tiles are whole nanoseconds after their begin. */
function timeOf({ tileNs }: Place, since: number): Nanos {
  return nanos(tileNs + BigInt(Math.round(since)));
}
