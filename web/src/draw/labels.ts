// The names of rows as a picture: the page has elements for them, an image has this drawing.

import { SURFACES, css, type Theme } from "../model/palette.ts";
import { plain } from "../model/plain.ts";
import { labelOf, type Row } from "../model/rows.ts";
import { fitted, type Pen } from "./pen.ts";

export interface LabelPicture {
  readonly rows: readonly Row[];
  /** CSS pixels that are scrolled away at the top. */
  readonly scroll: number;
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  readonly theme: Theme;
}

const SIZE = 12;
const FAMILY = "system-ui, sans-serif";

export function drawLabels(pen: Pen, { rows, scroll, width, height, ratio, theme }: LabelPicture): void {
  const { background, ink, faint, line } = SURFACES[theme];
  pen.fillStyle = css(background);
  pen.fillRect(0, 0, width, height);
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (const row of rows) {
    const { track } = row;
    const isNested = track !== null && track.parent !== null;
    const indent = (track === null ? 8 : isNested ? 31 : 20) * ratio;
    const text = track === null ? `${row.folded ? "▸" : "▾"} ${plain(row.group)} ${row.count}` : labelOf(track);
    pen.font = `${track === null ? "600 " : ""}${Math.round(SIZE * ratio)}px ${FAMILY}`;
    pen.fillStyle = css(isNested || row.dimmed ? faint : ink);
    pen.fillText(fitted(pen, text, width - indent - 4 * ratio), indent, (row.top - scroll + row.height / 2) * ratio);
  }
  pen.fillStyle = css(line);
  pen.fillRect(width - ratio, 0, ratio, height);
}

/** The title above the names: which traces these are. */
export function drawTitle(pen: Pen, title: string, { width, height, ratio, theme }: Omit<LabelPicture, "rows" | "scroll">): void {
  const { background, ink, line } = SURFACES[theme];
  pen.fillStyle = css(background);
  pen.fillRect(0, 0, width, height);
  pen.font = `600 ${Math.round(SIZE * ratio)}px ${FAMILY}`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.fillStyle = css(ink);
  pen.fillText(fitted(pen, plain(title), width - 12 * ratio), 8 * ratio, height / 2);
  pen.fillStyle = css(line);
  pen.fillRect(0, height - ratio, width, ratio);
  pen.fillRect(width - ratio, 0, ratio, height);
}
