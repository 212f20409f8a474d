// Numbers that counters have, with their unit: as short as they fit at a scale, or with all their digits.

import { nanos } from "../units/time.ts";
import { duration } from "./clock.ts";
import { grouped, numberText } from "./cells.ts";

/** Units that are written otherwise than behind the number: sizes in steps of 1024, times in the unit that suits them. */
const SIZES: ReadonlySet<string> = new Set(["b", "byte", "bytes"]);
const TIMES: Readonly<Record<string, number>> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 };

const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** Whether something is counted in bytes. */
export function isSize(unit: string | null): boolean {
  return SIZES.has(unit?.toLowerCase() ?? "");
}

/** As it stands at a scale: four digits at most. */
export function shortQuantity(value: number, unit: string | null): string {
  if (!Number.isFinite(value)) {
    return String(value);
  }
  if (isSize(unit)) {
    return numberText(value, "size").replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "");
  }
  const factor = unit === null ? undefined : TIMES[unit];
  if (factor !== undefined && Math.abs(value * factor) < 1e18 && (value === 0 || Math.abs(value * factor) >= 1)) {
    return duration(nanos(Math.round(value * factor))).replace(/\.0+(?= )/, "");
  }
  return withUnit(shortNumber(value), unit);
}

/** With all digits of integers, and nine of others. */
export function exactQuantity(value: number, unit: string | null): string {
  return withUnit(Number.isSafeInteger(value) ? grouped(value).replace(/^-/, "−") : signed(String(Number.isInteger(value) ? value : Number(value.toPrecision(9)))), unit);
}

/** Units that are words for several things. Of other units it is not known whether their last letter says that, as of siemens. */
const PLURALS: ReadonlySet<string> = new Set(
  "allocations blocks bytes calls clients connections cycles entries errors events faults files frames handles instructions items jobs locks messages objects operations packets pages requests retries samples sessions sockets steps tasks threads timers transactions users workers".split(" "),
);

function withUnit(text: string, unit: string | null): string {
  if (unit === null || unit === "") {
    return text;
  }
  const isOne = /^−?1$/.test(text) && PLURALS.has(unit);
  return `${text} ${isOne ? unit.replace(/ies$/, "y").replace(/s$/, "") : unit}`;
}

function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e16)) {
    return signed(value.toExponential(2).replace("e+", "e"));
  }
  let [step, part] = [0, value];
  while (Math.abs(part) >= 10_000 && step + 1 < PREFIXES.length) {
    part /= 1000;
    step++;
  }
  return `${signed(String(Number(part.toPrecision(4))))}${step === 0 ? "" : ` ${PREFIXES[step] ?? ""}`}`;
}

function signed(text: string): string {
  return text.replaceAll("-", "−");
}
