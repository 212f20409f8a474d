import { expect, test } from "vitest";
import { packed } from "../model/palette.ts";
import { drawLabels } from "./labels.ts";
import { StripSheet } from "./strip.ts";
import { SvgPen, runsOf, svgDocument, svgTools } from "./svg.ts";

const measure = (text: string): number => 6 * text.length;
const PLACE = { x: 10, y: 20, width: 100, height: 50 };
const RED = packed([255, 0, 0]);
const BLUE = packed([0, 0, 255]);

/** The inside of what was drawn. */
function inside(pen: SvgPen): string {
  return pen.drawn(PLACE).replace(/^<svg [^>]*>|<\/svg>$/g, "");
}

test("rectangles of one style are one path, in the order in which they were drawn", () => {
  const pen = new SvgPen(measure);
  pen.fillStyle = "rgb(1,2,3)";
  pen.fillRect(0, 0, 10, 5);
  pen.fillRect(20, 0.333, 10, 5);
  pen.globalAlpha = 0.15;
  pen.fillRect(0, 0, 1, 1);
  pen.globalAlpha = 1;
  pen.fillRect(2, 2, 1, 1);
  expect(inside(pen).split("\n")).toEqual([
    '<path fill="rgb(1,2,3)" d="M0 0h10v5h-10zM20 0.33h10v5h-10z" shape-rendering="crispEdges"/>',
    '<path fill="rgb(1,2,3)" fill-opacity="0.15" d="M0 0h1v1h-1z" shape-rendering="crispEdges"/>',
    '<path fill="rgb(1,2,3)" d="M2 2h1v1h-1z" shape-rendering="crispEdges"/>',
  ]);
});

test("texts and lines come between them, and say nothing that XML would misread", () => {
  const pen = new SvgPen(measure);
  pen.fillRect(0, 0, 1, 1);
  pen.font = "600 12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.fillStyle = "#123";
  pen.fillText('<a> & "b"\u0001', 1, 2);
  pen.strokeStyle = "#456";
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(0, 0);
  pen.lineTo(5.5, 1);
  pen.stroke();
  expect(inside(pen).split("\n").slice(1)).toEqual([
    '<text x="1" y="2" font-size="12" font-family="system-ui, sans-serif" font-weight="bold" dominant-baseline="central" fill="#123">&#60;a&#62; &#38; &#34;b&#34;</text>',
    '<path d="M0 0L5.5 1" fill="none" stroke="#456" stroke-width="2"/>',
  ]);
  expect(pen.measureText("four").width).toBe(24);
});

test("a strip is as few rectangles as it has areas, and nothing where it has no colour", () => {
  const sheet = new StripSheet();
  sheet.begin(10, 4);
  sheet.next(1);
  const { strip, top } = sheet.next(3);
  strip.fill(0, 4, 0, 3, RED);
  strip.fill(4, 6, 1, 3, BLUE);
  strip.fill(8, 9, 2, 3, RED);
  expect([...runsOf(sheet, top, 3)]).toEqual([
    [RED, [{ from: 0, to: 4, top: 0, bottom: 3 }, { from: 8, to: 9, top: 2, bottom: 3 }]],
    [BLUE, [{ from: 4, to: 6, top: 1, bottom: 3 }]],
  ]);
  const pen = new SvgPen(measure);
  svgTools(pen, sheet).blit(top, 3, { x: 0, y: 30, width: 10, height: 6 });
  expect(inside(pen).split("\n")).toEqual([
    '<path fill="rgb(255,0,0)" d="M0 30h4v6h-4zM8 34h1v2h-1z" shape-rendering="crispEdges"/>',
    '<path fill="rgb(0,0,255)" d="M4 32h2v4h-2z" shape-rendering="crispEdges"/>',
  ]);
});

test("what rectangles cover is what the strip has, whatever it has", () => {
  let state = 7;
  const random = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below;
  const sheet = new StripSheet();
  sheet.begin(40, 8);
  const { strip, top } = sheet.next(8);
  for (let step = 0; step < 60; step++) {
    const [x, y] = [random(40), random(8)];
    strip.fill(x, x + 1 + random(9), y, y + 1 + random(4), [RED, BLUE, 0][random(3)] ?? 0);
  }
  const copy = new Uint32Array(40 * 8);
  for (const [colour, runs] of runsOf(sheet, top, 8)) {
    for (const { from, to, top: first, bottom } of runs) {
      for (let row = first; row < bottom; row++) {
        expect(copy.subarray(row * 40 + from, row * 40 + to).every((pixel) => pixel === 0)).toBe(true);
        copy.fill(colour, row * 40 + from, row * 40 + to);
      }
    }
  }
  expect([...copy]).toEqual([...strip.pixels]);
});

test("a document has its size in CSS pixels, and parts in their places", () => {
  const pen = new SvgPen(measure);
  drawLabels(pen, { rows: [], scroll: 0, width: 100, height: 50, ratio: 2, theme: "light" });
  const text = svgDocument(300, 200, 2, "rgb(9,9,9)", [pen.drawn(PLACE)]);
  expect(text).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="150" height="100" viewBox="0 0 300 200">/);
  expect(text).toContain('<pattern id="unknown" width="8" height="8"');
  expect(text).toContain('<svg x="10" y="20" width="100" height="50" overflow="hidden"><path fill="rgb(255,255,255)" d="M0 0h100v50h-100z"');
});
