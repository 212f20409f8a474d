import { expect, test } from "vitest";
import type { ArrowLayout, Bundle } from "../model/arrows.ts";
import { SURFACES, css } from "../model/palette.ts";
import { RecordingPen } from "../testing/pen.ts";
import { nanos } from "../units/time.ts";
import { drawArrows } from "./arrows.ts";

const line = { x0: 10, y0: 0, x1: 10, y1: 40 };
const arrow = { ...line, track: "wakeups/0", base: nanos(0), since: 0 };
const bundle = (count: number, right = 10): Bundle => ({ left: 10, right, y0: 0, y1: 40, track: "wakeups/0", count, from: null, to: null });
const { ink, background, accent } = SURFACES.light;

function drawn(layout: Partial<ArrowLayout>, picked: typeof line | null = null): RecordingPen {
  const pen = new RecordingPen();
  drawArrows(pen, { layout: { exact: [], bundles: [], ...layout }, picked, ratio: 1, theme: "light" });
  return pen;
}

test("an arrow is a line with a head, on a lighter line", () => {
  const pen = drawn({ exact: [arrow] });
  const path = ["path", "move 10 0", "line 10 40", "move 13.5 33", "line 10 40", "line 6.5 33"];
  expect(pen.calls).toEqual([...path, `stroke ${css(background)}`, ...path, `stroke ${css(ink)}`]);
  expect(pen.globalAlpha).toBe(1);
});

test("what is shorter than a head has a shorter one, and what has no length none", () => {
  expect(drawn({ exact: [{ ...arrow, y1: 3 }] }).of("line")).toContain("line 6.5 0");
  expect(drawn({ exact: [{ ...arrow, y1: 0 }] }).of("move").length).toBe(2);
});

test("hundreds of arrows are one stroke", () => {
  expect(drawn({ exact: Array.from({ length: 300 }, () => arrow) }).of("stroke").length).toBe(1);
});

test("a bundle is a faint band from its first to its last arrow, with no line in it, and is stronger at the end where they arrive", () => {
  const pen = drawn({ bundles: [bundle(8, 26)] });
  expect(pen.of("stroke")).toEqual([]);
  expect(pen.of("rect").map((call) => call.split(" ").slice(1, 5))).toEqual([
    ["10", "0", "16", "40"],
    ["10", "38", "16", "2"],
  ]);
});

test("the strength of a bundle grows with the number of arrows in a pixel, and lets the bars below be seen", () => {
  const strength = (one: Bundle): number => {
    const pen = new RecordingPen();
    let found = 0;
    pen.fillRect = (_x, _y, _width, height) => (found = height === 40 ? pen.globalAlpha : found);
    drawArrows(pen, { layout: { exact: [], bundles: [one] }, picked: null, ratio: 1, theme: "light" });
    return found;
  };
  expect(strength(bundle(16, 26))).toBe(strength(bundle(1)));
  expect(strength(bundle(64))).toBeGreaterThan(strength(bundle(4)));
  expect(strength(bundle(1e9))).toBeLessThan(0.35);
});

test("the one that is picked lies on top, in a colour of its own", () => {
  const pen = drawn({ exact: [arrow] }, line);
  expect(pen.of("stroke").slice(-2)).toEqual([`stroke ${css(background)}`, `stroke ${css(accent)}`]);
  expect(drawn({}).calls).toEqual([]);
});
