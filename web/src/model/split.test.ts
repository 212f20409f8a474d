import { expect, test } from "vitest";
import { level, trackNumber } from "../units/tiles.ts";
import { counter, counts, heldCounter, instants, runs, states } from "../testing/tiles.ts";
import { lowerBound, split } from "./split.ts";
import { NONE, type Answer, type Items } from "./tile.ts";

function answerOf(items: Items, carry = NONE): Answer {
  const spans = [
    { begin: 0, end: 300, quality: "exact" },
    { begin: 300, end: 768, quality: "building" },
  ] as const;
  return { level: level(1), first: 512n, count: 768, spans, tracks: [{ track: trackNumber(4), carry, items }] };
}

test("spans are cut where tiles end, and tiles count on from the first one", () => {
  const tiles = split(answerOf(counts()));
  expect(tiles.map((tile) => [tile.index, tile.track, tile.level])).toEqual([
    [2, 4, 1],
    [3, 4, 1],
    [4, 4, 1],
  ]);
  expect(tiles.map((tile) => tile.spans)).toEqual([
    [{ begin: 0, end: 256, quality: "exact" }],
    [
      { begin: 0, end: 44, quality: "exact" },
      { begin: 44, end: 256, quality: "building" },
    ],
    [{ begin: 0, end: 256, quality: "building" }],
  ]);
});

test("what a track is at the begin of a tile is what it was at the end of the one before", () => {
  const tiles = split(answerOf(states([10, 1, NONE, 2, 1, 9, 0], [600, 3, NONE, 3, 1, 9, 0]), 1));
  expect(tiles.map((tile) => tile.carry)).toEqual([1, 2, 2]);
  expect(tiles.map((tile) => tile.items)).toEqual([
    states([10, 1, NONE, 2, 1, 9, 0]),
    states(),
    states([88, 3, NONE, 3, 1, 9, 0]),
  ]);
});

test("a number is at the begin of a tile what it was at the end of the one before", () => {
  const tiles = split(answerOf(heldCounter(4, [10, 1, 2, 5, 3, 3], [600, 1, 3, 7, 7, 6])));
  expect(tiles.map((tile) => tile.items)).toEqual([heldCounter(4, [10, 1, 2, 5, 3, 3]), heldCounter(3), heldCounter(3, [88, 1, 3, 7, 7, 6])]);
  expect(split(answerOf(counter([600, 1, 3, 7, 7, 6])))[1]?.items).toEqual(counter());
});

test("a run is in every tile that it touches, with its true begin and end", () => {
  const tiles = split(answerOf(runs([-5, 100, 1, 1], [100, 1_000, 2, 0], [1_024, 1_024, 3, 0])));
  expect(tiles.map((tile) => tile.items)).toEqual([
    runs([-5, 100, 1, 1], [100, 1_000, 2, 0]),
    runs([-412, 488, 2, 0]),
    runs([0, 0, 3, 0]),
  ]);
});

test("instants are in one tile each", () => {
  const tiles = split(answerOf(instants([0, 1, 0], [511.5, 2, 0], [512, 3, 0], [1_535, 4, 0])));
  expect(tiles.map((tile) => tile.items)).toEqual([
    instants([0, 1, 0], [511.5, 2, 0]),
    instants([0, 3, 0]),
    instants([511, 4, 0]),
  ]);
});

test("only whole tiles can be cut", () => {
  expect(() => split({ ...answerOf(counts()), count: 100 })).toThrow("found 100 buckets from 512 on, expected whole tiles of 256");
  expect(() => split({ ...answerOf(counts()), first: 5n })).toThrow("found 768 buckets from 5 on");
});

test("the lower bound is the first entry that is not less", () => {
  expect([0, 1, 2, 3, 4].map((wanted) => lowerBound([1, 1, 3], wanted))).toEqual([0, 0, 2, 2, 3]);
});
