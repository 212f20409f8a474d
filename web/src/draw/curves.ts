// Counters as curves: lanes one below the other, each with its axis, over the same time as the timeline.
//
//     ┌ 64 KiB ─────────────  marks of the axis, with their names on the left
//     │      ┌──┐    ┌────    a line with steps, an envelope where it changes within a pixel
//     ├ 0 ───┘  └────┘
//     └ 1.2 s ── 1.4 s ─────  the ruler

import type { Piece } from "../model/cache.ts";
import { axisMarksIn } from "../model/curves.ts";
import { placeOf, type Frame } from "../model/geometry.ts";
import { HUES, SURFACES, css, mix, type Rgb, type Theme } from "../model/palette.ts";
import { isSize, shortQuantity } from "../model/quantity.ts";
import type { Tick } from "../model/ruler.ts";
import { endOf, pixelOf, type Viewport } from "../model/viewport.ts";
import type { Nanos } from "../units/time.ts";
import { counterParts, drawEnvelope, drawLine, rangeSeen, widened, type Scale } from "./counter.ts";
import type { Box, Pen, Tools } from "./pen.ts";

/** One curve: its color by its number, and its tiles. */
export interface DrawnCurve {
  readonly colour: number;
  readonly pieces: readonly Piece[];
}

export interface CurvesPicture {
  readonly frame: Frame;
  readonly height: number;
  readonly ratio: number;
  readonly theme: Theme;
  readonly ticks: readonly Tick[];
  readonly lanes: readonly { readonly unit: string | null; readonly curves: readonly DrawnCurve[] }[];
  readonly selection: Viewport | null;
  readonly mark: Nanos | null;
}

const RULER_CSS_PX = 18;
const GAP_CSS_PX = 6;
const TEXT_CSS_PX = 11;
/** Marks of an axis are so far apart at least. */
const MARKS_APART_CSS_PX = 28;
/** Lines do not touch the edges of their lane. */
const INSET_CSS_PX = 5;

/** The color of a curve by its number: six hues that are told apart, then the same nearer to the ink. */
export function curveColour(theme: Theme, number: number): Rgb {
  const hues = HUES.slice(0, 6);
  const hue = hues[number % hues.length] ?? SURFACES[theme].accent;
  const seen = theme === "dark" ? mix(hue, [255, 255, 255], 0.2) : mix(hue, [0, 0, 0], 0.12);
  return number < hues.length ? seen : mix(seen, SURFACES[theme].ink, 0.45);
}

export function drawCurves(pen: Pen, tools: Tools, picture: CurvesPicture): void {
  const { frame, height, ratio, theme, lanes } = picture;
  const surface = SURFACES[theme];
  pen.fillStyle = css(surface.background);
  pen.fillRect(0, 0, frame.width, height);
  const [ruler, gap] = [Math.round(RULER_CSS_PX * ratio), Math.round(GAP_CSS_PX * ratio)];
  const each = Math.floor((height - ruler - gap * Math.max(0, lanes.length - 1)) / Math.max(1, lanes.length));
  lanes.forEach((lane, index) => {
    const box = { x: 0, y: index * (each + gap), width: frame.width, height: Math.max(1, each) };
    pen.fillStyle = css(surface.lane);
    pen.fillRect(box.x, box.y, box.width, box.height);
    drawTicks(pen, picture, box);
    drawLane(pen, tools, picture, lane, box);
  });
  drawRuler(pen, picture, height - ruler);
  drawOver(pen, picture, height - ruler);
}

function drawLane(pen: Pen, tools: Tools, picture: CurvesPicture, lane: CurvesPicture["lanes"][number], box: Box): void {
  const { frame, ratio, theme } = picture;
  const surface = SURFACES[theme];
  const curves = lane.curves.map(({ colour, pieces }) => ({ colour: curveColour(theme, colour), pieces, parts: counterParts(frame, pieces) }));
  const ranges = curves.map(({ parts }) => rangeSeen(parts)).filter((range): range is Scale => range !== null);
  const range = ranges.length === 0 ? null : { low: Math.min(...ranges.map(({ low }) => low)), high: Math.max(...ranges.map(({ high }) => high)) };
  const scale = widened(range);
  const inset = Math.min(INSET_CSS_PX * ratio, box.height / 4);
  const y = (value: number): number => box.y + box.height - inset - ((value - scale.low) / (scale.high - scale.low)) * (box.height - 2 * inset);
  const marks = range === null ? [] : range.low === range.high ? [range.low] : axisMarksIn(scale.low, scale.high, Math.floor(box.height / (MARKS_APART_CSS_PX * ratio)), isSize(lane.unit));
  pen.fillStyle = css(surface.line);
  marks.forEach((mark) => pen.fillRect(box.x, Math.round(y(mark)), box.width, Math.max(1, Math.round(ratio / 2))));
  for (const { colour, parts } of curves) {
    pen.fillStyle = css(colour);
    pen.globalAlpha = 0.35;
    parts.forEach((part) => drawEnvelope(pen, part, y));
    pen.globalAlpha = 1;
  }
  for (const { colour, parts } of curves) {
    pen.strokeStyle = css(colour);
    pen.lineWidth = Math.max(1, 1.5 * ratio);
    drawLine(pen, parts, y);
  }
  drawDoubt(pen, tools, picture, curves.flatMap(({ pieces }) => pieces), box);
  drawNumbers(pen, picture, marks.map((mark) => ({ text: shortQuantity(mark, lane.unit), y: y(mark) })), box);
}

