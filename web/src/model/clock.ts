// The text of times and durations.
//
// Absolute times need clocks that know the Unix epoch, and a zone; relative ones count from the begin of the traces. Digits behind
// the comma come in groups of three, as many as a pixel can tell apart, so that neighboring times do not look the same. From a minute
// on each unit stands behind its number ("1 d 2 h 0.5 s"): with colons they would be times of the day.

import { MICROSECOND, MILLISECOND, SECOND, nanos, type Nanos } from "../units/time.ts";

/** In which way times are shown. */
export type TimeStyle = "relative" | "absolute";

/** The settings that writing a time needs. */
export interface Clock {
  /** Relative times count from here. */
  readonly origin: Nanos;
  /** Times count from the Unix epoch. */
  readonly unix: boolean;
  /** A name that `Intl` knows, or "UTC". */
  readonly zone: string;
  readonly style: TimeStyle;
  /** The traces are of more than one day: a time of the day does not say which instant it is. */
  readonly days?: boolean;
}

const NARROW = "\u202f";

/** Units below a minute, each with the span from which on the next one is used. */
const SHORT_UNITS = [
  [MICROSECOND, MILLISECOND, "µs"],
  [MILLISECOND, SECOND, "ms"],
  [SECOND, 60n * SECOND, "s"],
] as const;

/** Something over time: "12.345 µs", rounded. Negative ones have a minus sign. At least as exact as `digits` significant ones. */
export function duration(span: Nanos, digits = 4): string {
  if (span < 0n) {
    return `−${duration(nanos(-span), digits)}`;
  }
  if (span < MICROSECOND) {
    return `${span} ns`;
  }
  for (const [unit, next, name] of SHORT_UNITS) {
    // Rounded, it may be one of the next unit.
    const found = span < next ? rounded(span, stepOf(span, unit, digits)) : next;
    if (found < next) {
      return `${decimal(found, unit, stepOf(found, unit, digits))} ${name}`;
    }
  }
  return long(span);
}

/** The least difference that so many digits tell, but whole units at most. */
function stepOf(span: bigint, unit: bigint, digits: number): bigint {
  const places = Math.max(0, digits - (span / unit).toString().length);
  return 10n ** BigInt(Math.max(0, unit.toString().length - 1 - places));
}

function rounded(span: bigint, step: bigint): bigint {
  return ((span + step / 2n) / step) * step;
}

/** The number of units of a multiple of a step. */
function decimal(span: bigint, unit: bigint, step: bigint): string {
  const places = unit.toString().length - step.toString().length;
  const fraction = ((span % unit) / step).toString().padStart(places, "0");
  return places === 0 ? `${span / unit}` : `${span / unit}.${fraction}`;
}

/** The two largest units. */
function long(span: bigint): string {
  const seconds = rounded(span, span < 3_600n * SECOND ? SECOND : span < 86_400n * SECOND ? 60n * SECOND : 3_600n * SECOND) / SECOND;
  const [days, hours, minutes] = [seconds / 86_400n, (seconds / 3_600n) % 24n, (seconds / 60n) % 60n];
  const parts = [`${days} d`, `${hours} h`, `${minutes} min`, `${seconds % 60n} s`];
  const first = parts.findIndex((part) => !part.startsWith("0 "));
  return parts.slice(first, first + 2).join(" ");
}

/** Units above a second, in seconds. */
const LONG_UNITS = [
  [86_400n, "d"],
  [3_600n, "h"],
  [60n, "min"],
] as const;

/** A length in all units that it has some of, cut to so many digits behind the seconds: "59.5 s", "1 h 15 min", "3 d 2 h 0.5 s". */
export function spelled(span: bigint, digits: number): string {
  if (span < 0n) {
    return `−${spelled(-span, digits)}`;
  }
  const fraction = fractionText(span % SECOND, digits);
  let rest = span / SECOND;
  const parts: string[] = [];
  for (const [seconds, name] of LONG_UNITS) {
    if (rest >= seconds) {
      parts.push(`${rest / seconds} ${name}`);
      rest %= seconds;
    }
  }
  const isWhole = rest === 0n && fraction === "" && parts.length > 0;
  return (isWhole ? parts : [...parts, `${rest}${fraction} s`]).join(" ");
}

/** How many digits behind the seconds tell times apart that are `step` apart. */
export function digitsFor(step: Nanos): number {
  let digits = 0;
  for (let unit = SECOND as bigint; unit > 1n && step < unit; unit /= 10n) {
    digits++;
  }
  return digits;
}

/** A time, with so many digits behind the seconds. */
export function timeText(clock: Clock, time: Nanos, digits = 9): string {
  if (clock.style === "relative" || !clock.unix) {
    return spelled(time - clock.origin, digits);
  }
  const fraction = ((time % SECOND) + SECOND) % SECOND;
  const parts = partsOf(clock, time);
  return `${clock.days === true ? `${parts.day} ` : ""}${parts.time}${fractionText(fraction, digits)}`;
}

/** How many letters times until `end` have at most: those just before a whole minute, hour or day have the most. */
export function lettersMax(clock: Clock, end: Nanos): number {
  const since = end - clock.origin;
  const before = LONG_UNITS.map(([seconds]) => since - (since % (seconds * SECOND)) - 1n);
  return [since, ...before.filter((time) => time > 0n)].reduce((most, time) => Math.max(most, timeText(clock, nanos(clock.origin + time)).length), 0);
}

/** How far ahead of UTC a zone is at a time. */
export function zoneAhead(clock: Clock, time: Nanos): Nanos {
  const parts = partsOf(clock, time);
  const second = time - (((time % SECOND) + SECOND) % SECOND);
  return nanos(BigInt(Date.parse(`${parts.day}T${parts.time}Z`)) * MILLISECOND - second);
}

/** The day of a time, where clocks have days. */
export function dayText(clock: Clock, time: Nanos): string {
  return clock.unix ? partsOf(clock, time).day : "";
}

/** How the zone is called at that time: "UTC", "CET"; where clocks have none, their origin. */
export function zoneText(clock: Clock, time: Nanos): string {
  return clock.style === "absolute" && clock.unix ? partsOf(clock, time).zone : "since begin";
}

function fractionText(fraction: bigint, digits: number): string {
  if (digits === 0) {
    return "";
  }
  const text = fraction.toString().padStart(9, "0").slice(0, digits);
  return `.${text.replace(/(\d{3})(?=\d)/g, `$1${NARROW}`)}`;
}

interface Parts {
  readonly day: string;
  readonly time: string;
  readonly zone: string;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** The calendar's parts for the second that a time lies in. */
function partsOf(clock: Clock, time: Nanos): Parts {
  const milliseconds = Number(time / MILLISECOND) - (time % MILLISECOND < 0n ? 1 : 0);
  const parts = new Map(formatOf(clock.zone).formatToParts(new Date(milliseconds)).map((part) => [part.type, part.value]));
  const part = (name: Intl.DateTimeFormatPartTypes): string => parts.get(name) ?? "";
  return {
    day: `${part("year")}-${part("month")}-${part("day")}`,
    time: `${part("hour")}:${part("minute")}:${part("second")}`,
    zone: part("timeZoneName"),
  };
}

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      timeZoneName: "short",
    });
    formats.set(zone, format);
  }
  return format;
}
