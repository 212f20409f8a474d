// Counters as curves with an axis: the chosen counters, which of them share an axis, and the axis' marks.

import type { Piece } from "./cache.ts";
import type { Track } from "./catalogue.ts";
import { lowerBound } from "./split.ts";
import { bucketSpan, tileBegin } from "./wanted.ts";
import { nanos, type Nanos } from "../units/time.ts";

/** The content of the tab of counters. */
export interface Curves {
  /** Ids of tracks, in the order in which they were chosen. */
  readonly tracks: readonly string[];
  /** Counters of the same unit share an axis, or each has its own. */
  readonly apart: boolean;
}

export const PLAIN_CURVES: Curves = { tracks: [], apart: false };
/** More lines than a reader can tell apart are not drawn. */
export const CURVES_MAX = 12;

/** With one more, or without it if it was there. */
export function toggledCurve(curves: Curves, id: string): Curves {
  const tracks = curves.tracks.includes(id) ? curves.tracks.filter((other) => other !== id) : [...curves.tracks, id].slice(-CURVES_MAX);
  return { ...curves, tracks };
}

/** As members of a URL. */
export function curveParts(curves: Curves): [string, string][] {
  return [...curves.tracks.map((id): [string, string] => ["curve", id]), ...(curves.apart ? [["curves", "apart"] as [string, string]] : [])];
}

/** Reads the output of [`curveParts`]; parts that it does not understand are left out. */
export function readCurves(parts: URLSearchParams): Curves {
  return { tracks: [...new Set(parts.getAll("curve"))].slice(0, CURVES_MAX), apart: parts.get("curves") === "apart" };
}

/** A track that is drawn as a curve, and in which of the colors. */
export interface Curve {
  readonly track: Track;
  readonly colour: number;
}

/** Curves that share an axis. */
export interface Lane {
  readonly unit: string | null;
  readonly curves: readonly Curve[];
}

/** All counters, in the order of their groups and names. */
export function countersOf(tracks: readonly Track[]): readonly Track[] {
  const counters = tracks.filter((track) => track.kind === "counter");
  const key = ({ group, name, id }: Track): string => `${group}\n${name}\n${id}`;
  return counters.sort((one, other) => key(one).localeCompare(key(other), "en", { numeric: true }));
}

/** The lanes to draw: counters of the same unit together, unless each is to have an axis of its own. Ids that no counter has give nothing. */
export function lanesOf(curves: Curves, tracks: readonly Track[]): readonly Lane[] {
  const counters = new Map(countersOf(tracks).map((track) => [track.id, track]));
  const lanes: { readonly unit: string | null; readonly curves: Curve[] }[] = [];
  curves.tracks.forEach((id, colour) => {
    const track = counters.get(id);
    if (track === undefined) {
      return;
    }
    const unit = track.unit ?? null;
    const shared = curves.apart ? undefined : lanes.find((lane) => lane.unit === unit);
    if (shared === undefined) {
      lanes.push({ unit, curves: [{ track, colour }] });
    } else {
      shared.curves.push({ track, colour });
    }
  });
  return lanes;
}

/** Round numbers from one to another, about `most`: 1, 2 or 5 of a power of ten apart; sizes a power of two. */
export function axisMarks(low: number, high: number, most: number, isSize = false): number[] {
  const least = (high - low) / Math.max(1, most);
  if (!(least > 0) || !Number.isFinite(least)) {
    return [];
  }
  const power = 10 ** Math.floor(Math.log10(least));
  const decimal = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least * (1 - 1e-9)) ?? 10 * power;
  const step = isSize && least > 1 ? 2 ** Math.ceil(Math.log2(least)) : decimal;
  const marks: number[] = [];
  for (let mark = Math.ceil(low / step - 1e-9); mark * step <= high + step * 1e-9 && marks.length <= Math.max(1, most); mark++) {
    // Steps below one are no exact doubles: their decimal text is.
    marks.push(Number((mark * step).toPrecision(15)));
  }
  return marks;
}

/** Marks of an axis with room for `most`: a few more where one alone would not say how far it is from one to the next. */
export function axisMarksIn(low: number, high: number, most: number, isSize: boolean): number[] {
  const marks = axisMarks(low, high, most, isSize);
  return marks.length >= 2 ? marks : axisMarks(low, high, 2 * Math.max(2, most), isSize);
}

/** When the next bucket begins in which any of some counters changes, behind a time or before it; `null`: none of the tiles that are there has one. */
export function nextChange(pieces: readonly Piece[], origin: Nanos, time: Nanos, direction: 1 | -1): Nanos | null {
  let found: Nanos | null = null;
  for (const { tile, begin, end } of pieces) {
    const { items } = tile;
    if (items.form !== "counter") {
      continue;
    }
    const [since, bucket] = [tileBegin(tile.level, tile.index, origin), bucketSpan(tile.level)];
    const now = Number(time - since) / Number(bucket);
    const first = Math.floor(now);
    const place = direction === 1 ? lowerBound(items.bucket, Math.max(first + 1, begin)) : lowerBound(items.bucket, Math.min(Math.ceil(now), end)) - 1;
    const at = items.bucket[place];
    if (at === undefined || at < begin || at >= end) {
      continue;
    }
    const change = nanos(since + BigInt(at) * bucket);
    if (found === null || (direction === 1 ? change < found : change > found)) {
      found = change;
    }
  }
  return found;
}
