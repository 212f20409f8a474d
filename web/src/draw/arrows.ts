// Draws arrows between rows. All arrows of the same look are one path, because the cost is in paths, not in lines.

import type { ArrowLayout, ArrowLine, Bundle } from "../model/arrows.ts";
import { SURFACES, css, type Theme } from "../model/palette.ts";
import type { Pen } from "./pen.ts";

/** Length of a head, and half of its width, in CSS pixels. */
const HEAD = 7;
const HEAD_HALF = 3.5;
/** As many arrows have a light line below them. */
const LIGHTED_MAX = 64;
/** How strong a bundle of one arrow in a CSS pixel is, how much stronger twice as many are, and the strongest. */
const FAINT = 0.05;
const DOUBLED = 0.05;
const FAINT_MAX = 0.3;
/** The end where arrows of a bundle arrive is stronger, and so high, in CSS pixels. */
const ARRIVAL = 0.2;
const ARRIVAL_PX = 2;

export interface ArrowPicture {
  readonly layout: ArrowLayout;
  /** The one that is picked. */
  readonly picked: ArrowLine | null;
  readonly ratio: number;
  readonly theme: Theme;
}

export function drawArrows(pen: Pen, { layout, picked, ratio, theme }: ArrowPicture): void {
  const { ink, background, accent } = SURFACES[theme];
  // Where in a bundle its arrows are is not told: it is a faint band, and no line that would say so.
  pen.fillStyle = css(ink);
  for (const bundle of layout.bundles) {
    drawBundle(pen, bundle, ratio);
  }
  pen.globalAlpha = 1;
  if (layout.exact.length > 0) {
    // A light line below them, so that they are seen on bars of any color; among many it would hide those bars.
    if (layout.exact.length <= LIGHTED_MAX) {
      pen.globalAlpha = 0.7;
      stroke(pen, layout.exact, css(background), 3 * ratio, ratio);
    }
    pen.globalAlpha = 0.9;
    stroke(pen, layout.exact, css(ink), ratio, ratio);
    pen.globalAlpha = 1;
  }
  if (picked !== null) {
    stroke(pen, [picked], css(background), 6 * ratio, ratio);
    stroke(pen, [picked], css(accent), 2.5 * ratio, ratio);
  }
}

function drawBundle(pen: Pen, { left, right, y0, y1, count }: Bundle, ratio: number): void {
  const from = Math.floor(left);
  const width = Math.max(Math.ceil(right) - from, Math.ceil(ratio));
  const strength = Math.min(FAINT_MAX, FAINT + DOUBLED * Math.log2(1 + (count * ratio) / width));
  // Styles that are few are few paths in a file.
  pen.globalAlpha = Math.round(strength * 50) / 50;
  pen.fillRect(from, Math.min(y0, y1), width, Math.max(Math.abs(y1 - y0), ratio));
  pen.globalAlpha = ARRIVAL;
  pen.fillRect(from, y1 > y0 ? y1 - ARRIVAL_PX * ratio : y1, width, ARRIVAL_PX * ratio);
}

function stroke(pen: Pen, lines: readonly ArrowLine[], colour: string, width: number, ratio: number): void {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  for (const line of lines) {
    trace(pen, line, ratio);
  }
  pen.stroke();
}

function trace(pen: Pen, { x0, y0, x1, y1 }: ArrowLine, ratio: number): void {
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 1) {
    return;
  }
  const head = Math.min(HEAD * ratio, length) / length;
  const half = (HEAD_HALF * ratio) / length;
  const [bx, by] = [x1 - head * (x1 - x0), y1 - head * (y1 - y0)];
  const [sx, sy] = [half * (y1 - y0), -half * (x1 - x0)];
  pen.moveTo(bx + sx, by + sy);
  pen.lineTo(x1, y1);
  pen.lineTo(bx - sx, by - sy);
}
