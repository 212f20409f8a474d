import { expect, test } from "vitest";
import { px } from "../units/screen.ts";
import { nanos } from "../units/time.ts";
import { SPAN_MIN, clamp, endOf, everything, pan, partOf, pixelOf, timeAt, windowBetween, zoom, type Extent } from "./viewport.ts";

// A time of the year 2026, far beyond what a double holds exactly.
const BEGIN = nanos(1_795_392_172_253_260_578n);
const extent: Extent = { begin: BEGIN, end: nanos(BEGIN + 71_210_000n) };

test("everything is the whole extent, also of a trace with one instant", () => {
  expect(everything(extent)).toEqual({ begin: BEGIN, span: 71_210_000n });
  expect(everything({ begin: BEGIN, end: BEGIN })).toEqual({ begin: BEGIN, span: SPAN_MIN });
});

test("panning there and back ends exactly where it began", () => {
  const view = { begin: nanos(BEGIN + 12_345n), span: nanos(1_001) };
  const away = pan(view, nanos(123_456_789_012_345_678n));
  expect(pan(away, nanos(-123_456_789_012_345_678n))).toEqual(view);
});

test("zooming keeps the time under the pointer there", () => {
  const view = everything(extent);
  const at = timeAt(view, px(700), px(1920));
  let near = view;
  for (let step = 0; step < 20; step++) {
    near = zoom(near, at, 0.7);
    expect(Math.abs(pixelOf(near, at, px(1920)) - 700)).toBeLessThan(1);
  }
  expect(near.span).toBeLessThan(view.span / 1000n);
  expect(near.begin <= at && at < endOf(near)).toBe(true);
});

test("zooming ends at the shortest window", () => {
  let view = everything(extent);
  for (let step = 0; step < 200; step++) {
    view = zoom(view, nanos(BEGIN + 5_000n), 0.5);
  }
  expect(view.span).toBe(SPAN_MIN);
});

test("a window beyond the traces is moved back, one longer than them cut", () => {
  expect(clamp({ begin: nanos(BEGIN - 5n), span: nanos(1_000) }, extent).begin).toBe(BEGIN);
  const late = clamp({ begin: nanos(extent.end - 10n), span: nanos(1_000) }, extent);
  expect(endOf(late)).toBe(extent.end);
  expect(clamp({ begin: nanos(0), span: nanos(1n << 62n) }, extent)).toEqual(everything(extent));
});

test("a part of a window is at least a nanosecond, in the direction asked for", () => {
  const view = { begin: BEGIN, span: nanos(1_000) };
  expect(partOf(view, 0.25)).toBe(250n);
  expect(partOf({ begin: BEGIN, span: nanos(2) }, -0.1)).toBe(-1n);
});

test("each pixel begins at its time, rounded down, also left of the window", () => {
  const view = { begin: nanos(100), span: nanos(10) };
  expect([0, 1, 2, 3, 4].map((x) => timeAt(view, px(x), px(4)))).toEqual([100n, 102n, 105n, 107n, 110n]);
  expect(timeAt(view, px(-1), px(4))).toBe(97n);
  expect(pixelOf(view, nanos(105), px(4))).toBe(2);
});

test("a window between two times does not care which is first", () => {
  expect(windowBetween(nanos(7), nanos(3))).toEqual({ begin: 3n, span: 4n });
});
