import { expect, test } from "vitest";
import { placeOf, type Frame } from "../model/geometry.ts";
import { packed } from "../model/palette.ts";
import type { TrackValue } from "../model/catalogue.ts";
import { NONE, type Arrows, type Counts, type Heat, type Instants, type Runs, type States } from "../model/tile.ts";
import { counts, instants, runs, states } from "../testing/tiles.ts";
import { level, tileIndex, valueNumber } from "../units/tiles.ts";
import { px } from "../units/screen.ts";
import { nanos } from "../units/time.ts";
import { Looks } from "./looks.ts";
import { binsOf, paintArrows, paintCounts, paintHeat, paintInstants, paintRuns, paintStates } from "./paint.ts";
import { STRIP_ROWS, StripSheet, type Strip } from "./strip.ts";

const VALUES: TrackValue[] = [
  ["running", "doing"],
  ["blocked", "doing"],
  ["waiting for a CPU", "doing"],
  ["idle", "thread"],
].map(([label, kind], number) => ({ number: valueNumber(number), label: label ?? "", kind: kind ?? "", colour: number }));
const looks = new Looks("light", VALUES);
const MARK = packed([1, 2, 3]);

/** As letters: which value has which colour. */
const LETTERS = new Map<number, string>([
  [0, "."],
  [MARK, "^"],
  ...VALUES.map((value): [number, string] => [looks.of(value.number).packed, "RBWI"[value.number] ?? "?"]),
  ...VALUES.map((value): [number, string] => [looks.of(value.number).pale, "rbwi"[value.number] ?? "?"]),
  [looks.of(0).edge, "|"],
]);

function stripOf(width: number): Strip {
  const sheet = new StripSheet();
  sheet.begin(width, STRIP_ROWS);
  return sheet.next(STRIP_ROWS).strip;
}

/** The rows of a strip as text, from the top down, without empty ones at the top. */
function picture(strip: Strip): string[] {
  const rows = Array.from({ length: strip.rows }, (_, row) =>
    Array.from({ length: strip.width }, (_, x) => LETTERS.get(strip.at(x, row)) ?? "?").join(""),
  );
  return rows.slice(rows.findIndex((row) => /[^.]/.test(row)));
}

/** `width` pixels that show `buckets` buckets of a nanosecond, of tile 0. */
function frameOf(width: number, buckets: number, begin = 0): Frame {
  return { view: { begin: nanos(begin), span: nanos(buckets) }, width: px(width), origin: nanos(0) };
}

const place = (frame: Frame, end?: number): ReturnType<typeof placeOf> => placeOf(frame, level(0), tileIndex(0), 0, end);

test("a state lasts until another one begins, also from before the tile", () => {
  const strip = stripOf(8);
  const items = states([2, 0, 1, 0, 1, 40_000, 10_000], [5, 1, NONE, NONE, 1, 65_535, 0]) as States;
  paintStates(strip, place(frameOf(8, 8)), items, 2, looks, MARK, 3);
  // Blocked is low, waiting of middle height, running high; behind bucket 5 nothing is known.
  expect(picture(strip)).toEqual(["..RRR...", "..RRR...", "..RRR...", "WWRRR...", "WWRRR...", "WWRRR...", "WWRRRB..", "WWRRRB.."]);
});

test("a second state that covers more than a quarter is drawn below the first", () => {
  const strip = stripOf(2);
  paintStates(strip, place(frameOf(2, 2)), states([0, 0, 2, 0, 2, 40_000, 20_000], [1, 0, 2, 0, 1, 60_000, 5_000]) as States, NONE, looks, MARK, 3);
  expect(picture(strip)).toEqual(["^R", "RR", "RR", "RR", "RR", "WR", "WR", "WR"]);
});

test("a state that covers little of its bucket is low, but never invisible", () => {
  const strip = stripOf(2);
  paintStates(strip, place(frameOf(2, 2)), states([0, 0, NONE, NONE, 1, 1, 0]) as States, NONE, looks, MARK, 3);
  expect(picture(strip)).toEqual(["R.", "R."]);
});

test("many begins in a bucket are marked at the top", () => {
  const strip = stripOf(3);
  paintStates(strip, place(frameOf(3, 3)), states([0, 1, NONE, 1, 1, 65_535, 0], [1, 1, NONE, 1, 7, 65_535, 0], [2, 1, NONE, 1, 8, 65_535, 0]) as States, NONE, looks, MARK, 9);
  expect(picture(strip)).toEqual([".^^", "..^", "...", "...", "...", "...", "BBB", "BBB"]);
});

test("every bucket has a pixel of its own, wherever the window begins", () => {
  for (let begin = 0; begin < 20; begin++) {
    const strip = stripOf(23);
    const rows = Array.from({ length: 40 }, (_, bucket) => [bucket, bucket % 2, NONE, bucket % 2, 1, 65_535, 0]);
    paintStates(strip, place(frameOf(23, 16, begin)), states(...rows) as States, NONE, looks, MARK, 99);
    const bottom = picture(strip).at(-1) ?? "";
    expect(bottom).not.toContain(".");
    expect((bottom.match(/R+|B+/g) ?? []).length).toBeGreaterThanOrEqual(16);
  }
});

