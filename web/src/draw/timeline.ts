// The rows of the timeline, from values to pixels.
//
//     lanes      a background for each track
//     strips     the content of tracks, painted pixel by pixel and put on the lanes
//     over them  names on bars that have room, lines of counters, hatching where something is not known
//     on top     arrows between rows, the picked item, the selection

import type { ArrowLayout, ArrowLine } from "../model/arrows.ts";
import type { Piece } from "../model/cache.ts";
import { lossMarks } from "../model/findings.ts";
import { placeOf, type Frame } from "../model/geometry.ts";
import { MISSING, SURFACES, css, mix, packed } from "../model/palette.ts";
import type { Row } from "../model/rows.ts";
import type { Tick } from "../model/ruler.ts";
import { shortQuantity } from "../model/quantity.ts";
import type { Heat, Span } from "../model/tile.ts";
import { pixelOf, endOf, type Extent, type Viewport } from "../model/viewport.ts";
import { TILE_BUCKETS } from "../units/tiles.ts";
import type { Nanos } from "../units/time.ts";
import { drawArrows } from "./arrows.ts";
import { counterParts, drawEnvelope, drawLine, rangeOf, readParts, widened, type Scale } from "./counter.ts";
import type { Looks } from "./looks.ts";
import { CountPainter, HeatPainter, binsOf, paintArrows, paintInstants, type Bins } from "./paint.ts";
import { fitted, type Box, type Pen, type Tools } from "./pen.ts";
import { StatePainter, type Bar } from "./states.ts";
import { STRIP_ROWS, type StripSheet } from "./strip.ts";

/** A row and its content to draw. */
export interface RowContent {
  readonly row: Row;
  readonly pieces: readonly Piece[];
}

/** All that the timeline shows at one time. */
export interface Picture {
  readonly frame: Frame;
  readonly rows: readonly RowContent[];
  /** CSS pixels that are scrolled away at the top. */
  readonly scroll: number;
  readonly height: number;
  /** Device pixels of a CSS pixel. */
  readonly ratio: number;
  readonly looks: Looks;
  readonly ticks: readonly Tick[];
  readonly selection: Viewport | null;
  /** Which rows are selected, in CSS pixels below the first one; `null`: all. */
  readonly selectedRows: { readonly top: number; readonly bottom: number } | null;
  /** The picked item: on which track, from when to when. */
  readonly picked: { readonly track: string; readonly extent: Extent } | null;
  /** When the list of events is. */
  readonly mark: Nanos | null;
  /** More events come behind the last one. */
  readonly isGrowing: boolean;
  /** When events were lost. */
  readonly losses: readonly Extent[];
  readonly arrows: ArrowLayout;
  /** The arrow that is picked. */
  readonly pickedArrow: ArrowLine | null;
}

/** Rows of the strip of a heat map. */
const HEAT_ROWS = 40;
/** Bars that are narrower are not even tried to be joined to one that has a name. */
const BAR_MIN_PX = 8;
/** How much of a row that is not meant is covered. */
const DIMMED_ALPHA = 0.75;
/** How high the numbers at a counter's scale are. */
const SCALE_CSS_PX = 10;
/** A name needs as many CSS pixels. */
const NAME_MIN_CSS_PX = 28;

/** Draws a picture. */
export function drawTimeline(pen: Pen, tools: Tools, sheet: StripSheet, picture: Picture): void {
  const { frame, looks } = picture;
  const surface = SURFACES[looks.theme];
  const tracks = picture.rows.filter((content) => content.row.track !== null);
  sheet.begin(frame.width, tracks.reduce((sum, content) => sum + stripRows(content), 0));
  const painted = tracks.map((content) => ({ content, box: boxOf(picture, content.row), ...paintRow(sheet, picture, content) }));
  tools.seal();
  pen.fillStyle = css(surface.background);
  pen.fillRect(0, 0, frame.width, picture.height);
  pen.fillStyle = css(surface.lane);
  for (const { box } of painted) {
    pen.fillRect(box.x, box.y, box.width, box.height);
  }
  drawGrid(pen, picture);
  for (const { content, box, top, rows } of painted) {
    tools.blit(top, rows, box);
    drawCounters(pen, picture, content, box);
  }
  for (const { content, box } of painted) {
    drawDoubt(pen, tools, picture, content, box);
  }
  for (const { box, bars } of painted) {
    drawNames(pen, picture, bars, box);
  }
  drawDimmed(pen, picture, painted);
  drawArrows(pen, { layout: picture.arrows, picked: picture.pickedArrow, ratio: picture.ratio, theme: looks.theme });
  for (const { content, box } of painted) {
    if (picture.picked !== null && content.row.track?.id === picture.picked.track) {
      drawPicked(pen, picture, picture.picked.extent, box);
    }
  }
  drawOver(pen, picture);
}

