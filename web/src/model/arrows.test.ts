import { expect, test } from "vitest";
import { arrowCounts, arrows } from "../testing/tiles.ts";
import { px } from "../units/screen.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { BUNDLES_MAX, EXACT_MAX, NO_ARROWS, arrowBetween, arrowsOn, nearestBundle, nearestLine, timeOfArrow, type ArrowLayout, type ArrowLine, type Screen } from "./arrows.ts";
import type { Piece } from "./cache.ts";
import { EMPTY_CATALOGUE, type Track } from "./catalogue.ts";
import { PLAIN_LAYOUT, rowsOf, type Layout } from "./rows.ts";
import { END_UNKNOWN, NONE, RECEIVED_FIRST, type Items } from "./tile.ts";
import { trackLike } from "../testing/tracks.ts";

/** 256 ns from 1,000 on, a pixel each. */
const frame = { view: { begin: nanos(1_000), span: nanos(256) }, width: px(256), origin: nanos(1_000) };
const TRACKS = Array.from({ length: 20 }, (_, number): Track => {
  return trackLike(number, { id: `t${String.fromCharCode(97 + number)}`, group: number < 4 ? "CPUs" : "Threads" });
});

/** The head of the CPUs is 24 pixels high, each of their four rows 20, with 2 of them below the bar; 200 are seen. */
function screenOf(more: Partial<Screen> = {}, layout: Layout = PLAIN_LAYOUT): Screen {
  return { rows: rowsOf({ ...EMPTY_CATALOGUE, tracks: TRACKS }, layout), tracks: TRACKS, scroll: 0, fixed: 0, height: 200, ratio: 1, ...more };
}

function pieceOf(items: Items, index = 0, of = 0): Piece {
  const tile = { level: level(of), index: tileIndex(index), track: trackNumber(99), carry: NONE, items, spans: [] };
  return { tile, begin: 0, end: 256, standIn: false };
}

function laid(pieces: readonly Piece[], screen = screenOf()): ArrowLayout {
  return arrowsOn(frame, screen, [{ track: "wakeups/0", pieces }]);
}

const line = ({ x0, y0, x1, y1 }: ArrowLine): number[] => [x0, y0, x1, y1];

test("an arrow goes from the middle of one row to the near edge of the other, from when it leaves to when it has come", () => {
  const { exact, bundles } = laid([pieceOf(arrows([10, 60, 0, 2, 0, 0], [20, 30, 3, 1, 0, 0]))]);
  expect(exact.map(line)).toEqual([[10, 33, 60, 64], [20, 93, 30, 62]]);
  expect(exact.map(timeOfArrow)).toEqual([1_010n, 1_020n]);
  expect(bundles).toEqual([]);
});

test("an arrow that is in several tiles is drawn once", () => {
  const pieces = [pieceOf(arrows([-5, 300, 0, 1, 0, 0], [250, 260, 0, 1, 0, 0])), pieceOf(arrows([-261, 44, 0, 1, 0, 0], [-6, 4, 0, 1, 0, 0], [-256, -250, 0, 1, 0, 0]), 1)];
  expect(laid(pieces).exact.map(({ x0, x1 }) => [x0, x1])).toEqual([[-5, 300], [250, 260]]);
  // Two halves of a coarser tile that stands in for finer ones.
  const coarse = pieceOf(arrows([100, 104, 0, 1, 0, 0], [300, 304, 0, 1, 0, 0]), 0, 1);
  const wide = { ...frame, view: { begin: nanos(1_000), span: nanos(512) } };
  const halves = [{ ...coarse, end: 128 }, { ...coarse, begin: 128 }];
  expect(arrowsOn(wide, screenOf(), [{ track: "w", pieces: halves }]).exact.map(({ x0 }) => x0)).toEqual([50, 150]);
});

