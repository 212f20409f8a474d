// How the viewport's end goes along with the watermark: at a constant rate, without jumps, though watermarks come a few times a second, and not
// all of them in time.
//
// Each watermark begins a straight line from where the end is then to the watermark, so long that the next one comes before it is reached:
//
//     watermarks   w1        w2        w3           w4           usual time between two: P
//     the end     ...───────────────────────────────────>        each line is for 3/2 P
//
// If watermarks come in time, the end is half a step behind the last one when the next comes, and a step and a half from that to go in 3/2 P: the rate is
// that of the watermarks. One that is late by up to P/2 stops nothing, one that goes further than usual makes the next lines steeper, not the end jump.

import { nanos, type Nanos } from "../units/time.ts";

/** A straight line. Times of the page in milliseconds, as `performance.now()` counts them. */
export interface Glide {
  readonly from: Nanos;
  readonly begin: number;
  readonly to: Nanos;
  readonly end: number;
  /** The usual time between two watermarks, and when the last one came. */
  readonly periodMs: number;
  readonly heardAt: number;
}

const PERIOD_MS_FIRST = 300;
const PERIOD_MS_MIN = 50;
const PERIOD_MS_MAX = 2_000;
/** How much of the usual time the last one makes up. */
const NEWEST_PART = 0.25;
/** So many periods each line is for. */
const REACH = 1.5;
/** Parts of a line that are told apart. */
const STEPS = 1_000_000;

/** The end rests at a time. */
export function resting(at: Nanos, now: number): Glide {
  return { from: at, begin: now, to: at, end: now, periodMs: PERIOD_MS_FIRST, heardAt: now };
}

/** Where the end is. */
export function edgeAt({ from, begin, to, end }: Glide, now: number): Nanos {
  if (now >= end) {
    return to;
  }
  const part = BigInt(Math.round((STEPS * Math.max(0, now - begin)) / (end - begin)));
  return nanos(from + ((to - from) * part) / BigInt(STEPS));
}

export function isMoving({ end }: Glide, now: number): boolean {
  return now < end;
}

/** The server has said another watermark. One before the last is of other traces: the end is there at once. */
export function headed(glide: Glide, to: Nanos, now: number): Glide {
  if (to === glide.to) {
    return glide;
  }
  if (to < glide.to) {
    return resting(to, now);
  }
  const gap = Math.min(PERIOD_MS_MAX, Math.max(PERIOD_MS_MIN, now - glide.heardAt));
  const periodMs = glide.periodMs + (gap - glide.periodMs) * NEWEST_PART;
  return { from: edgeAt(glide, now), begin: now, to, end: now + periodMs * REACH, periodMs, heardAt: now };
}