function stripRows({ row }: RowContent): number {
  return row.track?.kind === "heat" ? HEAT_ROWS : STRIP_ROWS;
}

/** Where a row lies on the canvas, without the line below it. */
function boxOf(picture: Picture, row: Row): Box {
  const y = Math.round((row.top - picture.scroll) * picture.ratio);
  const bottom = Math.round((row.top + row.height - picture.scroll) * picture.ratio);
  const gap = Math.max(1, Math.round(picture.ratio * 2));
  return { x: 0, y, width: picture.frame.width, height: bottom - y - gap };
}

function paintRow(sheet: StripSheet, picture: Picture, content: RowContent): { top: number; rows: number; bars: Bar[] } {
  const { strip, top } = sheet.next(stripRows(content));
  const { looks, ratio } = picture;
  const surface = SURFACES[looks.theme];
  const mark = packed(mix(surface.lane, surface.ink, 0.5));
  const accent = packed(surface.accent);
  const states = new StatePainter(strip, looks, { mark, barMin: BAR_MIN_PX, isLoad: isLoad(content) });
  const counts = new CountPainter(strip);
  const heat = content.row.track?.kind === "heat" ? new HeatPainter(strip, heatOf(content), heatShades(looks)) : null;
  for (const { tile, begin, end } of content.pieces) {
    const place = placeOf(picture.frame, tile.level, tile.index, begin, end);
    const { items } = tile;
    switch (items.form) {
      case "states":
        readParts(place, tile.spans).forEach((read) => states.states(read, items, tile.carry));
        break;
      case "runs":
        states.runs(place, items);
        break;
      case "counts":
        counts.counts(place, items, looks, (bucket) => isEstimated(tile.spans, bucket));
        break;
      case "instants":
        paintInstants(strip, place, items, looks, Math.max(1, Math.round(1.5 * ratio)));
        break;
      case "heat":
        heat?.heat(place, items);
        break;
      case "arrow counts":
        counts.arrows(place, items, accent);
        break;
      case "arrows":
        paintArrows(strip, place, items, accent);
        break;
      case "counter":
        break;
    }
  }
  counts.finish();
  heat?.finish();
  return { top, rows: strip.rows, bars: states.finish() };
}

/** Whether the row tells how busy a CPU is. */
function isLoad({ row: { track } }: RowContent): boolean {
  return track !== null && track.cpu !== null && track.parent === null && track.kind === "states" && track.tid === null;
}

function isEstimated(spans: readonly Span[], bucket: number): boolean {
  return spans.some((span) => span.quality === "estimated" && span.begin <= bucket && bucket < span.end);
}

function heatOf(content: RowContent): Bins {
  return binsOf(content.pieces.map((piece) => piece.tile.items).filter((items): items is Heat => items.form === "heat"));
}

/** From hardly visible to strong, each for twice as often. */
function heatShades(looks: Looks): number[] {
  const { lane, accent } = SURFACES[looks.theme];
  return Array.from({ length: 10 }, (_, step) => packed(mix(lane, accent, 0.25 + (0.75 * step) / 9)));
}

function drawGrid(pen: Pen, picture: Picture): void {
  pen.fillStyle = css(SURFACES[picture.looks.theme].line);
  const wide = Math.max(1, Math.round(picture.ratio / 2));
  for (const tick of picture.ticks) {
    if (tick.label !== "") {
      pen.fillRect(Math.round(tick.x), 0, wide, picture.height);
    }
  }
}

function drawCounters(pen: Pen, picture: Picture, content: RowContent, box: Box): void {
  const parts = counterParts(picture.frame, content.pieces);
  if (parts.length === 0) {
    return;
  }
  const range = rangeOf(parts);
  const scale = widened(range);
  const { accent, lane } = SURFACES[picture.looks.theme];
  const y = (value: number): number => box.y + box.height - 1 - ((value - scale.low) / (scale.high - scale.low)) * (box.height - 2);
  pen.fillStyle = css(mix(lane, accent, 0.4));
  parts.forEach((part) => drawEnvelope(pen, part, y));
  pen.strokeStyle = css(accent);
  pen.lineWidth = Math.max(1, picture.ratio);
  drawLine(pen, parts, y);
  if (range !== null) {
    drawScale(pen, picture, range, content.row.track?.unit ?? null, box);
  }
}

