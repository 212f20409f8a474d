import { expect, test } from "vitest";
import { placeOf, type Frame, type Place } from "../model/geometry.ts";
import { packed } from "../model/palette.ts";
import type { TrackValue } from "../model/catalogue.ts";
import { NONE, type Items, type Runs, type States } from "../model/tile.ts";
import { runs, states } from "../testing/tiles.ts";
import { level, tileIndex, valueNumber } from "../units/tiles.ts";
import { px } from "../units/screen.ts";
import { nanos } from "../units/time.ts";
import { Looks } from "./looks.ts";
import { StatePainter, type Bar } from "./states.ts";
import { STRIP_ROWS, StripSheet, type Strip } from "./strip.ts";

const VALUES: TrackValue[] = [
  ["running", "doing", false],
  ["blocked", "doing", true],
  ["waiting for a CPU", "doing", true],
  ["idle", "thread", true],
  ["cc1 (7)", "thread", false],
  ["make (8)", "thread", false],
].map(([label, kind, isRest], number) => ({ number: valueNumber(number), label: String(label), kind: String(kind), colour: 3 * number, isRest: isRest === true }));
const [RUNNING, BLOCKED, WAITING, IDLE, CC1, MAKE] = [0, 1, 2, 3, 4, 5];
const looks = new Looks("light", VALUES);
const MARK = packed([1, 2, 3]);
const ALL = 65_535;

/** As letters: which value has which colour. */
const LETTERS = new Map<number, string>([
  [0, "."],
  [MARK, "^"],
  ...VALUES.map((value): [number, string] => [looks.of(value.number).packed, "RBWicm"[value.number] ?? "?"]),
  ...VALUES.map((value): [number, string] => [looks.of(value.number).pale, "p"]),
  ...VALUES.map((value): [number, string] => [looks.of(value.number).edge, "|"]),
]);

function stripOf(width: number): Strip {
  const sheet = new StripSheet();
  sheet.begin(width, STRIP_ROWS);
  return sheet.next(STRIP_ROWS).strip;
}

/** Every second row of a strip as text, from the top down, without empty ones at the top. */
function picture(strip: Strip): string[] {
  const rows = Array.from({ length: strip.rows / 2 }, (_, row) => Array.from({ length: strip.width }, (_, x) => LETTERS.get(strip.at(x, 2 * row)) ?? "?").join(""));
  const first = rows.findIndex((row) => /[^.]/.test(row));
  return first < 0 ? [] : rows.slice(first);
}

/** How high the column of a pixel is, in rows, without its mark. */
function height(strip: Strip, x: number): number {
  return Array.from({ length: strip.rows }, (_, row) => strip.at(x, row)).filter((colour) => colour !== 0 && colour !== MARK).length;
}

/** `width` pixels that show `buckets` buckets of a nanosecond, of tile 0. */
function frameOf(width: number, buckets: number, begin = 0): Frame {
  return { view: { begin: nanos(begin), span: nanos(buckets) }, width: px(width), origin: nanos(0) };
}

const place = (frame: Frame, end?: number): Place => placeOf(frame, level(0), tileIndex(0), 0, end);

function paint(strip: Strip, ...parts: (readonly [Place, Items, number?])[]): Bar[] {
  const painter = new StatePainter(strip, looks, { mark: MARK, barMin: 5, isLoad: true });
  for (const [where, items, carry] of parts) {
    if (items.form === "states") {
      painter.states(where, items, carry ?? NONE);
    } else {
      painter.runs(where, items as Runs);
    }
  }
  return painter.finish();
}

test("a state lasts until another one begins, also from before the tile", () => {
  const strip = stripOf(8);
  paint(strip, [place(frameOf(8, 8)), states([2, RUNNING, NONE, RUNNING, 1, ALL, 0], [5, BLOCKED, NONE, NONE, 1, ALL, 0, NONE, 0]), WAITING]);
  // Blocked is low, waiting of middle height, running high; behind bucket 5 there is nothing.
  expect(picture(strip)).toEqual(["..RRR...", "..RRR...", "..RRR...", "WWRRR...", "WWRRR...", "WWRRR...", "WWRRRB..", "WWRRRB.."]);
});

