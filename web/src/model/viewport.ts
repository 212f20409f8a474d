// The viewport: which part of time is on the screen, and how it moves.
//
// Begin and span are exact integers, so that panning there and back ends where it began, however far that is. All functions return
// a new window; `clamp` keeps it on the traces.

import { px, type Px } from "../units/screen.ts";
import { between, minus, nanos, plus, type Nanos } from "../units/time.ts";

/** From when to when the traces go. */
export interface Extent {
  readonly begin: Nanos;
  readonly end: Nanos;
}

/** The visible window: `span` nanoseconds from `begin` on. */
export interface Viewport {
  readonly begin: Nanos;
  readonly span: Nanos;
}

/** No window is shorter, so that a pixel is not less than a hundredth of a nanosecond on any screen. */
export const SPAN_MIN = nanos(20);

/** A factor is a fraction of this, so that zooming stays within integers. */
const FACTOR_UNIT = 1_000_000n;

export function endOf(view: Viewport): Nanos {
  return plus(view.begin, view.span);
}

/** The window that shows everything. */
export function everything(extent: Extent): Viewport {
  return clamp({ begin: extent.begin, span: minus(extent.end, extent.begin) }, extent);
}

/** The window from one time to another, in either order. */
export function windowBetween(one: Nanos, other: Nanos): Viewport {
  return one < other ? { begin: one, span: minus(other, one) } : { begin: other, span: minus(one, other) };
}

/** The nearest window that has a span of at least `SPAN_MIN` and, if it can, shows nothing but traces. */
export function clamp(view: Viewport, extent: Extent): Viewport {
  const longest = between(minus(extent.end, extent.begin), SPAN_MIN, nanos(1n << 63n));
  const span = between(view.span, SPAN_MIN, longest);
  const begin = between(view.begin, extent.begin, minus(plus(extent.begin, longest), span));
  return { begin, span };
}

/** The window with `factor` times the span, in which `at` stays where it is on the screen. */
export function zoom(view: Viewport, at: Nanos, factor: number): Viewport {
  const scaled = BigInt(Math.max(1, Math.round(factor * Number(FACTOR_UNIT))));
  const span = between(nanos(rounded(view.span * scaled, FACTOR_UNIT)), SPAN_MIN, nanos(1n << 63n));
  const before = view.span === 0n ? nanos(0) : nanos(rounded((at - view.begin) * span, view.span));
  return { begin: minus(at, before), span };
}

/** The nearest whole number of parts; in and out again by the same factor ends where it began. */
function rounded(whole: bigint, part: bigint): bigint {
  return whole >= 0n ? (whole + part / 2n) / part : -((-whole + part / 2n) / part);
}

/** The window that begins `by` later. */
export function pan(view: Viewport, by: Nanos): Viewport {
  return { begin: plus(view.begin, by), span: view.span };
}

/** A part of the window's span: the step of an arrow key. */
export function partOf(view: Viewport, part: number): Nanos {
  const scaled = nanos((view.span * BigInt(Math.round(part * Number(FACTOR_UNIT)))) / FACTOR_UNIT);
  if (scaled !== 0n || part === 0) {
    return scaled;
  }
  return nanos(part < 0 ? -1 : 1);
}

/** The time at the left edge of pixel `x` of `width`, rounded down. */
export function timeAt(view: Viewport, x: Px, width: Px): Nanos {
  const wide = BigInt(Math.max(1, Math.round(width)));
  const product = view.span * BigInt(Math.floor(x));
  const floor = product >= 0n ? product / wide : -((-product + wide - 1n) / wide);
  return nanos(view.begin + floor);
}

/** Where a time lies in the window. A double: far outside of the screen it is not exact, and need not be. */
export function pixelOf(view: Viewport, time: Nanos, width: Px): Px {
  return px((Number(time - view.begin) * width) / Number(view.span));
}

/** The part of a span of time that is in the traces; `null`: none of it is. */
export function partIn({ begin, span }: Viewport, extent: Extent): Viewport | null {
  const [low, high] = [begin > extent.begin ? begin : extent.begin, begin + span < extent.end ? plus(begin, span) : extent.end];
  return high > low ? { begin: low, span: minus(high, low) } : null;
}