/** The values that the top and the bottom of a counter's row stand for, at its right end, where lines are newest and least in the way. */
function drawScale(pen: Pen, { looks, ratio }: Picture, range: Scale, unit: string | null, box: Box): void {
  const size = SCALE_CSS_PX * ratio;
  const { lane, faint } = SURFACES[looks.theme];
  const write = (value: number, y: number): void => {
    const text = shortQuantity(value, unit);
    const wide = pen.measureText(text).width + 4 * ratio;
    pen.fillStyle = css(lane);
    pen.globalAlpha = 0.75;
    pen.fillRect(box.x + box.width - wide, y, wide, size + 2 * ratio);
    pen.globalAlpha = 1;
    pen.fillStyle = css(faint);
    pen.fillText(text, box.x + box.width - wide + 2 * ratio, y + ratio);
  };
  pen.font = `${Math.round(size)}px system-ui, sans-serif`;
  pen.textBaseline = "top";
  pen.textAlign = "left";
  if (range.low === range.high) {
    write(range.high, Math.round(box.y + box.height / 2 - size - 3 * ratio));
    return;
  }
  write(range.high, box.y);
  // Where both do not fit, the most is the one that people look for.
  if (box.height >= 2 * size + 6 * ratio) {
    write(range.low, Math.round(box.y + box.height - size - 2 * ratio));
  }
}

/** Hatching where not everything is read yet, or nothing is known. Where traces grow, a lane ends where they do. */
function drawDoubt(pen: Pen, tools: Tools, picture: Picture, content: RowContent, box: Box): void {
  const { background, line } = SURFACES[picture.looks.theme];
  let known = 0;
  for (const { tile, begin, end } of content.pieces) {
    const place = placeOf(picture.frame, tile.level, tile.index, begin, end);
    known = Math.max(known, place.to);
    for (const [index, span] of tile.spans.entries()) {
      if (span.quality === "exact" || (picture.isGrowing && isAtEnd(span, tile.spans[index + 1]))) {
        continue;
      }
      const from = Math.max(place.from, Math.round(place.left + span.begin * place.step));
      const to = Math.min(place.to, Math.round(place.left + span.end * place.step));
      if (from >= to) {
        continue;
      }
      const isToCome = picture.isGrowing && isBehindAll(span);
      pen.fillStyle = isToCome ? css(background) : span.quality === "unknown" ? tools.hatch.unknown : tools.hatch.building;
      pen.fillRect(from, box.y, to - from, box.height);
      if (isToCome && span.begin > 0) {
        pen.fillStyle = css(line);
        pen.fillRect(from, box.y, Math.max(1, Math.round(picture.ratio)), box.height);
      }
    }
  }
  if (picture.isGrowing && known < box.width) {
    pen.fillStyle = css(background);
    pen.fillRect(known, box.y, box.width - known, box.height);
  }
}

/** Whether there is no trace from some bucket on, to the end of the tile. */
function isBehindAll({ quality, end }: Span): boolean {
  return quality === "unknown" && end >= TILE_BUCKETS;
}

/** Whether it is the last bucket of traces that grow: its known part is drawn, and is less than all for a moment only. */
function isAtEnd({ quality, begin, end }: Span, next: Span | undefined): boolean {
  return quality === "building" && end === begin + 1 && (next === undefined ? end >= TILE_BUCKETS : isBehindAll(next));
}

function drawNames(pen: Pen, picture: Picture, bars: readonly Bar[], box: Box): void {
  const { ratio, looks } = picture;
  const size = Math.min(12 * ratio, box.height * 0.72);
  const wanted = `${Math.round(size)}px system-ui, sans-serif`;
  pen.font = wanted;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (const bar of joined(bars)) {
    const look = looks.of(bar.value);
    // A name stands on its bar; on a bar that is low it would stand beside it.
    if (bar.to - bar.from < NAME_MIN_CSS_PX * ratio || look.rows < STRIP_ROWS * 0.6) {
      continue;
    }
    const text = fitted(pen, look.label, bar.to - bar.from - 8 * ratio);
    if (text !== "") {
      pen.fillStyle = look.ink;
      const middle = box.height * (1 - look.rows / STRIP_ROWS / 2);
      pen.fillText(text, bar.from + 4 * ratio, Math.round(box.y + middle + ratio / 2));
    }
  }
}

/** Content that the filter does not mean is nearer to the lane that it lies in. */
function drawDimmed(pen: Pen, picture: Picture, painted: readonly { readonly content: RowContent; readonly box: Box }[]): void {
  pen.fillStyle = css(SURFACES[picture.looks.theme].lane);
  pen.globalAlpha = DIMMED_ALPHA;
  for (const { content, box } of painted) {
    if (content.row.dimmed) {
      pen.fillRect(box.x, box.y, box.width, box.height);
    }
  }
  pen.globalAlpha = 1;
}

