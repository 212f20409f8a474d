// Where arrows between rows lie on the screen: wakeups from thread to thread, messages from sender to receiver.
//
//     CPU 0   ───●────────      few: each from when it leaves to when it has come
//                 ╲
//     make    ─────➘──────      many: a faint band for all that go from one row to another in some columns, from the first to the last of them
//
// Where one end is on no row of the screen, a stub says where it is: above, below, or, of single arrows, on a row that is not shown.
// A group that is folded stands for its tracks.

import { trackNumber, type TrackNumber } from "../units/tiles.ts";
import { nanos, type Nanos } from "../units/time.ts";
import type { Piece } from "./cache.ts";
import type { Track } from "./catalogue.ts";
import { placeOf, type Frame } from "./geometry.ts";
import type { Row } from "./rows.ts";
import { topOnScreen } from "./screen.ts";
import { END_UNKNOWN, NONE, RECEIVED_FIRST } from "./tile.ts";
import { pixelOf } from "./viewport.ts";
import { tileBegin } from "./wanted.ts";

/** As many are drawn one by one at most; more are bundled. */
export const EXACT_MAX = 128;
/** As many bundles at most: where there are more, columns are wider. */
export const BUNDLES_MAX = 2_000;
/** The narrowest column of a bundle, and the length of a stub, in CSS pixels. */
const COLUMN_CSS_PX = 2;
const STUB_CSS_PX = 14;

/** A line in device pixels, with a head at its end. */
export interface ArrowLine {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
}

/** One arrow. */
export interface Arrow extends ArrowLine {
  /** The track that it is on. */
  readonly track: string;
  /** When it leaves: so many nanoseconds after a time. */
  readonly base: Nanos;
  readonly since: number;
}

/** Several that go the same way: they leave between two places, and where between them is not told. */
export interface Bundle {
  readonly left: number;
  readonly right: number;
  /** From the row that they leave to the one where they arrive. */
  readonly y0: number;
  readonly y1: number;
  /** The track that they are on. */
  readonly track: string;
  readonly count: number;
  readonly from: TrackNumber | null;
  readonly to: TrackNumber | null;
}

export interface ArrowLayout {
  readonly exact: readonly Arrow[];
  readonly bundles: readonly Bundle[];
}

export const NO_ARROWS: ArrowLayout = { exact: [], bundles: [] };

/** The content of a track of arrows. */
export interface ArrowContent {
  readonly track: string;
  readonly pieces: readonly Piece[];
}

/** Which part of the rows is on the screen. */
export interface Screen {
  readonly rows: readonly Row[];
  /** All tracks, as tiles count them. */
  readonly tracks: readonly Track[];
  /** CSS pixels that are scrolled away at the top. */
  readonly scroll: number;
  /** How high the pinned rows are that stay on top. */
  readonly fixed: number;
  /** Device pixels, and how many of them a CSS pixel has. */
  readonly height: number;
  readonly ratio: number;
}

const tracksKnown = new WeakMap<readonly Track[], readonly Track[]>();

/** Those of all tracks that have arrows: one for each machine. Kept, because they are asked for in each picture. */
export function arrowTracks(tracks: readonly Track[]): readonly Track[] {
  let known = tracksKnown.get(tracks);
  if (known === undefined) {
    known = tracks.filter(({ kind }) => kind === "arrows");
    tracksKnown.set(tracks, known);
  }
  return known;
}

/** Whether arrows of a track, by its id, are messages: these are told of where they come, wakeups where they leave. */
export function areMessages(id: string): boolean {
  return id.startsWith("messages/");
}

/** When an arrow leaves. */
export function timeOfArrow({ base, since }: Arrow): Nanos {
  return nanos(base + BigInt(Math.round(since)));
}

/** All arrows of which an end is on the screen. */
export function arrowsOn(frame: Frame, screen: Screen, contents: readonly ArrowContent[]): ArrowLayout {
  const ends = new Ends(screen);
  const exact: Arrow[] = [];
  const many = new Bundles(ends, screen.ratio);
  for (const { track, pieces } of contents) {
    many.of(track);
    pieces.forEach((piece, index) => addPiece(frame, { track, piece, isFirst: index === 0, isLast: index === pieces.length - 1 }, ends, exact, many));
  }
  if (exact.length > EXACT_MAX) {
    return { exact: [], bundles: many.all(true) };
  }
  return { exact, bundles: many.all(false) };
}

