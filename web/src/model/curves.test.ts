import { expect, test } from "vitest";
import { counter } from "../testing/tiles.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Piece } from "./cache.ts";
import type { Track } from "./catalogue.ts";
import { CURVES_MAX, PLAIN_CURVES, axisMarks, axisMarksIn, countersOf, curveParts, lanesOf, nextChange, readCurves, toggledCurve } from "./curves.ts";
import { NONE } from "./tile.ts";

function trackOf(number: number, id: string, unit: string | null, kind: Track["kind"] = "counter"): Track {
  return { number: trackNumber(number), id, kind, name: id, group: "Counters", host: null, cpu: null, process: null, tid: null, depth: null, parent: null, unit };
}

const TRACKS = [trackOf(0, "heap", "bytes"), trackOf(1, "queue", null), trackOf(2, "cache", "bytes"), trackOf(3, "cpu", null, "states"), trackOf(4, "n10", "jobs"), trackOf(5, "n9", "jobs")];

test("curves are chosen one by one, and stand in the URL", () => {
  const some = ["queue", "heap", "gone/7"].reduce(toggledCurve, PLAIN_CURVES);
  expect(toggledCurve(some, "heap").tracks).toEqual(["queue", "gone/7"]);
  const parts = new URLSearchParams(curveParts({ ...some, apart: true }));
  expect(readCurves(parts)).toEqual({ tracks: ["queue", "heap", "gone/7"], apart: true });
  expect(curveParts(PLAIN_CURVES)).toEqual([]);
  expect(readCurves(new URLSearchParams("curve=a&curve=a&curves=else"))).toEqual({ tracks: ["a"], apart: false });
  const many = Array.from({ length: 20 }, (_, index) => `c${index}`).reduce(toggledCurve, PLAIN_CURVES);
  expect(many.tracks).toHaveLength(CURVES_MAX);
  expect(many.tracks.at(-1)).toBe("c19");
});

test("what counts the same shares an axis", () => {
  const curves = { tracks: ["heap", "queue", "cpu", "cache", "nobody"], apart: false };
  const told = (apart: boolean) => lanesOf({ ...curves, apart }, TRACKS).map((lane) => [lane.unit, ...lane.curves.map(({ track, colour }) => `${track.id} ${colour}`)]);
  expect(told(false)).toEqual([["bytes", "heap 0", "cache 3"], [null, "queue 1"]]);
  expect(told(true)).toEqual([["bytes", "heap 0"], [null, "queue 1"], ["bytes", "cache 3"]]);
  expect(countersOf(TRACKS).map((track) => track.id)).toEqual(["cache", "heap", "n9", "n10", "queue"]);
});

test("axes have round marks", () => {
  expect(axisMarks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(axisMarks(-3, 7, 4)).toEqual([0, 5]);
  expect(axisMarks(0.12, 0.18, 3)).toEqual([0.12, 0.14, 0.16, 0.18]);
  expect(axisMarks(1e9, 1.003e9, 3)).toEqual([1e9, 1.001e9, 1.002e9, 1.003e9]);
  expect(axisMarks(0, 70_000, 4, true)).toEqual([0, 32_768, 65_536]);
  expect(axisMarks(5, 5, 3)).toEqual([]);
  expect(axisMarks(0, Infinity, 3)).toEqual([]);
  expect(axisMarks(0, 1, 0)).toEqual([0, 1]);
  // One mark alone says nothing of how much that is.
  expect(axisMarks(1, 32, 3)).toEqual([20]);
  expect(axisMarksIn(1, 32, 3, false)).toEqual([10, 20, 30]);
  expect(axisMarksIn(1_000, 400_000, 3, true)).toEqual([131_072, 262_144, 393_216]);
});

test("the crosshair goes from change to change, over tiles", () => {
  const piece = (index: number, buckets: readonly number[], begin = 0, end = 256): Piece => ({
    tile: { level: level(2), index: tileIndex(index), track: trackNumber(0), carry: NONE, items: counter(...buckets.map((bucket) => [bucket, 1, 0, 1, 1, 1])), spans: [] },
    begin,
    end,
    standIn: false,
  });
  const pieces = [piece(0, [3, 200]), piece(1, [0, 7], 0, 5)];
  const step = (time: number, direction: 1 | -1): number | null => {
    const found = nextChange(pieces, nanos(1_000), nanos(time), direction);
    return found === null ? null : Number(found);
  };
  // A bucket is 4 ns long, a tile 1024 ns.
  expect([0, 1_000, 1_012, 1_013, 1_800, 2_023, 2_024].map((time) => step(time, 1))).toEqual([1_012, 1_012, 1_800, 1_800, 2_024, 2_024, null]);
  expect([5_000, 2_025, 2_024, 1_800, 1_801, 1_012].map((time) => step(time, -1))).toEqual([2_024, 2_024, 1_800, 1_012, 1_800, null]);
});
