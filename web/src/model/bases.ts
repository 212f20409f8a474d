// In which base integers of fields are written: as the trace wishes it for people, and as `kymo print` does. Output for programs,
// as JSON and CSV, has plain numbers.

import { Shape, parseJson } from "./json.ts";

/** How some integers are written that are not written in base 10. */
export interface FieldBase {
  /** The names that lead to them; elements of lists are all alike. */
  readonly path: readonly string[];
  readonly base: number;
  /** How many bits they have. */
  readonly bits: number;
  /** The events of which that is so; `null`: all. */
  readonly events: ReadonlySet<string> | null;
}

/** The bases that the server sends for fields. Throws a `ShapeFault`. */
export function readBases(shape: Shape): readonly FieldBase[] {
  const texts = (list: Shape): string[] => list.list().map((text) => text.text());
  return shape.list().map((one) => ({
    path: texts(one.get("path")),
    base: one.get("base").number(),
    bits: one.get("bits").number(),
    events: one.get("events").given ? new Set(texts(one.get("events"))) : null,
  }));
}

/** The same of a column's metadata, given as text; a newer server may send bases that this page does not understand. */
export function basesOfColumn(text: string | undefined): readonly FieldBase[] {
  if (text === undefined) {
    return [];
  }
  try {
    return readBases(new Shape(parseJson(text), "kymo.bases"));
  } catch {
    return [];
  }
}

/** The base of the field that a path leads to; `null`: 10. `event` is the name of the event that has it, where that is known. */
export function baseAt(bases: readonly FieldBase[], path: readonly string[], event: string | null = null): FieldBase | null {
  const leads = (one: FieldBase): boolean => one.path.length === path.length && one.path.every((name, index) => name === path[index]);
  return bases.find((one) => (one.events === null || (event !== null && one.events.has(event))) && leads(one)) ?? null;
}

/** An integer in a base. Of a negative one its bits are written, as many as make whole digits. */
export function integerText(value: bigint, of: FieldBase | null): string {
  if (of === null) {
    return String(value);
  }
  const { base, bits } = of;
  const low = (digit: number): bigint => BigInt.asUintN(Math.min(64, Math.ceil(bits / digit) * digit), value);
  switch (base) {
    case 16:
      return `0x${low(4).toString(16).toUpperCase()}`;
    case 8:
      return `0${(value < 0n ? low(3) : value).toString(8)}`;
    default:
      return `0b${BigInt.asUintN(bits, value).toString(2).padStart(bits, "0")}`;
  }
}