interface Part {
  readonly track: string;
  readonly piece: Piece;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** Whether an arrow, so many nanoseconds after a piece's tile begins, belongs to that piece: one that reaches into several is in all of these. */
function isIn({ track, piece, isFirst, isLast }: Part, begin: number, end: number, bucketNs: number): boolean {
  const [from, to] = [piece.begin * bucketNs, piece.end * bucketNs];
  return areMessages(track) ? end >= from && (isLast || end < to) : begin < to && (isFirst || begin >= from);
}

function addPiece(frame: Frame, part: Part, ends: Ends, exact: Arrow[], many: Bundles): void {
  const { track, piece } = part;
  const { tile } = piece;
  const { items } = tile;
  const place = placeOf(frame, tile.level, tile.index, piece.begin, piece.end);
  if (items.form === "arrow counts") {
    for (let index = 0; index < items.bucket.length; index++) {
      const left = Math.max(place.low, place.left + (items.bucket[index] ?? 0) * place.step);
      const right = Math.min(place.high, place.left + ((items.bucket[index] ?? 0) + 1) * place.step);
      if (left < right) {
        many.add([left, right], ends.of(items.from[index] ?? NONE), ends.of(items.to[index] ?? NONE), items.count[index] ?? 0, false);
      }
    }
    return;
  }
  if (items.form !== "arrows") {
    return;
  }
  const bucketNs = 2 ** tile.level;
  const base = tileBegin(tile.level, tile.index, frame.origin);
  for (let index = 0; index < items.begin.length; index++) {
    const [since, until] = [items.begin[index] ?? 0, items.end[index] ?? 0];
    const x0 = place.left + since * place.perNs;
    const x1 = place.left + until * place.perNs;
    if (!isIn(part, since, until, bucketNs) || x1 < 0 || x0 >= frame.width) {
      continue;
    }
    const [from, to] = [ends.of(items.from[index] ?? NONE), ends.of(items.to[index] ?? NONE)];
    const flags = items.flags[index] ?? 0;
    const isLost = (flags & END_UNKNOWN) !== 0;
    const line = (flags & RECEIVED_FIRST) !== 0 ? lineBetween(x1, from, x0, to, ends.stub, isLost) : lineBetween(x0, from, x1, to, ends.stub, isLost);
    if (line !== null) {
      // How many there are is known before they are drawn: then only their number matters.
      if (exact.length <= EXACT_MAX) {
        exact.push({ ...line, track, base, since });
      }
      many.add([x0, x0], from, to, 1, true);
    }
  }
}

/** The picked arrow. It begins where it comes, if that is before it leaves. */
export interface PickedArrow {
  readonly from: number;
  readonly to: number;
  readonly begin: Nanos;
  readonly end: Nanos;
  readonly receivedFirst: boolean;
}

/** One arrow, wherever its ends are; for the picked item. */
export function arrowBetween(frame: Frame, screen: Screen, ends: PickedArrow): ArrowLine | null {
  const places = new Ends(screen, true);
  const x = (time: Nanos): number => Math.min(Math.max(pixelOf(frame.view, time, frame.width), -frame.width), 2 * frame.width);
  const [x0, x1] = [x(ends.begin), x(ends.end)];
  if (x1 < 0 || x0 >= frame.width) {
    return null;
  }
  const [leaves, comes] = ends.receivedFirst ? [x1, x0] : [x0, x1];
  return lineBetween(leaves, places.of(ends.from), comes, places.of(ends.to), places.stub, false);
}

/** Where an end is: on a row of the screen, above or below of all of them, or on none. */
interface End {
  /** Its number among the ends of a picture. */
  readonly index: number;
  readonly track: TrackNumber | null;
  readonly where: "seen" | "above" | "below" | "nowhere";
  readonly top: number;
  readonly bottom: number;
}

/** Finds the ends of arrows by tracks' numbers, each once for a picture. */
class Ends {
  readonly stub: number;
  private readonly screen: Screen;
  private readonly found = new Map<number, End>();
  private readonly known: RowsKnown;
  private readonly nowhere: End = { index: 2, track: null, where: "nowhere", top: 0, bottom: 0 };
  private readonly above: End = { ...this.nowhere, index: 0, where: "above" };
  private readonly below: End = { ...this.nowhere, index: 1, where: "below" };
  private readonly isPicked: boolean;
  count = 3;

