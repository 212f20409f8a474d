import { expect, test } from "vitest";
import { counts, instants } from "../testing/tiles.ts";
import { px } from "../units/screen.ts";
import { nanos } from "../units/time.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import type { Piece } from "./cache.ts";
import { densityOf } from "./density.ts";
import type { Frame } from "./geometry.ts";
import { NONE, type Items } from "./tile.ts";

const FRAME: Frame = { view: { begin: nanos(0), span: nanos(256) }, width: px(16), origin: nanos(0) };

const pieceOf = (items: Items): Piece => ({
  tile: { track: trackNumber(0), carry: NONE, items, level: level(0), index: tileIndex(0), spans: [{ begin: 0, end: 256, quality: "exact" }] },
  begin: 0,
  end: 256,
  standIn: false,
});

test("few events that are told one by one are as many as in buckets, from the first to the last nanosecond", () => {
  const times = [0, 0, 15, 16, 100, 255];
  const told = densityOf(FRAME, [[pieceOf(instants(...times.map((time) => [time, 0, 0])))]]);
  const counted = densityOf(FRAME, [[pieceOf(counts([0, 0, 2, 2], ...times.slice(2).map((time) => [time, 0, 1, 1])))]]);
  expect([...told.count].reduce((sum, count) => sum + count)).toBe(times.length);
  expect(told.count[0]).toBe(2);
  expect(told.count[15]).toBe(1);
  expect([...counted.count].reduce((sum, count) => sum + count)).toBe(times.length);
  expect([...told.quality]).toEqual([...counted.quality]);
});
