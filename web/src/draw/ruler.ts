// The ruler above the timeline.

import { SURFACES, css, type Theme } from "../model/palette.ts";
import type { Tick } from "../model/ruler.ts";
import type { Pen } from "./pen.ts";

export interface RulerPicture {
  readonly ticks: readonly Tick[];
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  readonly theme: Theme;
}

export function drawRuler(pen: Pen, { ticks, width, height, ratio, theme }: RulerPicture): void {
  const { background, faint, line, ink } = SURFACES[theme];
  pen.fillStyle = css(background);
  pen.fillRect(0, 0, width, height);
  pen.font = `${Math.round(11 * ratio)}px system-ui, sans-serif`;
  pen.textBaseline = "top";
  pen.textAlign = "left";
  const wide = Math.max(1, Math.round(ratio / 2));
  for (const tick of ticks) {
    const isNamed = tick.label !== "";
    const x = Math.round(tick.x);
    const high = Math.round((isNamed ? 10 : 4) * ratio);
    pen.fillStyle = css(isNamed ? faint : line);
    pen.fillRect(x, height - high, wide, high);
    // A name that would be cut at the edge stands at the next mark.
    if (isNamed && x + 4 * ratio + pen.measureText(tick.label).width <= width) {
      pen.fillStyle = css(ink);
      pen.fillText(tick.label, x + 4 * ratio, 2 * ratio);
    }
  }
}
