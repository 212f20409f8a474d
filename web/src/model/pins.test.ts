import { expect, test } from "vitest";
import { trackNumber } from "../units/tiles.ts";
import { trackLike } from "../testing/tracks.ts";
import type { Track } from "./catalogue.ts";
import { PLAIN_LAYOUT, type Layout } from "./layout.ts";
import { pinnedTest, pinnedTracks, withPinned } from "./pins.ts";
import { rowsOf } from "./rows.ts";

const of = (parent: number, depth: number): Partial<Track> => ({ parent: trackNumber(parent), depth });
const TRACKS = [trackLike(0), trackLike(1), trackLike(2, of(0, 1)), trackLike(3, of(0, 0)), trackLike(4, of(3, 1)), trackLike(5, of(1, 0))];
const track = (number: number): Track => TRACKS[number] ?? trackLike(99);
const pins = (...pinned: string[]): Layout => ({ ...PLAIN_LAYOUT, pinned });
const idsOf = (tracks: readonly Track[]): string[] => tracks.map(({ id }) => id);

test("a pinned track has its parts below it, in the order of depth, each once", () => {
  expect(idsOf(pinnedTracks(pins("t1", "t0", "gone"), TRACKS))).toEqual(["t1", "t5", "t0", "t3", "t4", "t2"]);
  expect(idsOf(pinnedTracks(pins("t4", "t0"), TRACKS))).toEqual(["t4", "t0", "t3", "t2"]);
  expect(TRACKS.filter(pinnedTest(pins("t3"), TRACKS)).map(({ id }) => id)).toEqual(["t3", "t4"]);
});

test("tracks are pinned behind others, without parts of theirs; a part is taken away with all of its track", () => {
  expect(withPinned(pins("t4"), [track(1)], true, TRACKS).pinned).toEqual(["t4", "t1"]);
  expect(withPinned(pins("t4", "t1"), [track(0), track(1)], true, TRACKS).pinned).toEqual(["t1", "t0"]);
  expect(withPinned(pins("t0", "gone"), [track(2)], true, TRACKS).pinned).toEqual(["t0", "gone"]);
  expect(withPinned(pins("t1", "t0"), [track(4)], false, TRACKS).pinned).toEqual(["t1"]);
  expect(withPinned(pins("t1", "t4"), [track(3)], false, TRACKS).pinned).toEqual(["t1", "t4"]);
});

test("tracks that are part of each other have an end", () => {
  const around = [trackLike(0, of(1, 0)), trackLike(1, of(0, 0))];
  expect(idsOf(pinnedTracks(pins("t0"), around))).toEqual(["t0", "t1"]);
});

test("pinned rows stay though nothing happens in them in the window", () => {
  const rows = rowsOf({ tracks: TRACKS, values: [] }, { ...pins("t0"), active: true }, undefined, new Set([0, 1, 2, 3, 4, 5]));
  expect(rows.map(({ key }) => key)).toEqual(["group Pinned", "pinned t0", "pinned t3", "pinned t4", "pinned t2"]);
});

test("many tracks are pinned in no time", () => {
  const tracks = Array.from({ length: 20_000 }, (_, number) => trackLike(number, number % 2 === 0 ? {} : of(number - 1, 0)));
  const began = performance.now();
  const layout = withPinned(PLAIN_LAYOUT, tracks, true, tracks);
  expect([layout.pinned.length, pinnedTracks(layout, tracks).length]).toEqual([10_000, 20_000]);
  expect(performance.now() - began).toBeLessThan(5_000);
});