test("a message belongs to the tile in which it comes, whichever tell of it; wakeups and messages between the same rows are bundles of their own", () => {
  const all = [-300, -3, 0, 1, 0, 0] as const;
  const pieces = [pieceOf(arrows([-5, 300, 0, 1, 0, 0], [250, 260, 0, 1, 0, 0])), pieceOf(arrows([...all], [-261, 44, 0, 1, 0, 0], [-6, 4, 0, 1, 0, 0]), 1)];
  const wide = { ...frame, view: { begin: nanos(1_000), span: nanos(512) }, width: px(512) };
  const messages = arrowsOn(wide, screenOf(), [{ track: "messages/0", pieces }]);
  expect(messages.exact.map(({ x0, x1 }) => [x0, x1])).toEqual([[-5, 300], [250, 260]]);
  const counted = [pieceOf(arrowCounts([10, 0, 1, 3]))];
  const both = arrowsOn(frame, screenOf(), [{ track: "wakeups/0", pieces: counted }, { track: "messages/0", pieces: counted }]);
  expect(both.bundles.map(({ track, count }) => [track, count])).toEqual([["wakeups/0", 3], ["messages/0", 3]]);
});

test("where an end is not on the screen, a stub points to where it is", () => {
  const below = laid([pieceOf(arrows([10, 60, 1, 19, 0, 0], [20, 70, 19, 1, 0, 0], [30, 80, 18, 19, 0, 0]))]);
  expect(below.exact.map(line)).toEqual([[10, 53, 10, 67], [70, 76, 70, 62]]);
  const above = laid([pieceOf(arrows([10, 60, 0, 19, 0, 0], [20, 70, 19, 0, 0, 0]))], screenOf({ scroll: 300 }));
  // The row of track 19 is seen then, and the CPUs are above.
  expect(above.exact.map(line)).toEqual([[60, 114, 60, 128], [20, 137, 20, 123]]);
});

test("an arrow to a row that is not shown has a stub at its side; one that nobody saw come does not come", () => {
  const hidden = screenOf({}, { ...PLAIN_LAYOUT, hidden: ["tc"] });
  expect(laid([pieceOf(arrows([10, 60, 0, 2, 0, 0], [20, 70, 2, 0, 0, 0], [30, 80, 0, NONE, 0, 0]))], hidden).exact.map(line)).toEqual([
    [10, 33, 24, 33],
    [56, 33, 70, 33],
    [30, 33, 44, 33],
  ]);
  expect(laid([pieceOf(arrows([10, 10, 0, 2, 0, END_UNKNOWN]))]).exact.map(line)).toEqual([[10, 33, 10, 47]]);
});

test("a message that is received before it is sent goes back in time", () => {
  expect(laid([pieceOf(arrows([10, 60, 0, 2, 0, RECEIVED_FIRST]))]).exact.map(line)).toEqual([[60, 33, 10, 64]]);
  const picked = arrowBetween(frame, screenOf(), { from: 0, to: 1, begin: nanos(1_010), end: nanos(1_060), receivedFirst: true });
  expect(picked === null ? null : line(picked)).toEqual([60, 33, 10, 44]);
});

test("between rows that the filter does not mean there are no arrows, but for the one that is picked", () => {
  const rows = screenOf().rows.map((row) => ({ ...row, dimmed: row.track !== null && row.track.number < 2 }));
  const { exact } = laid([pieceOf(arrows([10, 60, 0, 1, 0, 0], [20, 70, 0, 2, 0, 0]))], screenOf({ rows }));
  expect(exact.map(({ x1, y1 }) => [x1, y1])).toEqual([[70, 73]]);
  const picked = arrowBetween(frame, screenOf({ rows }), { from: 0, to: 1, begin: nanos(1_010), end: nanos(1_060), receivedFirst: false });
  expect(picked === null ? null : line(picked)).toEqual([10, 33, 60, 44]);
});

test("a group that is folded stands for its tracks, and a pinned row for the other one", () => {
  const folded = screenOf({}, { ...PLAIN_LAYOUT, folded: ["CPUs"] });
  expect(laid([pieceOf(arrows([10, 60, 0, 4, 0, 0]))], folded).exact.map(line)).toEqual([[10, 11, 60, 48]]);
  const pinned = screenOf({}, { ...PLAIN_LAYOUT, pinned: ["tt"] });
  expect(laid([pieceOf(arrows([10, 60, 0, 19, 0, 0]))], pinned).exact.map(line)).toEqual([[10, 77, 60, 42]]);
});

