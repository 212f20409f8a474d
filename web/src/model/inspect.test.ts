import { expect, test } from "vitest";
import { counter, counts, heat, heldCounter, instants, runs, states } from "../testing/tiles.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Piece } from "./cache.ts";
import { binBegin, inspect, type Inspected } from "./inspect.ts";
import { NONE, type Items, type Span } from "./tile.ts";

const ORIGIN = nanos(1_000_000);
const EXACT: readonly Span[] = [{ begin: 0, end: 256, quality: "exact" }];

/** What is `since` nanoseconds after the begin of tile 1, whose buckets are four nanoseconds long. */
function at(since: number, items: Items, spans = EXACT, carry = NONE): Inspected | null {
  const piece: Piece = { tile: { level: level(2), index: tileIndex(1), track: trackNumber(0), carry, items, spans }, begin: 0, end: 256, standIn: false };
  return inspect([piece], ORIGIN, nanos(ORIGIN + 1_024n + BigInt(since)));
}

function value(number: number, share = 1, second = NONE, begins = 0, busy: number | null = null): Inspected {
  return { found: { kind: "value", value: number, share, second, begins, busy }, quality: "exact" };
}

test("a state is what its bucket says, else what there was before", () => {
  const items = states([2, 5, 6, 7, 3, 65_535, 0, 6, 13_107]);
  expect(at(0, items, EXACT, 9)).toEqual(value(9));
  expect(at(7, items)).toEqual({ found: null, quality: "exact" });
  expect(at(8, items)).toEqual(value(5, 1, 6, 3, 0.2));
  expect(at(11, items)).toEqual(value(5, 1, 6, 3, 0.2));
  expect(at(12, items)).toEqual(value(7));
});

test("where nobody has read on, a state is not told, but counts are", () => {
  const spans: Span[] = [{ begin: 0, end: 256, quality: "estimated" }];
  expect(at(8, states(), spans, 9)).toEqual({ found: null, quality: "estimated" });
  expect(at(0, counts([0, 1, 9, 8]), spans)).toEqual({ found: { kind: "count", value: 1, count: 9, ofValue: 8 }, quality: "estimated" });
});

test("a run is there from its begin to before its end", () => {
  const items = runs([-50, 4, 1, 1], [10, 20, 2, 0]);
  expect([0, 3, 4, 9, 10, 19, 20].map((since) => at(since, items)?.found ?? null).map((found) => (found?.kind === "value" ? found.value : null))).toEqual([
    1,
    1,
    null,
    null,
    2,
    2,
    null,
  ]);
});

test("instants that share a bucket are counted, with what most of them are", () => {
  const items = instants([3, 1, 0], [4, 2, 0], [5, 3, 0], [7.5, 3, 0], [8, 1, 0]);
  expect(at(6, items)?.found).toEqual({ kind: "count", value: 3, count: 3, ofValue: 2 });
  expect(at(12, items)?.found).toBeNull();
});

test("a counter holds until it changes", () => {
  const items = counter([3, 2, 1, 8, 5, 4]);
  expect(at(0, items)?.found).toBeNull();
  expect(at(12, items)?.found).toEqual({ kind: "number", low: 1, high: 8 });
  expect(at(100, items)?.found).toEqual({ kind: "number", low: 5, high: 5 });
  expect(at(0, heldCounter(3, [3, 2, 1, 8, 5, 4]))?.found).toEqual({ kind: "number", low: 3, high: 3 });
});

test("nothing is told of a time that no tile has", () => {
  expect(at(-1, states())).toBeNull();
  expect(at(1_024, states())).toBeNull();
  expect(at(1_023, states(), [])).toEqual({ found: null, quality: "unknown" });
});

test("a heat map tells which durations there are most of", () => {
  expect(at(4, heat([1, 20, 3], [1, 21, 9], [2, 30, 99]))?.found).toEqual({ kind: "durations", count: 12, bin: 21 });
  expect(at(0, heat([1, 20, 3]))?.found).toBeNull();
});

test("bins grow with what they hold", () => {
  expect([0, 7, 8, 9, 16, 17, 24, 100].map((bin) => binBegin(bin))).toEqual([0n, 7n, 8n, 9n, 16n, 18n, 32n, 24_576n]);
});