/** Bars that were cut where tiles end, as one. */
export function joined(bars: readonly Bar[]): Bar[] {
  const found: Bar[] = [];
  for (const bar of bars) {
    const before = found.at(-1);
    if (before !== undefined && before.value === bar.value && before.to === bar.from) {
      found[found.length - 1] = { ...before, to: bar.to };
    } else {
      found.push(bar);
    }
  }
  return found;
}

/** A frame around the picked item, with a lighter one around it, so that it is seen on bars of any color. */
function drawPicked(pen: Pen, { frame, looks, ratio }: Picture, extent: Extent, box: Box): void {
  const wide = Math.max(1, Math.round(1.5 * ratio));
  const left = Math.floor(pixelOf(frame.view, extent.begin, frame.width));
  const right = Math.max(Math.ceil(pixelOf(frame.view, extent.end, frame.width)), left + 1);
  // A frame that goes far outside of the screen ends right behind it.
  const [from, to] = [Math.max(left - wide, -4 * wide), Math.min(right + wide, frame.width + 4 * wide)];
  if (to < 0 || from > frame.width) {
    return;
  }
  const { background, ink } = SURFACES[looks.theme];
  for (const [colour, out] of [[background, wide], [ink, 0]] as const) {
    pen.fillStyle = css(colour);
    const outer = { x: from - out, y: box.y - out, width: to - from + 2 * out, height: box.height + 2 * out };
    pen.fillRect(outer.x, outer.y, outer.width, wide);
    pen.fillRect(outer.x, outer.y + outer.height - wide, outer.width, wide);
    pen.fillRect(outer.x, outer.y, wide, outer.height);
    pen.fillRect(outer.x + outer.width - wide, outer.y, wide, outer.height);
  }
}

/** Where events were lost, the rows are in doubt: a band across all of them, stronger at its top. */
function drawLosses(pen: Pen, { frame, losses, ratio, looks, height }: Picture): void {
  const wide = Math.max(1, Math.round(ratio));
  pen.fillStyle = css(MISSING[looks.theme]);
  for (const [from, to] of lossMarks(losses, (time) => pixelOf(frame.view, time, frame.width), frame.width, wide)) {
    pen.globalAlpha = 0.14;
    pen.fillRect(from, 0, to - from, height);
    pen.globalAlpha = 1;
    pen.fillRect(from, 0, to - from, 3 * wide);
  }
}

function drawOver(pen: Pen, picture: Picture): void {
  const { frame, selection, ratio } = picture;
  const { accent } = SURFACES[picture.looks.theme];
  const wide = Math.max(1, Math.round(ratio));
  drawLosses(pen, picture);
  if (selection !== null) {
    const from = Math.round(pixelOf(frame.view, selection.begin, frame.width));
    const to = Math.round(pixelOf(frame.view, endOf(selection), frame.width));
    pen.fillStyle = css(accent);
    pen.globalAlpha = 0.15;
    pen.fillRect(from, 0, to - from, picture.height);
    pen.globalAlpha = 1;
    pen.fillRect(from, 0, wide, picture.height);
    pen.fillRect(to - wide, 0, wide, picture.height);
    drawSelectedRows(pen, picture, from, to);
  }
  drawMark(pen, picture);
}

/** Rows that are selected have a frame in the band, which is darker there. */
function drawSelectedRows(pen: Pen, { selectedRows, scroll, ratio, looks }: Picture, from: number, to: number): void {
  if (selectedRows === null) {
    return;
  }
  const wide = Math.max(1, Math.round(ratio));
  const [top, bottom] = [selectedRows.top, selectedRows.bottom].map((y) => Math.round((y - scroll) * ratio)) as [number, number];
  pen.fillStyle = css(SURFACES[looks.theme].accent);
  pen.globalAlpha = 0.15;
  pen.fillRect(from, top, to - from, bottom - top);
  pen.globalAlpha = 1;
  pen.fillRect(from, top, to - from, 2 * wide);
  pen.fillRect(from, bottom - 2 * wide, to - from, 2 * wide);
}

/** A line that is wider at the top, so that it is found among edges of bars. */
function drawMark(pen: Pen, { frame, mark, ratio, looks, height }: Picture): void {
  if (mark === null) {
    return;
  }
  const x = Math.floor(pixelOf(frame.view, mark, frame.width));
  if (x < 0 || x >= frame.width) {
    return;
  }
  const wide = Math.max(1, Math.round(ratio));
  pen.fillStyle = css(SURFACES[looks.theme].ink);
  pen.fillRect(x, 0, wide, height);
  for (let row = 0; row < 4 * wide; row++) {
    pen.fillRect(x - (4 * wide - row), row, 2 * (4 * wide - row) + wide, 1);
  }
}
