// The content of one track at one time, for the line that says it in words.

import type { Piece } from "./cache.ts";
import { lowerBound } from "./split.ts";
import { NONE, type Counter, type Counts, type Heat, type Instants, type Items, type Quality, type Runs, type States, type Tile } from "./tile.ts";
import { bucketSpan, tileBegin } from "./wanted.ts";
import { nanos, type Nanos } from "../units/time.ts";

/** The content that a track shows at a time. */
export type Found =
  /** `share` of the bucket is this value, of 1; with a value that covers less, if there is one. All values that are not at rest cover `busy` of
   * it; `null`: there is one value only. */
  | { readonly kind: "value"; readonly value: number; readonly share: number; readonly second: number; readonly begins: number; readonly busy: number | null }
  /** As many instants, most of which are `value`. */
  | { readonly kind: "count"; readonly value: number; readonly count: number; readonly ofValue: number }
  /** As many durations, most of which are in a bin. */
  | { readonly kind: "durations"; readonly count: number; readonly bin: number }
  | { readonly kind: "number"; readonly low: number; readonly high: number };

/** The found content, and how well it is known. */
export interface Inspected {
  readonly found: Found | null;
  readonly quality: Quality;
}

/** The content of `pieces` at a time; `null` where there is none of them. */
export function inspect(pieces: readonly Piece[], origin: Nanos, time: Nanos): Inspected | null {
  for (const { tile, begin, end } of pieces) {
    const since = Number(time - tileBegin(tile.level, tile.index, origin));
    const bucket = Math.floor(since / Number(bucketSpan(tile.level)));
    if (bucket >= Math.floor(begin) && bucket < end) {
      const quality = qualityAt(tile, bucket);
      // Where the server has not read on, a state may be long over.
      const isRead = quality === "exact" || quality === "building" || tile.items.form === "counts";
      return { found: isRead ? findIn(tile.items, tile, bucket, since) : null, quality };
    }
  }
  return null;
}

function qualityAt(tile: Tile, bucket: number): Quality {
  return tile.spans.find((span) => span.begin <= bucket && bucket < span.end)?.quality ?? "unknown";
}

function findIn(items: Items, tile: Tile, bucket: number, since: number): Found | null {
  switch (items.form) {
    case "states":
      return stateAt(items, tile.carry, bucket);
    case "runs":
      return runAt(items, since);
    case "counts":
      return countAt(items, bucket);
    case "instants":
      return instantsAt(items, bucket * Number(bucketSpan(tile.level)), Number(bucketSpan(tile.level)));
    case "counter":
      return numberAt(items, bucket);
    case "heat":
      return durationsAt(items, bucket);
    default:
      return null;
  }
}

function stateAt(items: States, carry: number, bucket: number): Found | null {
  const at = lowerBound(items.bucket, bucket);
  if (items.bucket[at] !== bucket) {
    const held = at === 0 ? carry : (items.last[at - 1] ?? NONE);
    return held === NONE ? null : { kind: "value", value: held, share: 1, second: NONE, begins: 0, busy: null };
  }
  const value = items.value[at] ?? NONE;
  const share = (items.share[at] ?? 0) / 65_535;
  return value === NONE ? null : { kind: "value", value, share, second: items.second[at] ?? NONE, begins: items.begins[at] ?? 0, busy: (items.busy[at] ?? 0) / 65_535 };
}

function runAt(items: Runs, since: number): Found | null {
  for (let at = lowerBound(items.begin, since + 1) - 1; at >= 0; at--) {
    if ((items.end[at] ?? 0) > since) {
      return { kind: "value", value: items.value[at] ?? NONE, share: 1, second: NONE, begins: 1, busy: null };
    }
  }
  return null;
}

function countAt(items: Counts, bucket: number): Found | null {
  const at = lowerBound(items.bucket, bucket);
  if (items.bucket[at] !== bucket) {
    return null;
  }
  return { kind: "count", value: items.value[at] ?? NONE, count: items.count[at] ?? 0, ofValue: items.countOfValue[at] ?? 0 };
}

/** Instants from a time on, for so long: their number, and the most frequent value. */
function instantsAt(items: Instants, from: number, length: number): Found | null {
  const [low, high] = [lowerBound(items.time, from), lowerBound(items.time, from + length)];
  const counts = new Map<number, number>();
  let [value, ofValue] = [NONE, 0];
  for (const one of items.value.subarray(low, high)) {
    const count = (counts.get(one) ?? 0) + 1;
    counts.set(one, count);
    [value, ofValue] = count > ofValue ? [one, count] : [value, ofValue];
  }
  return low === high ? null : { kind: "count", value, count: high - low, ofValue };
}

/** A counter's value holds until it changes. */
function numberAt(items: Counter, bucket: number): Found | null {
  const at = lowerBound(items.bucket, bucket);
  if (items.bucket[at] === bucket) {
    return { kind: "number", low: items.min[at] ?? 0, high: items.max[at] ?? 0 };
  }
  const held = items.last[at - 1] ?? items.held;
  return Number.isNaN(held) ? null : { kind: "number", low: held, high: held };
}

function durationsAt(items: Heat, bucket: number): Found | null {
  let [count, most, bin] = [0, 0, 0];
  for (let at = lowerBound(items.bucket, bucket); items.bucket[at] === bucket; at++) {
    const here = items.count[at] ?? 0;
    count += here;
    [most, bin] = here > most ? [here, items.bin[at] ?? 0] : [most, bin];
  }
  return count === 0 ? null : { kind: "durations", count, bin };
}

/** Where a bin of durations begins: each is an eighth of an octave wide. */
export function binBegin(bin: number): Nanos {
  return nanos(bin < 8 ? bin : (8n + BigInt(bin % 8)) << BigInt(Math.min(60, Math.floor(bin / 8) - 1)));
}