/** Names of an axis' marks, over anything that they cover. */
function drawNumbers(pen: Pen, { ratio, theme }: CurvesPicture, numbers: readonly { readonly text: string; readonly y: number }[], box: Box): void {
  const { lane, ink } = SURFACES[theme];
  const size = TEXT_CSS_PX * ratio;
  pen.font = `${Math.round(size)}px system-ui, sans-serif`;
  pen.textBaseline = "top";
  pen.textAlign = "left";
  for (const { text, y } of numbers) {
    const top = Math.min(Math.max(Math.round(y - size / 2), box.y), Math.round(box.y + box.height - size - 2 * ratio));
    pen.fillStyle = css(lane);
    pen.globalAlpha = 0.8;
    pen.fillRect(box.x, top, pen.measureText(text).width + 8 * ratio, size + 2 * ratio);
    pen.globalAlpha = 1;
    pen.fillStyle = css(ink);
    pen.fillText(text, box.x + 4 * ratio, top + ratio);
  }
}

function drawTicks(pen: Pen, { ticks, ratio, theme }: CurvesPicture, box: Box): void {
  pen.fillStyle = css(SURFACES[theme].line);
  for (const tick of ticks.filter(({ label }) => label !== "")) {
    pen.fillRect(Math.round(tick.x), box.y, Math.max(1, Math.round(ratio / 2)), box.height);
  }
}

/** Hatching where some curve is not read yet, or nothing is known. */
function drawDoubt(pen: Pen, tools: Tools, { frame }: CurvesPicture, pieces: readonly Piece[], box: Box): void {
  const drawn = new Set<string>();
  for (const { tile, begin, end } of pieces) {
    const place = placeOf(frame, tile.level, tile.index, begin, end);
    for (const span of tile.spans.filter(({ quality }) => quality !== "exact")) {
      const from = Math.max(place.from, Math.round(place.left + span.begin * place.step));
      const to = Math.min(place.to, Math.round(place.left + span.end * place.step));
      if (from < to && !drawn.has(`${from} ${to}`)) {
        drawn.add(`${from} ${to}`);
        pen.fillStyle = span.quality === "unknown" ? tools.hatch.unknown : tools.hatch.building;
        pen.fillRect(from, box.y, to - from, box.height);
      }
    }
  }
}

function drawRuler(pen: Pen, { ticks, ratio, theme, frame }: CurvesPicture, top: number): void {
  const { faint, ink } = SURFACES[theme];
  pen.font = `${Math.round(TEXT_CSS_PX * ratio)}px system-ui, sans-serif`;
  pen.textBaseline = "top";
  pen.textAlign = "left";
  for (const tick of ticks.filter(({ label }) => label !== "")) {
    const x = Math.round(tick.x);
    pen.fillStyle = css(faint);
    pen.fillRect(x, top, Math.max(1, Math.round(ratio / 2)), 5 * ratio);
    if (x + 4 * ratio + pen.measureText(tick.label).width <= frame.width) {
      pen.fillStyle = css(ink);
      pen.fillText(tick.label, x + 4 * ratio, top + 3 * ratio);
    }
  }
}

function drawOver(pen: Pen, { frame, selection, mark, ratio, theme }: CurvesPicture, height: number): void {
  const { accent, ink } = SURFACES[theme];
  const wide = Math.max(1, Math.round(ratio));
  if (selection !== null) {
    const [from, to] = [selection.begin, endOf(selection)].map((time) => Math.round(pixelOf(frame.view, time, frame.width))) as [number, number];
    pen.fillStyle = css(accent);
    pen.globalAlpha = 0.15;
    pen.fillRect(from, 0, to - from, height);
    pen.globalAlpha = 1;
    pen.fillRect(from, 0, wide, height);
    pen.fillRect(to - wide, 0, wide, height);
  }
  if (mark !== null) {
    pen.fillStyle = css(ink);
    pen.fillRect(Math.floor(pixelOf(frame.view, mark, frame.width)), 0, wide, height);
  }
}