test.each([0.05, 0.3, 0.54, 0.6, 0.95])("a CPU that is busy for %d of a pixel is as high, of however many threads and however it is told", (busy) => {
  // Each pixel is 100 ns: cc1 and make run by turns for 4 ns each as often as is needed, and the CPU is idle between.
  const pixels = 5;
  const rows: number[][] = [];
  const turns = Math.round(busy * 25);
  for (let turn = 0; turn < 25 * pixels; turn++) {
    const isBusy = ((turn + 1) * turns) % 25 < turns;
    rows.push([4 * turn, 4 * turn + 4, isBusy ? (turn % 2 === 0 ? CC1 : MAKE) : IDLE, 0]);
  }
  const frame: Frame = { view: { begin: nanos(0), span: nanos(100 * pixels) }, width: px(pixels), origin: nanos(0) };
  const single = stripOf(pixels);
  paint(single, [placeOf(frame, level(1), tileIndex(0)), runs(...rows)]);
  // The same in buckets of 32 ns, in which idle is most, or one of the threads.
  const part = (value: number, from: number, to: number): number => rows.reduce((sum, [begin = 0, end = 0, held]) => sum + (held === value ? Math.max(0, Math.min(end, to) - Math.max(begin, from)) : 0), 0) / 32;
  const buckets = Array.from({ length: 16 }, (_, bucket) => {
    const [from, to] = [32 * bucket, 32 * bucket + 32];
    const shares = [CC1, MAKE, IDLE].map((value) => [value, part(value, from, to)] as const).sort(([, one], [, other]) => other - one);
    const busiest = [CC1, MAKE].sort((one, other) => part(other, from, to) - part(one, from, to))[0] ?? NONE;
    const share = (place: number): number => Math.round((shares[place]?.[1] ?? 0) * ALL);
    const atWork = Math.round((part(CC1, from, to) + part(MAKE, from, to)) * ALL);
    return [bucket, shares[0]?.[0] ?? 0, shares[1]?.[0] ?? 0, IDLE, 8, share(0), share(1), atWork > 0 ? busiest : NONE, atWork];
  });
  const summed = stripOf(pixels);
  paint(summed, [placeOf(frame, level(5), tileIndex(0)), states(...buckets), IDLE]);
  const idle = looks.rows[IDLE] ?? 0;
  for (let x = 0; x < pixels; x++) {
    const wanted = idle + busy * (STRIP_ROWS - idle);
    expect(Math.abs(height(single, x) - wanted), `run by run, pixel ${x}`).toBeLessThanOrEqual(1.6);
    expect(Math.abs(height(summed, x) - wanted), `in buckets, pixel ${x}`).toBeLessThanOrEqual(1.6);
  }
});

test("a thread that runs for a moment in a pixel stands out of its blocked state", () => {
  const summed = stripOf(3);
  paint(summed, [place(frameOf(3, 3)), states([1, BLOCKED, RUNNING, BLOCKED, 2, ALL - 600, 600, RUNNING, 600]), BLOCKED]);
  const single = stripOf(3);
  paint(single, [place(frameOf(3, 3)), runs([0, 1.4, BLOCKED, 0], [1.4, 1.41, RUNNING, 0], [1.41, 3, BLOCKED, 0])]);
  for (const strip of [summed, single]) {
    const base = looks.rows[BLOCKED] ?? 0;
    expect([height(strip, 0), height(strip, 1), height(strip, 2)]).toEqual([base, base + 2, base]);
    expect(strip.at(1, STRIP_ROWS - base - 1)).toBe(looks.of(RUNNING).packed);
  }
});

test("on a row where single runs are to be found, a moment has three quarters of its height, and all of a pixel is as high as it", () => {
  const strip = stripOf(3);
  const painter = new StatePainter(strip, looks, { mark: MARK, barMin: 5, isLoad: false });
  painter.states(place(frameOf(3, 3)), states([0, RUNNING, NONE, NONE, 1, 600, 0], [1, RUNNING, NONE, NONE, 4, ALL, 0], [2, BLOCKED, RUNNING, BLOCKED, 2, ALL - 600, 600, RUNNING, 600]) as States, NONE);
  painter.finish();
  expect([0, 1, 2].map((x) => height(strip, x))).toEqual([12, STRIP_ROWS - 1, 12]);
});

test("two threads share a column, the second below the first", () => {
  const strip = stripOf(2);
  paint(strip, [place(frameOf(2, 2)), states([0, CC1, MAKE, NONE, 2, ALL * 0.6, ALL * 0.4], [1, CC1, MAKE, NONE, 2, ALL * 0.95, ALL * 0.05])]);
  // Of 16 rows 6 are 40 % of it.
  expect(picture(strip)).toEqual(["^^", "cc", "cc", "cc", "cc", "mc", "mc", "mc"]);
});

test("a state that covers little of its pixel is low, but never invisible, also if it takes no time", () => {
  const strip = stripOf(3);
  paint(strip, [place(frameOf(3, 3)), states([0, CC1, NONE, NONE, 1, 1, 0])]);
  paint(strip, [place(frameOf(3, 3)), runs([2, 2, CC1, 0])]);
  expect(picture(strip)).toEqual(["c.c"]);
});