test("long states are told, for their names, and joined over buckets that hold nothing else", () => {
  const strip = stripOf(20);
  const bars = paintStates(strip, place(frameOf(20, 10)), states([4, 1, NONE, 0, 1, 65_535, 0]) as States, 1, looks, MARK, 4);
  expect(bars).toEqual([
    { from: 0, to: 8, value: 1 },
    { from: 10, to: 20, value: 0 },
  ]);
});

test("only the part that stands in is drawn of a coarser tile", () => {
  const strip = stripOf(8);
  paintStates(strip, placeOf(frameOf(8, 8), level(0), tileIndex(0), 2, 5), states() as States, 0, looks, MARK, 3);
  expect(picture(strip).at(-1)).toBe("..RRR...");
});

test("a run has the pixels from its begin to its end, at least one, and an edge", () => {
  const strip = stripOf(16);
  const items = runs([-5, 6, 0, 0], [7, 7.01, 1, 0], [8, 30, 0, 4]) as Runs;
  const bars = paintRuns(strip, place(frameOf(16, 16)), items, looks, MARK, 5);
  // What is in doubt is pale.
  expect(picture(strip).at(-1)).toBe("RRRRRR.B|rrrrrrr");
  expect(bars).toEqual([
    { from: 0, to: 6, value: 0 },
    { from: 8, to: 16, value: 0 },
  ]);
});

test("runs that share a pixel are marked", () => {
  const strip = stripOf(4);
  paintRuns(strip, place(frameOf(4, 200)), runs([50, 55, 0, 0], [55, 58, 1, 0], [150, 155, 0, 0]) as Runs, looks, MARK, 5);
  expect(picture(strip)[0]).toBe(".^.R");
});

test("counts are higher by a row whenever they double, and pale where they are estimated", () => {
  const strip = stripOf(6);
  const items = counts([0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 4, 1], [3, 0, 1_000_000, 1], [5, 0, 1, 1]) as Counts;
  paintCounts(strip, place(frameOf(6, 6)), items, looks, (bucket) => bucket === 5);
  expect(picture(strip)).toEqual(["...R..", "...R..", "...R..", "...R..", "..RR..", ".RRR..", "RRRR.r", "RRRR.r"]);
});

test("instants are drawn at their time, as wide as they are to be", () => {
  const strip = stripOf(10);
  paintInstants(strip, place(frameOf(10, 250)), instants([62.5, 0, 0], [249, 1, 0], [300, 0, 0]) as Instants, looks, 2);
  expect(picture(strip).at(-1)).toBe("..RR.....B");
});

test("an arrow has a mark where it leaves, and a line until it has come", () => {
  const strip = stripOf(8);
  const [begin, end] = [Float64Array.of(-3, 3, 7), Float64Array.of(1.5, 5.5, 7)];
  const number = Uint32Array.of(0, 0, 0);
  const items: Arrows = { form: "arrows", begin, end, from: number, to: number, value: number, flags: number };
  paintArrows(strip, place(frameOf(8, 8)), items, looks.of(0).packed);
  expect(picture(strip)).toEqual(["...R...R", "...R...R", "...R...R", "...R...R", "R..RR..R", "R..RR..R"]);
});

test("a heat map has the longest at the top, and stronger colours for more", () => {
  const strip = stripOf(3);
  const heat: Heat = { form: "heat", bucket: Uint32Array.of(0, 1, 2), bin: Uint32Array.of(10, 11, 13), count: Uint32Array.of(1, 2, 1_000) };
  const bins = binsOf([heat]);
  expect(bins).toEqual({ low: 10, high: 13 });
  paintHeat(strip, place(frameOf(3, 3)), heat, bins, [looks.of(0).packed, looks.of(1).packed, looks.of(2).packed]);
  expect(picture(strip)).toEqual(["..W", "..W", "...", "...", ".B.", ".B.", "R..", "R.."]);
  expect(binsOf([])).toEqual({ low: 0, high: 0 });
});

test("a value that is not described yet is grey, and not remembered as that", () => {
  const growing: TrackValue[] = [];
  const early = new Looks("light", growing);
  expect(early.of(0).label).toBe("…");
  growing.push(VALUES[0] as TrackValue);
  expect(early.of(0).label).toBe("running");
});

test("strips of a sheet are empty each time", () => {
  const sheet = new StripSheet();
  sheet.begin(4, 16);
  sheet.next(8).strip.fill(0, 4, 0, 8, MARK);
  expect(sheet.next(8)).toMatchObject({ top: 8 });
  sheet.begin(4, 16);
  expect(sheet.next(8).strip.pixels.every((pixel) => pixel === 0)).toBe(true);
  sheet.begin(2, 4);
  const { strip } = sheet.next(4);
  strip.fill(-5, 99, -1, 99, MARK);
  expect([...strip.pixels]).toEqual(new Array(8).fill(MARK));
  expect(sheet.rows).toBe(4);
});
