// The strip that shows all of the traces: how many events there are where, how well each part is known, and the window as a frame.

import type { Density } from "../model/density.ts";
import { lossMarks } from "../model/findings.ts";
import { MISSING, SURFACES, css, mix, packed, type Theme } from "../model/palette.ts";
import { endOf, pixelOf, type Extent, type Viewport } from "../model/viewport.ts";
import type { Frame } from "../model/geometry.ts";
import type { Nanos } from "../units/time.ts";
import type { Quality } from "../model/tile.ts";
import type { Pen, Tools } from "./pen.ts";
import type { StripSheet } from "./strip.ts";

/** All that the strip shows. */
export interface OverviewPicture {
  /** Its window is all of the traces. */
  readonly frame: Frame;
  readonly height: number;
  readonly ratio: number;
  readonly theme: Theme;
  readonly density: Density;
  /** When events were lost. */
  readonly losses: readonly Extent[];
  /** The window of the timeline. */
  readonly view: Viewport;
  readonly selection: Viewport | null;
  /** When the list of events is. */
  readonly mark: Nanos | null;
  /** More events come behind the last one. */
  readonly isGrowing: boolean;
}

export function drawOverview(pen: Pen, tools: Tools, sheet: StripSheet, picture: OverviewPicture): void {
  const { frame, height, theme } = picture;
  const surface = SURFACES[theme];
  pen.fillStyle = css(surface.lane);
  pen.fillRect(0, 0, frame.width, height);
  drawDensity(tools, sheet, picture);
  drawQuality(pen, tools, picture);
  drawLosses(pen, picture);
  drawWindow(pen, picture);
}

/** Bars with the logarithm of the number of events as their height: a single one can be seen beside millions. */
function drawDensity(tools: Tools, sheet: StripSheet, { frame, height, theme, density }: OverviewPicture): void {
  const { accent, lane } = SURFACES[theme];
  const most = density.count.reduce((high, count) => Math.max(high, count), 0);
  if (most === 0) {
    return;
  }
  const colours: Readonly<Record<Quality, number>> = {
    exact: packed(mix(lane, accent, 0.8)),
    building: packed(mix(lane, accent, 0.6)),
    estimated: packed(mix(lane, accent, 0.35)),
    unknown: packed(mix(lane, accent, 0.35)),
  };
  const scale = (height - 2) / Math.log1p(most);
  sheet.begin(frame.width, height);
  const { strip, top } = sheet.next(height);
  for (let x = 0; x < frame.width; x++) {
    const count = density.count[x] ?? 0;
    if (count > 0) {
      strip.fill(x, x + 1, height - Math.max(1, Math.round(Math.log1p(count) * scale)), height, colours[density.quality[x] ?? "unknown"]);
    }
  }
  tools.seal();
  tools.blit(top, height, { x: 0, y: 0, width: frame.width, height });
}

function drawQuality(pen: Pen, tools: Tools, { frame, height, density, isGrowing }: OverviewPicture): void {
  let begin = 0;
  for (let x = 1; x <= frame.width; x++) {
    const quality = density.quality[begin];
    if (x < frame.width && density.quality[x] === quality) {
      continue;
    }
    const isToCome = isGrowing && quality === "unknown" && x === frame.width;
    if (!isToCome && (quality === "building" || quality === "estimated" || quality === "unknown")) {
      pen.fillStyle = quality === "unknown" ? tools.hatch.unknown : tools.hatch.building;
      pen.fillRect(begin, 0, x - begin, height);
    }
    begin = x;
  }
}

/** Marks along the top, where a bar hardly reaches. */
function drawLosses(pen: Pen, { frame, theme, losses, ratio }: OverviewPicture): void {
  pen.fillStyle = css(MISSING[theme]);
  for (const [from, to] of lossMarks(losses, (time) => pixelOf(frame.view, time, frame.width), frame.width, Math.max(1, Math.round(ratio)))) {
    pen.fillRect(from, 0, to - from, Math.round(4 * ratio));
  }
}

function drawWindow(pen: Pen, { frame, height, theme, view, selection, mark, ratio }: OverviewPicture): void {
  const { background, ink, accent } = SURFACES[theme];
  const wide = Math.max(1, Math.round(ratio));
  const at = (shown: Viewport): [number, number] => {
    const from = Math.round(pixelOf(frame.view, shown.begin, frame.width));
    // However short the window is, it can be seen.
    return [from, Math.max(from + 2 * wide, Math.round(pixelOf(frame.view, endOf(shown), frame.width)))];
  };
  if (selection !== null) {
    const [from, to] = at(selection);
    pen.fillStyle = css(accent);
    pen.globalAlpha = 0.3;
    pen.fillRect(from, 0, to - from, height);
    pen.globalAlpha = 1;
  }
  const [from, to] = at(view);
  pen.fillStyle = css(background);
  pen.globalAlpha = 0.6;
  pen.fillRect(0, 0, from, height);
  pen.fillRect(to, 0, frame.width - to, height);
  pen.globalAlpha = 1;
  pen.fillStyle = css(ink);
  // The strip's own border is frame enough: the first and the last event are there.
  if (from > 0) {
    pen.fillRect(from, 0, wide, height);
  }
  if (to < frame.width) {
    pen.fillRect(to - wide, 0, wide, height);
  }
  pen.fillRect(from, 0, to - from, wide);
  pen.fillRect(from, height - wide, to - from, wide);
  if (mark !== null) {
    pen.fillRect(Math.floor(pixelOf(frame.view, mark, frame.width)), 0, wide, height);
  }
}
