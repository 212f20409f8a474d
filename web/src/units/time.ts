// Times and durations.
//
// A time is a whole number of nanoseconds on the axis of the traces: since the Unix epoch where the clocks say so, else since their
// own origin. It is a bigint, because a double is exact for only 104 days. Doubles appear where a difference becomes pixels.

/** Nanoseconds: a time on the axis of the traces, or a difference of two. */
export type Nanos = bigint & { readonly unit: "ns" };

/** That many nanoseconds; a number must be whole. */
export function nanos(count: bigint | number): Nanos {
  return BigInt(count) as Nanos;
}

export const MICROSECOND = nanos(1_000);
export const MILLISECOND = nanos(1_000_000);
export const SECOND = nanos(1_000_000_000);

/** `left + right`, which is a time if one of them is. */
export function plus(left: Nanos, right: Nanos): Nanos {
  return (left + right) as Nanos;
}

/** `left - right`. */
export function minus(left: Nanos, right: Nanos): Nanos {
  return (left - right) as Nanos;
}

/** `time`, or the nearer one of `low` and `high` if it lies outside of them. */
export function between(time: Nanos, low: Nanos, high: Nanos): Nanos {
  return time < low ? low : time > high ? high : time;
}