test("a pinned row that stays on top has its arrows there, and a row that has gone below it is above the screen", () => {
  const layout = { ...PLAIN_LAYOUT, pinned: ["tt"] };
  const from = (track: number, scroll: number): number[][] => laid([pieceOf(arrows([10, 60, track, 19, 0, 0]))], screenOf({ scroll, fixed: 44 }, layout)).exact.map(line);
  expect(from(1, 40)).toEqual([[10, 57, 60, 42]]);
  expect(from(0, 60)).toEqual([[60, 10, 60, 24]]);
});

test("counted arrows are a band for those of some columns that go the same way", () => {
  const items = arrowCounts([2, 0, 1, 3, NaN], [3, 0, 1, 1, NaN], [4, 0, 2, 5, NaN], [200, 0, 1, 7, NaN], [210, 0, NONE, 9, NaN]);
  const { exact, bundles } = laid([pieceOf(items)]);
  expect(exact).toEqual([]);
  expect(bundles).toEqual([
    { track: "wakeups/0", left: 2, right: 4, y0: 33, y1: 44, count: 4, from: 0, to: 1 },
    { track: "wakeups/0", left: 4, right: 5, y0: 33, y1: 64, count: 5, from: 0, to: 2 },
    { track: "wakeups/0", left: 200, right: 201, y0: 33, y1: 44, count: 7, from: 0, to: 1 },
  ]);
});

test("however many arrows there are, few are drawn, and all are counted", () => {
  const rows = (count: number): number[][] => Array.from({ length: count }, (_, index) => [index / 8, index / 8 + 1, index % 4, 4 + (index % 5), 0, 0]);
  const few = laid([pieceOf(arrows(...rows(EXACT_MAX)))], screenOf({ height: 400 }));
  expect([few.exact.length, few.bundles.length]).toEqual([EXACT_MAX, 0]);
  const many = laid([pieceOf(arrows(...rows(2_000)))], screenOf({ height: 400 }));
  expect(many.exact).toEqual([]);
  expect(many.bundles.length).toBeLessThanOrEqual(BUNDLES_MAX);
  expect(many.bundles.length).toBeGreaterThan(20);
  expect(many.bundles.reduce((sum, { count }) => sum + count, 0)).toBe(2_000);
});

test("a bundle is found anywhere in its band", () => {
  const { bundles } = laid([pieceOf(arrowCounts([2, 0, 1, 3, NaN], [3, 0, 1, 1, NaN], [200, 0, 1, 7, NaN]))]);
  expect(nearestBundle(bundles, 4, 40, 3)?.count).toBe(4);
  expect(nearestBundle(bundles, 203, 40, 3)?.count).toBe(7);
  expect(nearestBundle(bundles, 100, 40, 3)).toBeNull();
  expect(nearestBundle(bundles, 4, 60, 3)).toBeNull();
});

test("an arrow that is picked is drawn wherever it is seen", () => {
  const ends = { from: 0, to: 2, begin: nanos(1_010), end: nanos(1_060), receivedFirst: false };
  expect(line(arrowBetween(frame, screenOf(), ends) as ArrowLine)).toEqual([10, 33, 60, 64]);
  expect(arrowBetween(frame, screenOf(), { ...ends, begin: nanos(2_000), end: nanos(2_010) })).toBeNull();
  // What is far outside does not need larger numbers.
  expect(arrowBetween(frame, screenOf(), { ...ends, end: nanos(9_000_000_000) })?.x1).toBe(512);
});

test("the nearest arrow is pointed at, if it is near enough", () => {
  const [one, other] = [{ x0: 0, y0: 0, x1: 100, y1: 100 }, { x0: 50, y0: 0, x1: 50, y1: 20 }];
  expect(nearestLine([one, other], 50, 48, 3)).toBe(one);
  expect(nearestLine([one, other], 48, 10, 3)).toBe(other);
  expect(nearestLine([one, other], 50, 24, 3)).toBeNull();
  expect(nearestLine([], 0, 0, 3)).toBeNull();
  expect(NO_ARROWS.exact).toEqual([]);
});
