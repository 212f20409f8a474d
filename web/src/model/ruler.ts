// Where the ruler has its marks: at round times, about evenly, with names that tell them apart.

import type { Px } from "../units/screen.ts";
import { SECOND, nanos, type Nanos } from "../units/time.ts";
import { digitsFor, timeText, type Clock } from "./clock.ts";
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
  const step = stepFor(view, width, apart);
  const digits = digitsFor(step);
  const small = step % 5n === 0n ? step / 5n : step % 2n === 0n ? step / 2n : step;
  // Absolute times are round where the clock on the wall is, relative ones where the traces begin.
  const base = clock.style === "absolute" && clock.unix ? 0n : clock.origin;
  const found: Tick[] = [];
  for (let time = base + ceilDiv(view.begin - base, small) * small; time < endOf(view); time += small) {
    const named = (time - base) % step === 0n;
    found.push({ time: nanos(time), x: pixelOf(view, nanos(time), width), label: named ? timeText(clock, nanos(time), digits) : "" });
  }
  return found;
}

function ceilDiv(left: bigint, right: bigint): bigint {
  return left > 0n ? (left + right - 1n) / right : left / right;
}