  /** The picked arrow is visible regardless of the filter. */
  constructor(screen: Screen, isPicked = false) {
    this.screen = screen;
    this.isPicked = isPicked;
    this.stub = STUB_CSS_PX * screen.ratio;
    this.known = rowsByTrack(screen.rows);
  }

  of(track: number): End {
    let end = this.found.get(track);
    if (end === undefined) {
      end = this.find(track);
      this.found.set(track, end);
    }
    return end;
  }

  private find(track: number): End {
    const row = this.known.tracks.get(track) ?? this.known.folded.get(this.screen.tracks[track]?.group ?? "");
    // Arrows follow the filter: between rows that it does not mean there are none.
    if (row === undefined || (row.dimmed && !this.isPicked)) {
      return this.nowhere;
    }
    const { scroll, fixed, ratio, height } = this.screen;
    const y = topOnScreen(row, fixed, scroll);
    const [top, bottom] = [y * ratio, (y + row.height) * ratio - 2 * ratio];
    const isAbove = bottom <= (row.top < fixed ? 0 : fixed * ratio);
    if (isAbove || top >= height) {
      return isAbove ? this.above : this.below;
    }
    return { index: this.count++, track: trackNumber(track), where: "seen", top, bottom };
  }
}

interface RowsKnown {
  readonly tracks: ReadonlyMap<number, Row>;
  /** Heads of groups that are folded. */
  readonly folded: ReadonlyMap<string, Row>;
}

const rowsKnown = new WeakMap<readonly Row[], RowsKnown>();

/** The row of each track: the pinned one, if there are two. Kept as long as the rows are, of which there may be ten thousands. */
function rowsByTrack(rows: readonly Row[]): RowsKnown {
  let known = rowsKnown.get(rows);
  if (known === undefined) {
    const [tracks, folded] = [new Map<number, Row>(), new Map<string, Row>()];
    for (const row of rows) {
      if (row.track === null && row.folded) {
        folded.set(row.group, row);
      } else if (row.track !== null && !tracks.has(row.track.number)) {
        tracks.set(row.track.number, row);
      }
    }
    known = { tracks, folded };
    rowsKnown.set(rows, known);
  }
  return known;
}

/** From the middle of one row to the near edge of the other; `null` if neither is seen. */
function lineBetween(x0: number, from: End, x1: number, to: End, stub: number, isLost: boolean): ArrowLine | null {
  const middle = (end: End): number => (end.top + end.bottom) / 2;
  if (from.where === "seen" && to.where === "seen" && !isLost) {
    const [y0, y1] = [middle(from), middle(from) < middle(to) ? to.top : middle(from) > middle(to) ? to.bottom : middle(to)];
    return { x0, y0, x1, y1 };
  }
  if (from.where === "seen") {
    const y0 = middle(from);
    const towards = isLost && to.where === "seen" ? Math.sign(middle(to) - y0) : to.where === "above" ? -1 : to.where === "below" ? 1 : 0;
    return towards === 0 ? { x0, y0, x1: x0 + stub, y1: y0 } : { x0, y0, x1: x0, y1: y0 + towards * stub };
  }
  if (to.where !== "seen") {
    return null;
  }
  if (from.where === "nowhere") {
    return { x0: x1 - stub, y0: middle(to), x1, y1: middle(to) };
  }
  const edge = from.where === "above" ? to.top : to.bottom;
  return { x0: x1, y0: from.where === "above" ? edge - stub : edge + stub, x1, y1: edge };
}

interface Sum {
  readonly track: string;
  readonly from: End;
  readonly to: End;
  count: number;
  left: number;
  right: number;
}

/** Adds up arrows by column and ends. */
class Bundles {
  private readonly ends: Ends;
  private readonly column: number;
  private readonly added: { readonly left: number; readonly right: number; readonly of: number; readonly from: End; readonly to: End; readonly count: number; readonly isExact: boolean }[] = [];
  private readonly tracks: string[] = [];

