// The flags of notes on the ruler as a picture: the page has elements for them, an image has this drawing.

import { colourOf, countOf, type Band, type Flag } from "../model/notes.ts";
import { SURFACES, css, type Theme } from "../model/palette.ts";
import type { Pen } from "./pen.ts";

export interface FlagPicture {
  /** Places are CSS pixels, as on the page. */
  readonly flags: readonly Flag[];
  readonly bands: readonly Band[];
  readonly height: number;
  readonly ratio: number;
  readonly theme: Theme;
}

/** As notes.css has them, in CSS pixels. */
const SIZE = 13;
const POLE = 2;
const BAND = 5;
/** How far a flag is cut into, a pixel a step. */
const CUT = 3;

export function drawFlags(pen: Pen, { flags, bands, height, ratio, theme }: FlagPicture): void {
  pen.globalAlpha = 0.55;
  for (const { from, to, colours } of bands) {
    pen.fillStyle = css(colourOf(colours, theme));
    pen.fillRect(from * ratio, height - BAND * ratio, (to - from) * ratio, BAND * ratio);
  }
  pen.globalAlpha = 1;
  pen.font = `600 ${Math.round(10 * ratio)}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (const flag of flags) {
    const [x, top] = [flag.x * ratio, height - SIZE * ratio];
    pen.fillStyle = css(colourOf(flag.notes.map((note) => note.colour), theme));
    pen.fillRect(x, top, POLE * ratio, SIZE * ratio);
    // Rows of which those in the middle are shorter: a swallowtail without a path, which a pen would have to fill.
    for (let row = 0; row < SIZE; row++) {
      const cut = CUT * (1 - Math.abs(row - SIZE / 2 + 0.5) / (SIZE / 2));
      pen.fillRect(x, top + row * ratio, (SIZE - cut) * ratio, ratio);
    }
    pen.fillStyle = css(SURFACES[theme].background);
    pen.fillText(countOf(flag), x + 3 * ratio, top + (SIZE / 2) * ratio);
  }
}
