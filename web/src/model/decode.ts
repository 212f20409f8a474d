// Answers of the server, from bytes to columns. The layout stands in docs/http.md; in short:
//
//     "KYT2"  level  0 0 0   first (u64)   count   spans   tracks
//     spans:  begin  end  quality
//     tracks: number  form  carry + 1  items   and then the items
//
// The bytes are checked like all input from outside: every length against the available bytes, every bucket against the count, every
// order. An error says where it stands, and the found and the expected value.

import { LEVEL_MAX, level, trackNumber } from "../units/tiles.ts";
import {
  NONE,
  type Answer,
  type ArrowCounts,
  type Arrows,
  type Counter,
  type Counts,
  type Heat,
  type Instants,
  type Items,
  type Quality,
  type Runs,
  type Span,
  type States,
  type TrackItems,
} from "./tile.ts";

/** The fault of an answer, and at which byte. */
export class TileFault extends Error {
  readonly at: number;

  constructor(at: number, what: string) {
    super(`at byte ${at} of the tiles: ${what}`);
    this.at = at;
  }
}

/** At most as many buckets as one may ask for. */
export const BUCKETS_MAX = 4096;
const TRACKS_MAX = 1024;
const QUALITIES: readonly Quality[] = ["exact", "estimated", "building", "unknown"];

/** The columns that an answer's bytes hold. Throws a `TileFault`. */
export function decode(bytes: ArrayBuffer): Answer {
  const reader = new Reader(bytes);
  const magic = reader.u32("the magic number");
  if (magic !== 0x3254594b) {
    throw new TileFault(0, `found ${hex(magic)}, expected "KYT2"`);
  }
  const found = reader.u32("the level");
  if (found > LEVEL_MAX) {
    throw new TileFault(4, `found level ${hex(found)}, expected at most ${LEVEL_MAX} and three zeros`);
  }
  const first = reader.u64("the first bucket");
  const count = reader.bounded("buckets", 1, BUCKETS_MAX);
  const spanCount = reader.bounded("spans", 0, BUCKETS_MAX);
  const trackCount = reader.bounded("tracks", 0, TRACKS_MAX);
  const spans = readSpans(reader, spanCount, count);
  const tracks: TrackItems[] = [];
  for (let index = 0; index < trackCount; index++) {
    tracks.push(readTrack(reader, count));
  }
  reader.end();
  return { level: level(found), first, count, spans, tracks };
}

function readSpans(reader: Reader, spanCount: number, count: number): Span[] {
  const spans: Span[] = [];
  let before = 0;
  for (let index = 0; index < spanCount; index++) {
    const begin = reader.bounded("the begin of a span", before, count);
    const end = reader.bounded("the end of a span", begin, count);
    const at = reader.at;
    const quality = QUALITIES[reader.u32("a quality")];
    if (quality === undefined) {
      throw new TileFault(at, `found a quality that is none of 0 to ${QUALITIES.length - 1}`);
    }
    spans.push({ begin, end, quality });
    before = end;
  }
  return spans;
}

function readTrack(reader: Reader, count: number): TrackItems {
  const track = trackNumber(reader.u32("a track's number"));
  const at = reader.at;
  const form = reader.u32("a track's form");
  const carry = reader.u32("a track's carry");
  const itemCount = reader.u32("a track's items");
  const columns = FORMS[form];
  if (columns === undefined) {
    throw new TileFault(at, `track ${track} has form ${form}, expected 0 to ${FORMS.length - 1}`);
  }
  const held = form === COUNTER && carry !== 0 ? reader.f64("what a counter is at the begin") : NaN;
  const items = readItems(reader, columns, itemCount, count);
  if (items.form === "counter") {
    return { track, carry: NONE, items: { ...items, held } };
  }
  return { track, carry: carry === 0 ? NONE : carry - 1, items };
}

/** The kind of a column: times are in order, ends not before the begins in the first column, buckets in order and below the count. */
type Kind = "bucket" | "u16" | "u32" | "f64" | "time" | "end";

const KIND_BYTES: Readonly<Record<Kind, number>> = { bucket: 4, u16: 2, u32: 4, f64: 8, time: 8, end: 8 };
/** A counter's value at the begin stands before its items, if there is one. */
const COUNTER = 3;

interface Layout<T extends Items> {
  readonly form: T["form"];
  /** By name; without a name it is not looked at. */
  readonly columns: readonly (readonly [Exclude<keyof T, "form"> | null, Kind])[];
}

function layout<T extends Items>(form: T["form"], columns: Layout<T>["columns"]): Layout<Items> {
  return { form, columns } as unknown as Layout<Items>;
}

