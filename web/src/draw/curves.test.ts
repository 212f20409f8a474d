import { expect, test } from "vitest";
import type { Piece } from "../model/cache.ts";
import { SURFACES, contrast, css } from "../model/palette.ts";
import { NONE, type Items, type Span } from "../model/tile.ts";
import { RecordingPen, recordingTools } from "../testing/pen.ts";
import { counter, heldCounter } from "../testing/tiles.ts";
import { px } from "../units/screen.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { counterParts, rangeSeen } from "./counter.ts";
import { curveColour, drawCurves, type CurvesPicture } from "./curves.ts";

const frame = { view: { begin: nanos(0), span: nanos(256) }, width: px(256), origin: nanos(0) };
const EXACT: readonly Span[] = [{ begin: 0, end: 256, quality: "exact" }];

function pieceOf(items: Items, spans = EXACT, index = 0): Piece {
  return { tile: { level: level(0), index: tileIndex(index), track: trackNumber(0), carry: NONE, items, spans }, begin: 0, end: 256, standIn: false };
}

function drawn(lanes: CurvesPicture["lanes"], more: Partial<CurvesPicture> = {}): RecordingPen {
  const pen = new RecordingPen();
  drawCurves(pen, recordingTools(pen), { frame, height: 124, ratio: 1, theme: "light", ticks: [], lanes, selection: null, mark: null, ...more });
  return pen;
}

test("a curve has steps from its axis' least to its most", () => {
  const pen = drawn([{ unit: "bytes", curves: [{ colour: 0, pieces: [pieceOf(heldCounter(0, [9, 1, 0, 2048, 2048, 2], [99, 1, 1024, 2048, 1024, 2]))] }] }]);
  expect([...pen.of("move"), ...pen.of("line")]).toEqual(["move 0 101", "line 10 101", "line 10 5", "line 100 5", "line 100 53", "line 256 53"]);
  expect(pen.of("stroke")).toEqual([`stroke ${css(curveColour("light", 0))}`]);
  expect(pen.of("text").map((call) => call.split(" ").slice(1, -3).join(" "))).toEqual(["0 B", "1\u202f024 B", "2\u202f048 B"]);
  // Where it changes within a pixel, its envelope goes from the least to the most.
  expect(pen.of("rect").filter((call) => call.endsWith("0.35"))).toEqual([`rect 9 5 1 96 ${css(curveColour("light", 0))} 0.35`, `rect 99 5 1 48 ${css(curveColour("light", 0))} 0.35`]);
});

test("curves that count other things have lanes of their own", () => {
  const one = { colour: 0, pieces: [pieceOf(heldCounter(3))] };
  const pen = drawn([{ unit: null, curves: [one, { ...one, colour: 1 }] }, { unit: "jobs", curves: [{ ...one, colour: 2 }] }]);
  expect(pen.of("rect").filter((call) => call.endsWith(css(SURFACES.light.lane)))).toEqual([`rect 0 0 256 50 ${css(SURFACES.light.lane)}`, `rect 0 56 256 50 ${css(SURFACES.light.lane)}`]);
  // What never changes lies in the middle.
  expect(pen.of("line")).toEqual(["line 256 25", "line 256 25", "line 256 81"]);
  expect(pen.of("text").map((call) => call.split(" ").slice(1, -3).join(" "))).toEqual(["3", "3 jobs"]);
});

test("what was not read is hatched once, and a curve does not go on there", () => {
  const spans: Span[] = [
    { begin: 0, end: 100, quality: "exact" },
    { begin: 100, end: 256, quality: "estimated" },
  ];
  const curve = { colour: 0, pieces: [pieceOf(heldCounter(3), spans)] };
  const pen = drawn([{ unit: null, curves: [curve, { ...curve, colour: 1 }] }]);
  expect(pen.of("line")).toEqual(["line 100 53", "line 100 53"]);
  expect(pen.of("rect").filter((call) => call.endsWith("building"))).toEqual(["rect 100 0 156 106 building"]);
});

test("the selection, the mark and the ruler lie over all lanes", () => {
  const pen = drawn([], { selection: { begin: nanos(10), span: nanos(20) }, mark: nanos(40), ticks: [{ time: nanos(64), x: px(64), label: "64 ns" }] });
  const { accent, ink } = SURFACES.light;
  expect(pen.of("rect").slice(-4)).toEqual([`rect 10 0 20 106 ${css(accent)} 0.15`, `rect 10 0 1 106 ${css(accent)}`, `rect 29 0 1 106 ${css(accent)}`, `rect 40 0 1 106 ${css(ink)}`]);
  expect(pen.of("text")).toEqual([`text 64 ns 68 109 ${css(ink)}`]);
});

test("the scale is that of what is on the screen", () => {
  const tile = counter([5, 1, 0, 100, 100, 1], [50, 1, 100, 110, 110, 1], [200, 1, -7, 110, 3, 1]);
  const seen = (begin: number, span: number): unknown => rangeSeen(counterParts({ ...frame, view: { begin: nanos(begin), span: nanos(span) } }, [pieceOf(tile)]));
  expect(seen(0, 256)).toEqual({ low: -7, high: 110 });
  expect(seen(20, 20)).toEqual({ low: 100, high: 100 });
  expect(seen(60, 100)).toEqual({ low: 110, high: 110 });
  expect(seen(210, 20)).toEqual({ low: 3, high: 3 });
  expect(seen(0, 3)).toBeNull();
  // What it was before the first tile's end holds in the next one.
  expect(rangeSeen(counterParts({ ...frame, view: { begin: nanos(256), span: nanos(10) } }, [pieceOf(tile), pieceOf(counter(), EXACT, 1)]))).toEqual({ low: 3, high: 3 });
});

test("colours can be seen, and twelve differ", () => {
  for (const theme of ["light", "dark"] as const) {
    const colours = Array.from({ length: 12 }, (_, number) => curveColour(theme, number));
    expect(new Set(colours.map(css)).size).toBe(12);
    expect(Math.min(...colours.map((colour) => contrast(colour, SURFACES[theme].lane)))).toBeGreaterThan(1.9);
  }
});
