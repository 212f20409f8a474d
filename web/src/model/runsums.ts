// Runs, added up exactly over a span of time, also where they are too many for one answer: then the span is asked for in windows that are so
// short that the server tells the runs one by one.

import { nanos } from "../units/time.ts";
import type { ValueSum } from "./sums.ts";
import { NONE, type Answer, type Runs } from "./tile.ts";
import { bucketSpan } from "./wanted.ts";
import { endOf, type Extent, type Viewport } from "./viewport.ts";

/** A track with fewer runs than a window has buckets comes one by one; a window has at least so many. */
export const RUNS_MAX = 1_700;

/** Adds up the runs of a track, which come in the order of time. A run across the end of one part goes on in the next one. */
export class RunSum {
  readonly values = new Map<number, ValueSum>();
  /** Runs that begin in the parts. */
  count = 0;
  private last: { readonly value: number; readonly end: number; readonly time: number } | null = null;

  /** Adds a part of the time, from `low` to before `high`. `origin` is what times of runs count from. */
  add({ begin, end, value }: Runs, origin: number, [low, high]: readonly [number, number]): void {
    for (const [at, since] of begin.entries()) {
      const [from, to] = [since + origin, (end[at] ?? since) + origin];
      const time = Math.min(to, high) - Math.max(from, low);
      const shown = value[at] ?? NONE;
      const begins = from >= low && from < high;
      // A run may take no time: where it begins, it is one all the same.
      if ((time > 0 || (begins && time === 0)) && shown !== NONE) {
        this.addRun(shown, time, from < low ? low : null, Math.min(to, high));
        this.count += begins ? 1 : 0;
      }
    }
  }

  /** `edge`: the run began before there. */
  private addRun(value: number, time: number, edge: number | null, end: number): void {
    const goesOn = edge !== null && this.last !== null && this.last.value === value && this.last.end >= edge;
    const whole = time + (goesOn ? (this.last?.time ?? 0) : 0);
    this.last = { value, end, time: whole };
    const before = this.values.get(value) ?? { time: 0, count: 0, longest: 0 };
    this.values.set(value, { time: before.time + time, count: (before.count ?? 0) + (goesOn ? 0 : 1), longest: Math.max(before.longest ?? 0, whole) });
  }
}

/** The tracks of an answer whose runs are bucketed. */
export function bucketedIn({ tracks }: Answer): readonly number[] {
  return tracks.filter(({ items }) => items.form === "states").map(({ track }) => track);
}

/** How many runs begin in the buckets of an answer, in the track with most of them. */
export function runsIn({ tracks }: Answer): number {
  return tracks.reduce((most, { items }) => (items.form === "states" ? Math.max(most, items.begins.reduce((sum, count) => sum + count, 0)) : most), 0);
}

/** A window of a bucketed answer in parts, in which each track has few enough runs; two at least, unless the window cannot be cut. */
export function partsOf(answer: Answer, meant: Viewport, { begin: origin }: Extent): readonly Viewport[] {
  const width = bucketSpan(answer.level);
  const cuts = cutsOf(answer).map((bucket) => origin + (answer.first + BigInt(bucket)) * width).filter((cut) => cut > meant.begin && cut < endOf(meant));
  const middle = meant.begin + meant.span / 2n;
  const edges: readonly bigint[] = [meant.begin, ...(cuts.length > 0 ? cuts : middle > meant.begin ? [middle] : []), endOf(meant)];
  return edges.slice(1).map((edge, at) => ({ begin: nanos(edges[at] ?? edge), span: nanos(edge - (edges[at] ?? edge)) }));
}

/** The buckets before which an answer is cut. */
function cutsOf({ tracks }: Answer): readonly number[] {
  const begins = new Map<number, Map<number, number>>();
  for (const { track, items } of tracks) {
    if (items.form === "states") {
      items.bucket.forEach((bucket, at) => begins.set(bucket, (begins.get(bucket) ?? new Map<number, number>()).set(track, items.begins[at] ?? 0)));
    }
  }
  const cuts: number[] = [];
  let held = new Map<number, number>();
  for (const [bucket, here] of [...begins].sort(([one], [other]) => one - other)) {
    const isFull = [...here].some(([track, count]) => (held.get(track) ?? 0) + count > RUNS_MAX);
    if (isFull) {
      cuts.push(bucket);
      held = new Map();
    }
    here.forEach((count, track) => held.set(track, (held.get(track) ?? 0) + count));
  }
  return cuts;
}