test("runs without length at the borders of tiles are drawn once, wherever the window begins", () => {
  for (let begin = 200; begin < 256; begin += 3.5) {
    const frame: Frame = { view: { begin: nanos(Math.floor(begin)), span: nanos(90) }, width: px(41), origin: nanos(0) };
    const strip = stripOf(41);
    // The borders of tiles of a nanosecond are at 256; a run of each side.
    const [one, other] = [placeOf(frame, level(0), tileIndex(0)), placeOf(frame, level(0), tileIndex(1))];
    paint(strip, [one, runs([255, 255, CC1, 0])], [other, runs([0, 0, MAKE, 0])]);
    const bottom = picture(strip).at(-1) ?? "";
    expect(bottom.replaceAll(".", "").length).toBeGreaterThanOrEqual(1);
    expect(bottom).toMatch(/[cm]/);
    const borders = [255, 256].map((time) => Math.floor(((time - Math.floor(begin)) * 41) / 90));
    borders.forEach((x) => expect(bottom[x]).toMatch(/[cm]/));
  }
});

test("a pixel that two tiles share shows both", () => {
  // 512 buckets on 25 pixels: pixel 12 has the border of the tiles in its middle.
  const frame = frameOf(25, 512);
  const strip = stripOf(25);
  const half = states([250, CC1, NONE, NONE, 1, ALL, 0], [251, CC1, NONE, NONE, 0, ALL, 0]);
  paint(strip, [placeOf(frame, level(0), tileIndex(0)), half], [placeOf(frame, level(0), tileIndex(1)), states([0, CC1, NONE, NONE, 1, ALL, 0], [1, CC1, NONE, NONE, 0, ALL, 0])]);
  // Four of its 20.5 buckets.
  expect(height(strip, 12)).toBe(Math.round((4 / 20.48) * STRIP_ROWS));
});

test("many begins in a pixel are marked at the top", () => {
  const strip = stripOf(3);
  const row = (bucket: number, begins: number): number[] => [bucket, BLOCKED, NONE, BLOCKED, begins, ALL, 0, NONE, 0];
  paint(strip, [place(frameOf(3, 3)), states(row(0, 1), row(1, 7), row(2, 8))]);
  expect([0, 1, 2].map((row) => [0, 1, 2].map((x) => LETTERS.get(strip.at(x, row))).join(""))).toEqual([".^^", "..^", "..."]);
});

test("every bucket is seen, wherever the window begins", () => {
  for (let begin = 0; begin < 20; begin++) {
    const strip = stripOf(23);
    const rows = Array.from({ length: 40 }, (_, bucket) => [bucket, bucket % 2 === 0 ? CC1 : MAKE, NONE, bucket % 2 === 0 ? CC1 : MAKE, 1, ALL, 0]);
    paint(strip, [place(frameOf(23, 16, begin)), states(...rows)]);
    const bottom = picture(strip).at(-1) ?? "";
    expect(bottom).not.toContain(".");
    expect((bottom.match(/c+|m+/g) ?? []).length).toBeGreaterThanOrEqual(15);
  }
});

test("long states are told, for their names, and have an edge where they begin", () => {
  const strip = stripOf(20);
  const bars = paint(strip, [place(frameOf(20, 10)), states([4, CC1, NONE, MAKE, 1, ALL, 0]), CC1]);
  expect(bars).toEqual([
    { from: 0, to: 8, value: CC1 },
    { from: 10, to: 20, value: MAKE },
  ]);
  expect(picture(strip).at(-1)).toBe("cccccccccc|mmmmmmmmm");
});

test("only the part that stands in is drawn of a coarser tile", () => {
  const strip = stripOf(8);
  paint(strip, [placeOf(frameOf(8, 8), level(0), tileIndex(0), 2, 5), states() as States, CC1]);
  expect(picture(strip).at(-1)).toBe("..ccc...");
});

test("a run has the pixels from its begin to its end, and an edge", () => {
  const strip = stripOf(16);
  const bars = paint(strip, [place(frameOf(16, 16)), runs([-5, 6, CC1, 0], [7, 7.01, MAKE, 0], [8, 30, CC1, 4])]);
  // What is in doubt is pale.
  expect(picture(strip).at(-1)).toBe("cccccc.m|ppppppp");
  expect(bars).toEqual([
    { from: 0, to: 6, value: CC1 },
    { from: 8, to: 16, value: CC1 },
  ]);
});

test("runs that share a pixel are marked", () => {
  const strip = stripOf(4);
  paint(strip, [place(frameOf(4, 200)), runs([50, 55, CC1, 0], [55, 58, MAKE, 0], [150, 155, CC1, 0])]);
  expect(picture(strip)[0]).toBe(".^..");
});
