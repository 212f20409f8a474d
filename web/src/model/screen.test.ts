import { expect, test } from "vitest";
import { trackLike } from "../testing/tracks.ts";
import { PLAIN_LAYOUT } from "./layout.ts";
import { rowsOf, type Row } from "./rows.ts";
import { fixedHeight, isSeenWholly, rowAt, rowsOnScreen, rowsSeen, topOnScreen } from "./screen.ts";

const TRACKS = Array.from({ length: 10 }, (_, number) => trackLike(number));
const rowsWith = (pinned: readonly string[], folded: readonly string[] = []): Row[] => rowsOf({ tracks: TRACKS, values: [] }, { ...PLAIN_LAYOUT, pinned, folded });
const screenOf = (rows: readonly Row[], scroll: number, height = 200): { rows: readonly Row[]; scroll: number; size: { height: number } } => ({ rows, scroll, size: { height } });
const keys = (rows: readonly Row[]): string[] => rows.map(({ key }) => key);

test("pinned rows stay on top, those that scroll go below them", () => {
  const screen = screenOf(rowsWith(["t7"]), 90, 100);
  expect(fixedHeight(screen)).toBe(44);
  const { fixed, rolled } = rowsOnScreen(screen);
  expect([keys(fixed), keys(rolled)]).toEqual([["group Pinned", "pinned t7"], ["track t3", "track t4", "track t5", "track t6"]]);
  expect(keys(rowsSeen(screen)).length).toBe(6);
  expect(fixed.concat(rolled).map((row) => topOnScreen(row, 44, 90))).toEqual([0, 24, 38, 58, 78, 98]);
  expect([0, 30, 44, 60, 99].map((y) => rowAt(screen, y)?.key)).toEqual(["group Pinned", "pinned t7", "track t3", "track t4", "track t6"]);
  expect(screen.rows.filter((row) => isSeenWholly(screen, row)).map(({ key }) => key)).toEqual(["group Pinned", "pinned t7", "track t4", "track t5"]);
});

test("half of the screen at most stays: pinned rows that do not fit scroll like all others", () => {
  const many = rowsWith(["t0", "t1", "t2", "t3", "t4", "t5"]);
  expect(fixedHeight(screenOf(many, 0))).toBe(84);
  expect(keys(rowsSeen(screenOf(many, 30))).slice(0, 6)).toEqual(["group Pinned", "pinned t0", "pinned t1", "pinned t2", "pinned t4", "pinned t5"]);
  // Nothing but the head fits; nothing is pinned; the pinned rows are folded.
  expect([fixedHeight(screenOf(many, 0, 60)), fixedHeight(screenOf(rowsWith([]), 0)), fixedHeight(screenOf(rowsWith(["t0"], ["Pinned"]), 0))]).toEqual([0, 0, 24]);
});
