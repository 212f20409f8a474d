// Draws arrows between rows. All arrows of the same look are one path, because the cost is in paths, not in lines.

import type { ArrowLayout, ArrowLine, Bundle } from "../model/arrows.ts";
import { SURFACES, css, type Theme } from "../model/palette.ts";
import type { Pen } from "./pen.ts";

/** Length of a head, and half of its width, in CSS pixels. */
const HEAD = 7;
const HEAD_HALF = 3.5;
/** As many arrows have a light line below them. */
const LIGHTED_MAX = 64;
/** As many bundles are drawn as strong as single arrows. */
const STRONG_MAX = 32;
/** Bundles are as wide, in CSS pixels: each is for four times as many as the one before. */
const WIDTHS = [1, 1.5, 2.5, 3.5, 5];

export interface ArrowPicture {
  readonly layout: ArrowLayout;
  /** The one that is picked. */
  readonly picked: ArrowLine | null;
  readonly ratio: number;
  readonly theme: Theme;
}

export function drawArrows(pen: Pen, { layout, picked, ratio, theme }: ArrowPicture): void {
  const { ink, background, accent } = SURFACES[theme];
  for (const [step, width] of WIDTHS.entries()) {
    const bundles = layout.bundles.filter((bundle) => stepOf(bundle) === step);
    if (bundles.length > 0) {
      // Few are as strong as single ones; many let the bars be seen below them.
      pen.globalAlpha = layout.bundles.length <= STRONG_MAX ? 0.85 : 0.35 + 0.08 * step;
      stroke(pen, bundles, css(ink), width * ratio, ratio);
    }
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

/** Which of the widths a bundle has. */
function stepOf({ count }: Bundle): number {
  return Math.min(WIDTHS.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 2));
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
