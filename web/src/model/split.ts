// An answer covers many buckets, because one large question is cheaper than many small ones. The cache keeps tiles of 256 buckets,
// which stay the same while the window moves: this file cuts one into the other.

import { TILE_BUCKETS, tileIndex } from "../units/tiles.ts";
import { NONE, type Answer, type Items, type Span, type Tile, type TrackItems } from "./tile.ts";
import { TileFault } from "./decode.ts";

/** The tiles of an answer. The answer's first bucket and count are multiples of a tile's. */
export function split(answer: Answer): Tile[] {
  const size = BigInt(TILE_BUCKETS);
  if (answer.first % size !== 0n || answer.count % TILE_BUCKETS !== 0) {
    throw new TileFault(8, `found ${answer.count} buckets from ${answer.first} on, expected whole tiles of ${TILE_BUCKETS}`);
  }
  const first = Number(answer.first / size);
  const bucketNs = 2 ** answer.level;
  const tiles: Tile[] = [];
  for (let number = 0; number * TILE_BUCKETS < answer.count; number++) {
    const spans = cutSpans(answer.spans, number * TILE_BUCKETS);
    for (const track of answer.tracks) {
      const part = answer.count === TILE_BUCKETS ? track : cut(track, number * TILE_BUCKETS, bucketNs);
      tiles.push({ ...part, level: answer.level, index: tileIndex(first + number), spans });
    }
  }
  return tiles;
}

function cutSpans(spans: readonly Span[], begin: number): Span[] {
  const inside: Span[] = [];
  for (const span of spans) {
    const from = Math.max(span.begin - begin, 0);
    const to = Math.min(span.end - begin, TILE_BUCKETS);
    if (from < to) {
      inside.push({ begin: from, end: to, quality: span.quality });
    }
  }
  return inside;
}

function cut(track: TrackItems, begin: number, bucketNs: number): TrackItems {
  const { items } = track;
  if (items.form === "runs" || items.form === "arrows") {
    const from = begin * bucketNs;
    return { ...track, carry: NONE, items: overlapping(items, from, from + TILE_BUCKETS * bucketNs) };
  }
  if (items.form === "instants") {
    const from = begin * bucketNs;
    const [low, high] = [lowerBound(items.time, from), lowerBound(items.time, from + TILE_BUCKETS * bucketNs)];
    return { ...track, items: { ...picked(items, low, high), time: shifted(items.time.subarray(low, high), from) } };
  }
  const [low, high] = [lowerBound(items.bucket, begin), lowerBound(items.bucket, begin + TILE_BUCKETS)];
  const carry = items.form === "states" && low > 0 ? (items.last[low - 1] ?? NONE) : track.carry;
  const bucket = items.bucket.slice(low, high).map((found) => found - begin);
  const part = { ...picked(items, low, high), bucket };
  return { ...track, carry, items: part.form === "counter" && items.form === "counter" ? { ...part, held: items.last[low - 1] ?? items.held } : part };
}

/** Runs and arrows that are somewhere between two times; also those that do not last, which are in one tile alone. */
function overlapping<T extends Items & { readonly begin: Float64Array; readonly end: Float64Array }>(items: T, from: number, to: number): T {
  const inside = new Uint8Array(items.begin.length);
  const count = lowerBound(items.begin, to);
  for (let index = 0; index < count; index++) {
    const [begin, end] = [items.begin[index] ?? 0, items.end[index] ?? 0];
    inside[index] = end > from || begin >= from ? 1 : 0;
  }
  const columns = mapColumns(items, (column) => column.filter((_, index) => inside[index] === 1));
  return { ...columns, begin: shifted(columns.begin, from), end: shifted(columns.end, from) };
}

function picked<T extends Items>(items: T, low: number, high: number): T {
  return mapColumns(items, (column) => column.slice(low, high));
}

type Column = Uint16Array | Uint32Array | Float64Array;

function mapColumns<T extends Items>(items: T, change: (column: Column) => Column): T {
  const entries = Object.entries(items).map(([name, column]) => [name, typeof column === "object" ? change(column as Column) : column]);
  return Object.fromEntries(entries) as T;
}

function shifted(times: Float64Array, by: number): Float64Array {
  return times.map((time) => time - by);
}

/** Where the first entry stands that is not less than `wanted`. */
export function lowerBound(sorted: ArrayLike<number>, wanted: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
