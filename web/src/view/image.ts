// The timeline as an image: names, ruler and rows as they are on the screen, as PNG or as SVG, which can be made larger.

import { drawFlags } from "../draw/flags.ts";
import { drawLabels, drawTitle } from "../draw/labels.ts";
import { drawRuler } from "../draw/ruler.ts";
import { StripSheet } from "../draw/strip.ts";
import { SvgPen, svgDocument, svgTools } from "../draw/svg.ts";
import { drawTimeline, type Picture } from "../draw/timeline.ts";
import type { Pen } from "../draw/pen.ts";
import { marksOf } from "../model/notes.ts";
import { SURFACES, css } from "../model/palette.ts";
import type { Row } from "../model/rows.ts";
import { saveFile, traceName } from "./leaving.ts";
import { notesShown } from "./notes/desk.ts";
import type { Page } from "./page.ts";

export type ImageForm = "png" | "svg";

/** Where the parts of an image lie, in device pixels. */
interface Sheet {
  readonly picture: Picture;
  readonly pinned: Picture | null;
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Has the browser save the picture of the timeline; nothing, if there is none yet. */
export async function saveImage(page: Page, form: ImageForm): Promise<void> {
  const sheet = sheetOf(page);
  const blob = sheet === null ? null : form === "svg" ? svgOf(page, sheet) : await pngOf(page, sheet);
  if (blob !== null) {
    saveFile(blob, `${traceName(page)}-timeline.${form}`);
  }
}

function sheetOf({ picture, pinned }: Page): Sheet | null {
  const [corner, ruler] = [document.querySelector(".corner"), document.querySelector(".ruler")];
  if (picture === null || corner === null || ruler === null) {
    return null;
  }
  const [left, top] = [Math.round(corner.clientWidth * picture.ratio), Math.round(ruler.clientHeight * picture.ratio)];
  return { picture, pinned, left, top, width: left + picture.frame.width, height: top + picture.height };
}

/** Draws the margin beside the rows: `at` gives the pen for a part of the sheet. */
function drawMargin(page: Page, { picture, pinned, left, top }: Sheet, at: (x: number, y: number, width: number, height: number, draw: (pen: Pen) => void) => void): void {
  const { ratio, height, scroll, looks, ticks, frame } = picture;
  const { theme } = looks;
  const title = page.store.state.traces.map((trace) => trace.name).join(" + ");
  const rowsIn = ({ rows }: Picture): readonly Row[] => rows.map(({ row }) => row);
  at(0, 0, left, top, (pen) => drawTitle(pen, title, { width: left, height: top, ratio, theme }));
  const marks = marksOf(notesShown(page), frame.view, frame.width / ratio);
  at(left, 0, frame.width, top, (pen) => {
    drawRuler(pen, { ticks, width: frame.width, height: top, ratio, theme });
    drawFlags(pen, { ...marks, height: top, ratio, theme });
  });
  at(0, top, left, height, (pen) => drawLabels(pen, { rows: rowsIn(picture), scroll, width: left, height, ratio, theme }));
  if (pinned !== null) {
    at(0, top, left, pinned.height, (pen) => drawLabels(pen, { rows: rowsIn(pinned), scroll: 0, width: left, height: pinned.height, ratio, theme }));
  }
}

function pngOf(page: Page, sheet: Sheet): Promise<Blob | null> {
  const canvas = document.createElement("canvas");
  canvas.width = sheet.width;
  canvas.height = sheet.height;
  const pen = canvas.getContext("2d");
  const rows = document.querySelector<HTMLCanvasElement>(".area canvas");
  if (pen === null || rows === null) {
    return Promise.resolve(null);
  }
  pen.drawImage(rows, sheet.left, sheet.top);
  drawMargin(page, sheet, (x, y, width, height, draw) => {
    pen.save();
    pen.translate(x, y);
    pen.beginPath();
    pen.rect(0, 0, width, height);
    pen.clip();
    draw(pen);
    pen.restore();
  });
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function svgOf(page: Page, sheet: Sheet): Blob {
  const { picture, pinned, left, top, width, height } = sheet;
  const measuring = document.createElement("canvas").getContext("2d");
  const measure = (text: string, font: string): number => {
    if (measuring === null) {
      return 7 * text.length;
    }
    measuring.font = font;
    return measuring.measureText(text).width;
  };
  const parts: string[] = [];
  for (const one of pinned === null ? [picture] : [picture, pinned]) {
    const [pen, strips] = [new SvgPen(measure), new StripSheet()];
    drawTimeline(pen, svgTools(pen, strips), strips, one);
    parts.push(pen.drawn({ x: left, y: top, width: one.frame.width, height: one.height }));
  }
  drawMargin(page, sheet, (x, y, wide, high, draw) => {
    const own = new SvgPen(measure);
    draw(own);
    parts.push(own.drawn({ x, y, width: wide, height: high }));
  });
  const text = svgDocument(width, height, picture.ratio, css(SURFACES[picture.looks.theme].faint), parts);
  return new Blob([text], { type: "image/svg+xml" });
}
