import { expect, test } from "vitest";
import { arrows, instants, counter, counts, runs, states } from "../testing/tiles.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Piece } from "./cache.ts";
import { spotAt, type Spot } from "./spot.ts";
import { END_UNKNOWN, NONE, type Items, type Quality } from "./tile.ts";

/** Tile 1 of level 2: buckets of 4 ns, from 1,024 ns after the begin of the traces on, which is 100. */
function pieceOf(items: Items, quality: Quality = "exact"): Piece {
  const tile = { level: level(2), index: tileIndex(1), track: trackNumber(0), carry: NONE, items, spans: [{ begin: 0, end: 256, quality }] };
  return { tile, begin: 0, end: 256, standIn: false };
}

/** What is pointed at so many nanoseconds behind the begin of the tile: time, until, and the extent, counted from there. */
function pointed(items: Items, since: number, reach = 8, quality: Quality = "exact"): (number | null)[] | null {
  const spot = spotAt([pieceOf(items, quality)], nanos(100), nanos(1_124 + since), nanos(reach));
  const count = (time: bigint): number => Number(time) - 1_124;
  return spot === null ? null : [count(spot.time), count(spot.until), ...(spot.extent === null ? [null] : [count(spot.extent.begin), count(spot.extent.end)])];
}

test("a run is pointed at where it is, and beside it if it is too short to be hit", () => {
  const items = runs([-50, 40, 0, 0], [100, 101, 0, 0], [200, 1_024, 0, END_UNKNOWN]);
  expect(pointed(items, 20)).toEqual([20, 21, -50, 40]);
  expect(pointed(items, 95)).toEqual([100, 101, 100, 101]);
  expect(pointed(items, 106)).toEqual([100, 101, 100, 101]);
  expect(pointed(items, 120)).toBeNull();
  // Where it ends the tile does not know.
  expect(pointed(items, 500)).toEqual([500, 501, null]);
});

test("where nobody has read, something may be all the same", () => {
  expect(pointed(runs(), 120, 8, "building")).toEqual([120, 121, null]);
  expect(spotAt([], nanos(100), nanos(500), nanos(1))).toEqual({ time: 500n, until: 501n, extent: null } satisfies Record<keyof Spot, unknown>);
});

test("of a bucket in which states change, the one at the time is meant, else the first of the bucket", () => {
  // One ends in the first bucket, and nothing is there until one begins in the last one.
  const items = states([10, 0, NONE, 1, 3, 1, 0], [20, 1, NONE, NONE, 1, 1, 0], [30, 2, NONE, 2, 1, 1, 0]);
  const held = { ...pieceOf(items), tile: { ...pieceOf(items).tile, carry: 7 } };
  const seen = (since: number): string | null => {
    const spot = spotAt([held], nanos(100), nanos(1_124 + since), nanos(8));
    return spot === null ? null : `${Number(spot.time) - 1_124} ${Number(spot.until) - 1_124}`;
  };
  expect([20, 41, 60, 82, 121, 200].map(seen)).toEqual(["20 21", "41 44", "60 61", "80 84", "120 124", "200 201"]);
  // Where nothing is, what is beside the pointer is meant, if it is near.
  expect([88, 114, 100].map(seen)).toEqual(["80 84", "120 124", null]);
});

test("the nearest instant is meant, if it is near", () => {
  const items = instants([10, 0, 0], [20, 0, 0], [21, 0, 0]);
  expect([12, 16, 28, 29, 4].map((since) => pointed(items, since))).toEqual([[10, 11, 10, 10], [20, 21, 20, 20], [21, 22, 21, 21], null, [10, 11, 10, 10]]);
});

test("of counted instants the bucket is meant", () => {
  const items = counts([10, 0, 5, 5], [20, 0, 1, 1]);
  expect([41, 46, 75, 60].map((since) => pointed(items, since))).toEqual([[40, 44, null], [40, 44, null], [80, 84, null], null]);
});

test("an arrow is pointed at where it leaves and while it is on its way", () => {
  const items = arrows([10, 100], [50, 60]);
  expect([12, 55, 90, 4, 120].map((since) => pointed(items, since))).toEqual([[10, 11, 10, 100], [50, 51, 50, 60], [10, 11, 10, 100], [10, 11, 10, 100], null]);
});

test("a counter is something at every time", () => {
  expect(pointed(counter([0, 1, 1, 1, 1, 1]), 500)).toEqual([500, 501, null]);
});
