import { expect, test } from "vitest";
import { runs, states } from "../testing/tiles.ts";
import { level, trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { RUNS_MAX, RunSum, partsOf, runsIn } from "./runsums.ts";
import { NONE, type Answer, type Items, type Runs } from "./tile.ts";

const EXTENT = { begin: nanos(1_000), end: nanos(1_000_000) };

function answerOf(...all: readonly Items[]): Answer {
  return { level: level(4), first: 16n, count: 256, spans: [{ begin: 0, end: 256, quality: "exact" }], tracks: all.map((items, number) => ({ track: trackNumber(number), carry: NONE, items })) };
}

test("a run across the end of a part is one, and as long as it is", () => {
  const sum = new RunSum();
  // The second answer counts from 50 on; the run at its begin is the one at the end of the first.
  sum.add(runs([0, 20, 1, 0], [20, 70, 2, 0]) as Runs, 0, [10, 50]);
  sum.add(runs([-30, 20, 2, 0], [20, 60, 1, 0]) as Runs, 50, [50, 100]);
  expect([...sum.values]).toEqual([
    [1, { time: 40, count: 2, longest: 30 }],
    [2, { time: 50, count: 1, longest: 50 }],
  ]);
  // One began before all of it.
  expect(sum.count).toBe(2);
});

test("runs of the same value, one behind the other at the end of a part, are two", () => {
  const sum = new RunSum();
  sum.add(runs([20, 50, 2, 0]) as Runs, 0, [10, 50]);
  sum.add(runs([0, 20, 2, 0]) as Runs, 50, [50, 100]);
  expect([...sum.values]).toEqual([[2, { time: 50, count: 2, longest: 30 }]]);
});

test("runs that take no time are counted in the part in which they begin", () => {
  const sum = new RunSum();
  const items = runs([10, 10, 1, 0], [20, 20, 1, 0], [50, 50, 2, 0], [60, 80, 2, 0], [80, 80, 2, 0], [100, 100, 1, 0]) as Runs;
  sum.add(items, 0, [10, 50]);
  sum.add(items, 0, [50, 100]);
  expect([...sum.values]).toEqual([
    [1, { time: 0, count: 2, longest: 0 }],
    [2, { time: 20, count: 3, longest: 20 }],
  ]);
  expect(sum.count).toBe(5);
});

test("a window is cut so that no track has more runs than come one by one", () => {
  const half = Math.floor(RUNS_MAX / 2);
  const busy = states([2, 1, 2, 2, half, 1, 1], [5, 1, 2, 2, half, 1, 1], [9, 1, 2, 2, half, 1, 1]);
  const calm = states([5, 1, 2, 2, 1, 1, 1]);
  const window = { begin: nanos(1_000 + 256), span: nanos(256) };
  expect(runsIn(answerOf(busy, calm))).toBe(3 * half);
  expect(partsOf(answerOf(busy, calm), window, EXTENT)).toEqual([
    { begin: 1_256n, span: BigInt(9 * 16) },
    { begin: BigInt(1_256 + 9 * 16), span: BigInt(256 - 9 * 16) },
  ]);
  // Where few begin, but the buckets are too wide for the server to tell runs, halves are asked for; a nanosecond is not cut.
  expect(partsOf(answerOf(calm), window, EXTENT).map(({ span }) => span)).toEqual([128n, 128n]);
  expect(partsOf(answerOf(calm), { begin: nanos(1_300), span: nanos(1) }, EXTENT).length).toBe(1);
});
