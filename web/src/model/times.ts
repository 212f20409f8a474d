// Times as people write them: `+1.5ms` and `-200us` from the window's place, `1.25s` and `3 d 2 h` since the begin of the traces, `12:18:50.43` of
// the day that is seen, `2016-03-04 17:46:22.5`, also with `Z` or `+01:00` behind it, `1457113582.79` seconds since 1970. Exact, as all times are.

import { MICROSECOND, MILLISECOND, SECOND, minus, nanos, plus, type Nanos } from "../units/time.ts";
import { dayText, timeText, zoneAhead, type Clock } from "./clock.ts";
import type { Extent } from "./viewport.ts";

/** The meant time, or the fault in the text. */
export type ReadTime = { readonly time: Nanos; readonly what: string } | { readonly fault: string };

/** The context that reading a time needs. */
export interface TimeContext {
  readonly clock: Clock;
  readonly extent: Extent;
  /** The time that a relative time counts from. */
  readonly from: Nanos;
}

const UNITS: Readonly<Record<string, Nanos>> = {
  ns: nanos(1),
  us: MICROSECOND,
  µs: MICROSECOND,
  μs: MICROSECOND,
  ms: MILLISECOND,
  s: SECOND,
  min: nanos(60n * SECOND),
  h: nanos(3_600n * SECOND),
  d: nanos(86_400n * SECOND),
};
/** Seconds since 1970 have as many digits, and no trace is as long. */
const EPOCH_SECONDS_MIN = 100_000_000n;
const EXPECTED = "a time is written as +1.5ms, 1.25s, 12:18:50.43 or 2016-03-04 17:46:22.5";

/** Reads a time. */
export function readTime(text: string, context: TimeContext): ReadTime {
  const plain = text.trim().replaceAll("−", "-").replace(/[\u202f_]/g, "");
  if (plain === "") {
    return { fault: EXPECTED };
  }
  const found = readSpan(plain, context) ?? readClock(plain, context) ?? { fault: `found “${text.trim()}”; ${EXPECTED}` };
  if ("fault" in found) {
    return found;
  }
  const { begin, end } = context.extent;
  if (found.time < begin || found.time > end) {
    const by = found.time < begin ? "before the begin" : "behind the end";
    return { fault: `that is ${by} of the traces, which go from ${timeText(context.clock, begin, 3)} to ${timeText(context.clock, end, 3)}` };
  }
  return found;
}

/** Numbers with units, as this page writes long times, or one of seconds: how much later or earlier, since the begin, or since 1970. */
function readSpan(text: string, { clock, extent, from }: TimeContext): ReadTime | null {
  const [, sign = "", parts] = /^([+-]?)\s*((?:(?:\d+(?:\.\d*)?|\.\d+)\s*[a-zµμ]+\s*)+|\d+(?:\.\d*)?|\.\d+)$/.exec(text) ?? [];
  if (parts === undefined) {
    return null;
  }
  const found = [...parts.matchAll(/([\d.]+)\s*([a-zµμ]*)/g)].map(([, number = "", unit = ""]) => ({ number, unit: unit === "" ? "s" : unit }));
  let span = nanos(0);
  for (const { number, unit } of found) {
    const length = UNITS[unit];
    if (length === undefined) {
      return { fault: `there is no unit “${unit}”; there are ns, us, ms, s, min, h and d` };
    }
    const part = scaled(number, length);
    if (part === null) {
      return { fault: `${number} ${unit} is no whole number of nanoseconds` };
    }
    span = plus(span, part);
  }
  if (sign !== "") {
    const time = sign === "+" ? plus(from, span) : minus(from, span);
    return { time, what: `${found.map(({ number, unit }) => `${number} ${unit}`).join(" ")} ${sign === "+" ? "later" : "earlier"}` };
  }
  const isEpoch = clock.unix && found.every(({ unit }) => unit === "s") && span >= EPOCH_SECONDS_MIN * SECOND;
  return isEpoch ? { time: span, what: "since 1970" } : { time: plus(extent.begin, span), what: "since the begin" };
}

/** A decimal number of units; `null`: that is no whole number of nanoseconds. */
function scaled(number: string, unit: Nanos): Nanos | null {
  const [whole = "", fraction = ""] = number.split(".");
  const digits = fraction.replace(/0+$/, "");
  const product = BigInt((whole === "" ? "0" : whole) + digits) * unit;
  const divisor = 10n ** BigInt(digits.length);
  return product % divisor === 0n ? nanos(product / divisor) : null;
}

/** A time of the day, with a day or of the one that is seen. */
function readClock(text: string, { clock, from }: TimeContext): ReadTime | null {
  // A zone behind a day, as `kymo info` writes it.
  const [zone = "", sign, zoneHours = 0, zoneMinutes = 0] = /(?<=^\d{4}-.*)\s*(?:Z|([+-])(\d{2}):?([0-5]\d))$/.exec(text) ?? [];
  const [, day, hours, minutes, seconds, fraction = ""] = /^(?:(\d{4}-\d{2}-\d{2})[T ])?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{0,9}))?)?$/.exec(text.slice(0, text.length - zone.length)) ?? [];
  if (hours === undefined || minutes === undefined) {
    return null;
  }
  if (!clock.unix) {
    return { fault: "the clock of these traces knows no time of day; say how long since the begin, as 1.25s" };
  }
  const date = day ?? dayText(clock, from);
  const [hour, minute, second] = [Number(hours), Number(minutes), Number(seconds ?? 0)];
  if (hour > 23 || minute > 59 || second > 59) {
    return { fault: `there is no time of day ${text}` };
  }
  const local = Date.parse(`${date}T${hours.padStart(2, "0")}:${minutes}:${seconds ?? "00"}Z`);
  if (Number.isNaN(local)) {
    return { fault: `there is no day ${date}` };
  }
  const ahead = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === "-" ? -60 : 60);
  const utc = zone === "" ? utcOf(local / 1_000, clock) : local / 1_000 - ahead;
  return { time: nanos(BigInt(utc) * SECOND + BigInt(fraction.padEnd(9, "0"))), what: day === undefined ? "of that day" : "of the calendar" };
}

/** When the calendar of a zone says so, both in whole seconds: the zone's calendar is looked up until it fits. */
function utcOf(local: number, clock: Clock): number {
  let utc = local;
  for (let round = 0; round < 3; round++) {
    utc = local - Number(zoneAhead(clock, nanos(BigInt(utc) * SECOND)) / SECOND);
  }
  return utc;
}
