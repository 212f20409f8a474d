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
import { CountPainter, HeatPainter, binsOf, paintArrows, paintInstants } from "./paint.ts";
import { StatePainter } from "./states.ts";
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

test("counts are higher by two rows whenever they double, and pale where they are estimated", () => {
  const strip = stripOf(6);
  const items = counts([0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 4, 1], [3, 0, 1_000_000, 1], [5, 0, 1, 1]) as Counts;
  const painter = new CountPainter(strip);
  painter.counts(place(frameOf(6, 6)), items, looks, (bucket) => bucket === 5);
  painter.finish();
  const heights = Array.from({ length: 6 }, (_, x) => Array.from({ length: strip.rows }, (_, row) => strip.at(x, row)).filter((colour) => colour !== 0).length);
  expect(heights).toEqual([4, 6, 8, 16, 0, 4]);
  expect(picture(strip).at(-1)).toBe("RRRR.r");
});

test("buckets of a pixel are added up, also those of two tiles, and none is left out where tiles meet", () => {
  // 512 buckets on 100 pixels: a pixel has a part of both tiles.
  const strip = stripOf(100);
  const frame = frameOf(100, 512);
  const painter = new CountPainter(strip);
  const one = counts([254, 0, 1, 1], [255, 0, 1, 1]) as Counts;
  const other = counts([0, 0, 2, 2], [1, 1, 4, 4], [255, 0, 1, 1]) as Counts;
  painter.counts(placeOf(frame, level(0), tileIndex(0)), one, looks, () => false);
  painter.counts(placeOf(frame, level(0), tileIndex(1)), other, looks, () => false);
  painter.finish();
  const seen = Array.from({ length: 100 }, (_, x) => x).filter((x) => strip.at(x, strip.rows - 1) !== 0);
  // Buckets 254 and 255 end at 50.0; 256 and 257 begin there; 511 is in the last pixel.
  expect(seen).toEqual([49, 50, 99]);
  expect(picture(strip).at(-1)?.slice(49, 51)).toBe("RB");
  const sums = new CountPainter(stripOf(1));
  sums.counts(placeOf(frameOf(1, 512), level(0), tileIndex(0)), one, looks, () => false);
  sums.counts(placeOf(frameOf(1, 512), level(0), tileIndex(1)), other, looks, () => false);
  expect((sums as unknown as { count: number }).count).toBe(9);
});

test("instants are drawn at their time, as wide as they are to be, also at the end of a tile", () => {
  const strip = stripOf(10);
  paintInstants(strip, place(frameOf(10, 250)), instants([62.5, 0, 0], [249, 1, 0], [300, 0, 0]) as Instants, looks, 2);
  expect(picture(strip).at(-1)).toBe("..RR.....B");
  // The tile ends at pixel 5.12: its last nanosecond is in pixel 5.
  const border = stripOf(10);
  paintInstants(border, place(frameOf(10, 500)), instants([255, 0, 0]) as Instants, looks, 1);
  expect(picture(border).at(-1)).toBe(".....R....");
});

test("an arrow has a mark where it leaves, and a line until it has come", () => {
  const strip = stripOf(8);
  const [begin, end] = [Float64Array.of(-3, 3, 7), Float64Array.of(1.5, 5.5, 7)];
  const number = Uint32Array.of(0, 0, 0);
  const items: Arrows = { form: "arrows", begin, end, from: number, to: number, value: number, flags: number };
  paintArrows(strip, place(frameOf(8, 8)), items, looks.of(0).packed);
  expect([...new Set(picture(strip))]).toEqual(["...R...R", "R..RR..R"]);
});

test("a heat map has the longest at the top, and stronger colours for more", () => {
  const strip = stripOf(3);
  const heat: Heat = { form: "heat", bucket: Uint32Array.of(0, 1, 2), bin: Uint32Array.of(10, 11, 13), count: Uint32Array.of(1, 2, 1_000) };
  const bins = binsOf([heat]);
  expect(bins).toEqual({ low: 10, high: 13 });
  const painter = new HeatPainter(strip, bins, [looks.of(0).packed, looks.of(1).packed, looks.of(2).packed]);
  painter.heat(place(frameOf(3, 3)), heat);
  painter.finish();
  expect(picture(strip).filter((_, row) => row % 2 === 0)).toEqual(["..W", "..W", "...", "...", ".B.", ".B.", "R..", "R.."]);
  // Those of one pixel are added up by bin.
  const one = stripOf(1);
  const sums = new HeatPainter(one, bins, [looks.of(0).packed, looks.of(1).packed, looks.of(2).packed]);
  sums.heat(place(frameOf(1, 3)), { ...heat, bin: Uint32Array.of(10, 10, 13), count: Uint32Array.of(1, 2, 1) });
  sums.finish();
  expect([one.at(0, one.rows - 1), one.at(0, 0)]).toEqual([looks.of(1).packed, looks.of(0).packed]);
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

function stateful(strip: Strip, act: (painter: StatePainter) => void): void {
  const painter = new StatePainter(strip, looks, { mark: MARK, barMin: 99, isLoad: true });
  act(painter);
  painter.finish();
}

function counted(strip: Strip, act: (painter: CountPainter) => void): void {
  const painter = new CountPainter(strip);
  act(painter);
  painter.finish();
}

test("whatever has no duration is drawn, also at the border of a tile and at the end of the window", () => {
  // Windows with pixels of two tiles: wherever the border lies on the screen, each thing at it is on some pixel.
  for (let step = 0; step < 52; step++) {
    const [begin, span] = [200 + step, 64 + (step % 7)];
    const frame = frameOf(23, span, begin);
    const [one, other] = [placeOf(frame, level(0), tileIndex(0)), placeOf(frame, level(0), tileIndex(1))];
    for (let time = begin; time < begin + span; time++) {
      const [mine, since] = time < 256 ? [one, time] : [other, time - 256];
      const drawn = (draw: (strip: Strip) => void): boolean => {
        const strip = stripOf(23);
        draw(strip);
        return strip.pixels.subarray(0, 23 * STRIP_ROWS).some((pixel) => pixel !== 0);
      };
      expect(drawn((strip) => stateful(strip, (painter) => painter.runs(mine, runs([since, since, 0, 0]) as Runs))), `a run at ${time} of ${begin}`).toBe(true);
      expect(drawn((strip) => paintInstants(strip, mine, instants([since, 0, 0]) as Instants, looks, 1)), `an instant at ${time} of ${begin}`).toBe(true);
      const arrow: Arrows = { form: "arrows", begin: Float64Array.of(since), end: Float64Array.of(since), from: Uint32Array.of(0), to: Uint32Array.of(0), value: Uint32Array.of(0), flags: Uint32Array.of(0) };
      expect(drawn((strip) => paintArrows(strip, mine, arrow, MARK)), `an arrow at ${time} of ${begin}`).toBe(true);
      expect(drawn((strip) => counted(strip, (painter) => painter.counts(mine, counts([since, 0, 1, 1]) as Counts, looks, () => false))), `a count at ${time} of ${begin}`).toBe(true);
      expect(drawn((strip) => stateful(strip, (painter) => painter.states(mine, states([since, 0, NONE, NONE, 1, 0, 0]) as States, NONE))), `a state at ${time} of ${begin}`).toBe(true);
    }
  }
});