/** The columns of each form, as they lie in an item. */
const FORMS: readonly Layout<Items>[] = [
  layout<States>("states", [
    ["bucket", "bucket"],
    ["value", "u32"],
    ["second", "u32"],
    ["last", "u32"],
    ["begins", "u32"],
    ["busiest", "u32"],
    ["share", "u16"],
    ["shareSecond", "u16"],
    ["busy", "u16"],
    [null, "u16"],
  ]),
  layout<Runs>("runs", [
    ["begin", "time"],
    ["end", "end"],
    ["value", "u32"],
    ["flags", "u32"],
  ]),
  layout<Counts>("counts", [
    ["bucket", "bucket"],
    ["value", "u32"],
    ["count", "u32"],
    ["countOfValue", "u32"],
  ]),
  layout<Counter>("counter", [
    ["bucket", "bucket"],
    ["changes", "u32"],
    ["min", "f64"],
    ["max", "f64"],
    ["last", "f64"],
    ["mean", "f64"],
  ]),
  layout<ArrowCounts>("arrow counts", [
    ["bucket", "bucket"],
    ["from", "u32"],
    ["to", "u32"],
    ["count", "u32"],
    ["longestNs", "f64"],
  ]),
  layout<Heat>("heat", [
    ["bucket", "bucket"],
    ["bin", "u32"],
    ["count", "u32"],
  ]),
  layout<Instants>("instants", [
    ["time", "time"],
    ["value", "u32"],
    ["flags", "u32"],
  ]),
  layout<Arrows>("arrows", [
    ["begin", "time"],
    ["end", "end"],
    ["from", "u32"],
    ["to", "u32"],
    ["value", "u32"],
    ["flags", "u32"],
  ]),
];

function readItems(reader: Reader, { form, columns }: Layout<Items>, items: number, count: number): Items {
  const size = columns.reduce((sum, [, kind]) => sum + KIND_BYTES[kind], 0);
  const rows = reader.rows(items, size);
  const found: Record<string, unknown> = { form };
  let offset = 0;
  for (const [name, kind] of columns) {
    if (name !== null) {
      found[name] = rows.column(kind, offset, count);
    }
    offset += KIND_BYTES[kind];
  }
  return found as unknown as Items;
}

/** Reads from the front to the end, and never beyond it. */
class Reader {
  private readonly view: DataView;
  at = 0;

  constructor(bytes: ArrayBuffer) {
    this.view = new DataView(bytes);
  }

  private need(size: number, what: string): number {
    const at = this.at;
    const left = this.view.byteLength - at;
    if (size > left) {
      throw new TileFault(at, `${what}: ${size} bytes are needed, ${left} are left`);
    }
    this.at += size;
    return at;
  }

  u32(what: string): number {
    return this.view.getUint32(this.need(4, what), true);
  }

  u64(what: string): bigint {
    return this.view.getBigUint64(this.need(8, what), true);
  }

  f64(what: string): number {
    return this.view.getFloat64(this.need(8, what), true);
  }

  bounded(what: string, low: number, high: number): number {
    const at = this.at;
    const found = this.u32(what);
    if (found < low || found > high) {
      throw new TileFault(at, `${what}: found ${found}, expected ${low} to ${high}`);
    }
    return found;
  }

  rows(count: number, size: number): Rows {
    return new Rows(this.view, this.need(count * size, `${count} items of ${size} bytes`), count, size);
  }

  end(): void {
    if (this.at !== this.view.byteLength) {
      throw new TileFault(this.at, `${this.view.byteLength - this.at} bytes follow behind the last track`);
    }
  }
}

/** Items that lie side by side, from which columns are taken. */
class Rows {
  private readonly view: DataView;
  private readonly begin: number;
  private readonly count: number;
  private readonly size: number;

  constructor(view: DataView, begin: number, count: number, size: number) {
    this.view = view;
    this.begin = begin;
    this.count = count;
    this.size = size;
  }

  /** A column of some kind, checked as that says. */
  column(kind: Kind, offset: number, count: number): Uint16Array | Uint32Array | Float64Array {
    switch (kind) {
      case "u16":
        return this.filled(new Uint16Array(this.count), (at) => this.view.getUint16(at, true), offset);
      case "u32":
        return this.filled(new Uint32Array(this.count), (at) => this.view.getUint32(at, true), offset);
      case "bucket": {
        const column = this.column("u32", offset, count);
        this.check(column, (found, before) => found < count && found >= before, `a bucket of ${count}, not before the one of the item before`);
        return column;
      }
      case "f64":
        return this.filled(new Float64Array(this.count), (at) => this.view.getFloat64(at, true), offset);
      case "time": {
        const column = this.column("f64", offset, count);
        this.check(column, (found, before) => found >= before, "a time, not before the one of the item before", -Infinity);
        return column;
      }
      case "end": {
        const [column, begin] = [this.column("f64", offset, count), this.column("f64", 0, count)];
        this.check(column, (found, _, index) => found >= (begin[index] ?? 0), "an end that is not before the begin");
        return column;
      }
    }
  }

  private filled<T extends Uint16Array | Uint32Array | Float64Array>(column: T, read: (at: number) => number, offset: number): T {
    for (let index = 0, at = this.begin + offset; index < this.count; index++, at += this.size) {
      column[index] = read(at);
    }
    return column;
  }

  private check(
    column: Uint16Array | Uint32Array | Float64Array,
    holds: (found: number, before: number, index: number) => boolean,
    expected: string,
    start = 0,
  ): void {
    let before = start;
    for (let index = 0; index < column.length; index++) {
      const found = column[index] ?? NaN;
      if (!holds(found, before, index)) {
        throw new TileFault(this.begin + index * this.size, `item ${index} has ${found}, expected ${expected}`);
      }
      before = found;
    }
  }
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, "0")}`;
}
