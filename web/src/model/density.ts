// The density of events over time, for the strip that shows all of the traces.

import type { Piece } from "./cache.ts";
import { firstPixel, pixelsOf, placeOf, type Frame, type Place } from "./geometry.ts";
import type { Quality } from "./tile.ts";

/** For each pixel from left to right: how many events there are, and how well that is known. */
export interface Density {
  readonly count: Float64Array;
  readonly quality: readonly Quality[];
}

const WORST: readonly Quality[] = ["exact", "estimated", "building", "unknown"];

/** Sums up tiles of tracks with counted instants. A bucket's events are spread evenly over its pixels. */
export function densityOf(frame: Frame, tracks: readonly (readonly Piece[])[]): Density {
  const count = new Float64Array(frame.width);
  const quality: Quality[] = new Array<Quality>(frame.width).fill("unknown");
  const known = new Uint8Array(frame.width);
  for (const pieces of tracks) {
    for (const piece of pieces) {
      addCounts(frame, piece, count);
      addQuality(frame, piece, quality, known);
    }
  }
  return { count, quality };
}

function addCounts(frame: Frame, piece: Piece, count: Float64Array): void {
  const { items } = piece.tile;
  const place = placeOf(frame, piece.tile.level, piece.tile.index, piece.begin, piece.end);
  if (items.form === "counts") {
    for (let index = 0; index < items.bucket.length; index++) {
      const begin = place.left + (items.bucket[index] ?? 0) * place.step;
      // Buckets of finer tiles may be less than a pixel: then they are added to one.
      addCount(count, place, pixelsOf(place, begin, begin + place.step), items.count[index] ?? 0);
    }
  } else if (items.form === "instants") {
    // Where there are few, the server tells them one by one.
    for (const time of items.time) {
      const x = place.left + time * place.perNs;
      addCount(count, place, pixelsOf(place, x, x), 1);
    }
  }
}

function addCount(count: Float64Array, place: Place, [from, to]: readonly [number, number], events: number): void {
  const each = events / (to - from);
  for (let x = Math.max(from, place.from); x < Math.min(to, place.to); x++) {
    count[x] = (count[x] ?? 0) + each;
  }
}

function addQuality(frame: Frame, piece: Piece, quality: Quality[], known: Uint8Array): void {
  const place = placeOf(frame, piece.tile.level, piece.tile.index, piece.begin, piece.end);
  for (const span of piece.tile.spans) {
    const from = Math.max(place.from, firstPixel(place.left + span.begin * place.step));
    const to = Math.min(place.to, firstPixel(place.left + span.end * place.step));
    for (let x = from; x < to; x++) {
      const before = known[x] === 1 ? (quality[x] ?? "exact") : "exact";
      quality[x] = WORST.indexOf(span.quality) > WORST.indexOf(before) ? span.quality : before;
      known[x] = 1;
    }
  }
}
