import { expect, test } from "vitest";
import type { ArrowLayout, Bundle } from "../model/arrows.ts";
import { SURFACES, css } from "../model/palette.ts";
import { RecordingPen } from "../testing/pen.ts";
import { nanos } from "../units/time.ts";
import { drawArrows } from "./arrows.ts";

const line = { x0: 10, y0: 0, x1: 10, y1: 40 };
const arrow = { ...line, track: "wakeups/0", base: nanos(0), since: 0 };
const bundle = (count: number): Bundle => ({ ...line, track: "wakeups/0", count, from: null, to: null });
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

test("hundreds of arrows are one stroke, bundles one for each width", () => {
  expect(drawn({ exact: Array.from({ length: 300 }, () => arrow) }).of("stroke").length).toBe(1);
  const pen = drawn({ bundles: [1, 2, 3, 4, 15, 16, 300, 1_000_000].map(bundle) });
  expect(pen.of("stroke").length).toBe(4);
});

test("many bundles let what is below them be seen, few need not", () => {
  const strengths = (count: number): number => {
    const pen = new RecordingPen();
    let strength = 0;
    pen.stroke = () => (strength = pen.globalAlpha);
    drawArrows(pen, { layout: { exact: [], bundles: Array.from({ length: count }, () => bundle(1)) }, picked: null, ratio: 1, theme: "light" });
    return strength;
  };
  expect([strengths(3), strengths(90)]).toEqual([0.85, 0.35]);
});

test("the one that is picked lies on top, in a colour of its own", () => {
  const pen = drawn({ exact: [arrow] }, line);
  expect(pen.of("stroke").slice(-2)).toEqual([`stroke ${css(background)}`, `stroke ${css(accent)}`]);
  expect(drawn({}).calls).toEqual([]);
});
