// The edges that a selection snaps to: begins and ends of bars, and events, near a time.
//
// Tiles list these one by one, or say in which bucket something begins. A bucket is about a pixel wide: then the edge is known as well as it is
// seen, and the server knows it exactly (`isExact`).

import { TILE_BUCKETS } from "../units/tiles.ts";
import { nanos, type Nanos } from "../units/time.ts";
import type { Piece } from "./cache.ts";
import { BEGIN_UNKNOWN, END_UNKNOWN, type Tile } from "./tile.ts";
import type { Extent } from "./viewport.ts";
import { bucketSpan, tileBegin } from "./wanted.ts";

export interface Snap {
  readonly time: Nanos;
  /** Otherwise something begins in the bucket that begins then, and ends at `until`. */
  readonly isExact: boolean;
  readonly until: Nanos;
}

/** The edges of a tile, in nanoseconds after its begin; with how long a bucket is where they are known no better. */
function edgesOf({ items, level }: Tile): readonly { readonly since: number; readonly wide: number }[] {
  const exact = (since: number): { since: number; wide: number } => ({ since, wide: 0 });
  const bucket = 2 ** level;
  const inBucket = (at: number): { since: number; wide: number } => ({ since: at * bucket, wide: bucket });
  switch (items.form) {
    case "runs":
      return [...items.begin].flatMap((begin, index) => {
        const flags = items.flags[index] ?? 0;
        return [...((flags & BEGIN_UNKNOWN) === 0 ? [exact(begin)] : []), ...((flags & END_UNKNOWN) === 0 ? [exact(items.end[index] ?? begin)] : [])];
      });
    case "instants":
      return [...items.time].map(exact);
    case "states":
    case "counts":
      return [...items.bucket].map(inBucket);
    default:
      return [];
  }
}

/** All edges in the tiles of a track, each with its place in time. */
function snapsOf(pieces: readonly Piece[], origin: Nanos): readonly Snap[] {
  return pieces.flatMap(({ tile, begin, end }) => {
    const base = tileBegin(tile.level, tile.index, origin);
    const bucket = Number(bucketSpan(tile.level));
    const [low, high] = [begin * bucket, Math.min(end, TILE_BUCKETS) * bucket];
    return edgesOf(tile)
      .filter(({ since }) => since >= low && since <= high)
      .map(({ since, wide }) => ({ time: nanos(base + BigInt(Math.round(since))), isExact: wide === 0, until: nanos(base + BigInt(Math.round(since + wide))) }));
  });
}

/** Where there are more edges in reach, each is as good as another one. */
const EDGES_MAX = 4;

/** The edge nearest to a time, at most `reach` away: of a track's tiles, or one of some other times. */
export function snapAt(pieces: readonly Piece[], origin: Nanos, time: Nanos, reach: Nanos, others: readonly Nanos[] = []): Snap | null {
  const all = [...others.map((other): Snap => ({ time: other, isExact: true, until: other })), ...snapsOf(pieces, origin)];
  let [found, distance]: [Snap | null, bigint] = [null, reach + 1n];
  const near = new Set<bigint>();
  for (const one of all) {
    const away = one.time < time ? time - one.time : one.time - time;
    if (away <= reach) {
      near.add(one.time);
    }
    if (away < distance) {
      [found, distance] = [one, away];
    }
  }
  return near.size > EDGES_MAX ? null : found;
}

/** The next edge of a track behind a time, or the one before it; `null`: there is none in its tiles. A bucket is behind a time, or before it, with all of it. */
export function snapFrom(pieces: readonly Piece[], origin: Nanos, time: Nanos, by: 1 | -1): Snap | null {
  let found: Snap | null = null;
  for (const one of snapsOf(pieces, origin)) {
    const isBehind = by > 0 ? one.time > time : one.time < time && one.until <= time;
    if (isBehind && (found === null || (by > 0 ? one.time < found.time : one.time > found.time))) {
      found = one;
    }
  }
  return found;
}

/** The part behind a time, or before it, of the bucket with that time, if something begins or ends in the bucket. */
export function restOf(pieces: readonly Piece[], origin: Nanos, time: Nanos, by: 1 | -1): Extent | null {
  const around = snapsOf(pieces, origin).find((one) => one.time <= time && time < one.until);
  if (around === undefined) {
    return null;
  }
  const rest = by > 0 ? { begin: nanos(time + 1n), end: around.until } : { begin: around.time, end: time };
  return rest.begin < rest.end ? rest : null;
}
