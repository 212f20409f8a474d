// The marks of the ruler: at round times, about evenly, with names that tell them apart.

import { px, type Px } from "../units/screen.ts";
import { SECOND, minus, nanos, type Nanos } from "../units/time.ts";
import { dayText, digitsFor, timeText, zoneAhead, type Clock } from "./clock.ts";
import { endOf, pixelOf, type Viewport } from "./viewport.ts";

/** A mark of the ruler. */
export interface Tick {
  readonly time: Nanos;
  readonly x: Px;
  /** Empty for marks between those that have names. */
  readonly label: string;
}

/** Steps above a second that clocks know. */
const LONG_STEPS: readonly bigint[] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map(
  (seconds) => BigInt(seconds) * SECOND,
);
const DAY = 86_400n * SECOND;
/** So many letters of a name are sure to fit where marks are as close as they may be; longer ones, as of an instant after days, need more room. */
const LETTERS = 20;

/** How far marks with names are apart: a round time, `apart` pixels at least. */
export function stepFor(view: Viewport, width: Px, apart: Px): Nanos {
  const least = (view.span * BigInt(Math.ceil(apart))) / BigInt(Math.max(1, Math.floor(width)));
  for (let unit = 1n; unit < SECOND; unit *= 10n) {
    for (const factor of [1n, 2n, 5n]) {
      if (factor * unit >= least) {
        return nanos(factor * unit);
      }
    }
  }
  const long = LONG_STEPS.find((step) => step >= least);
  return nanos(long ?? ((least + DAY - 1n) / DAY) * DAY);
}

/** The marks of a window. Those with names are `apart` pixels apart at least; four lie between two of them, if there is room. */
export function ticks(view: Viewport, width: Px, apart: Px, clock: Clock): Tick[] {
  const close = ticksEach(view, width, stepFor(view, width, apart), clock);
  const letters = close.reduce((most, { label }) => Math.max(most, label.length), 0);
  return letters <= LETTERS ? close : ticksEach(view, width, stepFor(view, width, px((apart * letters) / LETTERS)), clock);
}

function ticksEach(view: Viewport, width: Px, step: Nanos, clock: Clock): Tick[] {
  const small = step % 5n === 0n ? step / 5n : step % 2n === 0n ? step / 2n : step;
  // Absolute times are round where the clock on the wall is, relative ones where the traces begin.
  const base = clock.style === "absolute" && clock.unix ? -zoneAhead(clock, view.begin) : clock.origin;
  const found: Tick[] = [];
  for (let time = base + ceilDiv(view.begin - base, small) * small; time < endOf(view); time += small) {
    const named = (time - base) % step === 0n;
    found.push({ time: nanos(time), x: pixelOf(view, nanos(time), width), label: named ? labelOf(clock, nanos(time), step) : "" });
  }
  return found;
}

/** The label of a mark. Of times of the day the first one of each day says which day that is, and midnight nothing else. */
function labelOf(clock: Clock, time: Nanos, step: Nanos): string {
  const text = timeText({ ...clock, days: false }, time, digitsFor(step));
  if (clock.style === "relative" || !clock.unix) {
    return text;
  }
  const day = dayText(clock, time);
  return day === dayText(clock, minus(time, step)) ? text : /^[0:.\u202f]*$/.test(text) ? day : `${day} ${text}`;
}

function ceilDiv(left: bigint, right: bigint): bigint {
  return left > 0n ? (left + right - 1n) / right : left / right;
}