  constructor(ends: Ends, ratio: number) {
    this.ends = ends;
    this.column = COLUMN_CSS_PX * ratio;
  }

  /** The arrows added next are of this track. */
  of(track: string): void {
    this.tracks.push(track);
  }

  /** Drops arrows with an end at an unknown place: they would hide more than they say. */
  add([left, right]: readonly [number, number], from: End, to: End, count: number, isExact: boolean): void {
    const isKnown = from.where !== "nowhere" && to.where !== "nowhere";
    if (isKnown && (from.where === "seen" || to.where === "seen")) {
      this.added.push({ left, right, of: this.tracks.length - 1, from, to, count, isExact });
    }
  }

  /** All of them, with those that could be drawn one by one or without. */
  all(withExact: boolean): Bundle[] {
    const added = withExact ? this.added : this.added.filter((one) => !one.isExact);
    let column = this.column;
    let sums = this.summed(added, column);
    for (; sums.length > BUNDLES_MAX && column < 1 << 16; column *= 2) {
      sums = this.summed(added, 2 * column);
    }
    // In a column of all of the screen there is nothing left to be joined: then it is the smallest ones that are left out.
    const kept = sums.length <= BUNDLES_MAX ? sums : sums.sort((one, other) => other.count - one.count).slice(0, BUNDLES_MAX);
    return kept.flatMap((sum) => this.bundle(sum) ?? []);
  }

  private summed(added: Bundles["added"], column: number): Sum[] {
    const sums = new Map<number, Sum>();
    const { count: ends } = this.ends;
    for (const { left, right, of, from, to, count } of added) {
      const key = ((Math.floor((left + right) / 2 / column) * ends + from.index) * ends + to.index) * this.tracks.length + of;
      const sum = sums.get(key);
      if (sum === undefined) {
        sums.set(key, { track: this.tracks[of] ?? "", from, to, count, left, right });
      } else {
        sum.count += count;
        sum.left = Math.min(sum.left, left);
        sum.right = Math.max(sum.right, right);
      }
    }
    return [...sums.values()];
  }

  private bundle({ track, from, to, count, left, right }: Sum): Bundle | null {
    const line = lineBetween(left, from, left, to, this.ends.stub, false);
    return line === null ? null : { left, right, y0: line.y0, y1: line.y1, track, count, from: from.track, to: to.track };
  }
}

/** The bundle nearest to a point, at most so many pixels away from it. */
export function nearestBundle(bundles: readonly Bundle[], x: number, y: number, reach: number): Bundle | null {
  let [found, distance]: [Bundle | null, number] = [null, reach];
  for (const bundle of bundles) {
    const [top, bottom] = [Math.min(bundle.y0, bundle.y1), Math.max(bundle.y0, bundle.y1)];
    const away = Math.hypot(Math.max(bundle.left - x, x - bundle.right, 0), Math.max(top - y, y - bottom, 0));
    if (away <= distance) {
      [found, distance] = [bundle, away];
    }
  }
  return found;
}

/** The nearest line that is at most so many pixels away from a point. */
export function nearestLine<T extends ArrowLine>(lines: readonly T[], x: number, y: number, reach: number): T | null {
  let [found, distance]: [T | null, number] = [null, reach];
  for (const line of lines) {
    const away = distanceOf(line, x, y);
    if (away <= distance) {
      [found, distance] = [line, away];
    }
  }
  return found;
}

function distanceOf({ x0, y0, x1, y1 }: ArrowLine, x: number, y: number): number {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const part = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length));
  return Math.hypot(x - x0 - part * dx, y - y0 - part * dy);
}
