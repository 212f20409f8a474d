// Answers of the server, from bytes to columns. The layout stands in docs/http.md; in short:
//
//     "KYT1"  level  0 0 0   first (u64)   count   spans   tracks
//     spans:  begin  end  quality
//     tracks: number  form  carry + 1  items   and then the items
//
// The bytes are checked as whatever comes from elsewhere: every length against what is there, every bucket against the count, every
// order. What is wrong is said with where it stands, what was found and what was expected.

import { LEVEL_MAX, level, trackNumber } from "../units/tiles.ts";
import { NONE, type Answer, type Items, type Quality, type Span, type TrackItems } from "./tile.ts";

/** What is wrong with an answer, and at which byte. */
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
  if (magic !== 0x3154594b) {
    throw new TileFault(0, `found ${hex(magic)}, expected "KYT1"`);
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
  const read = FORMS[form];
  if (read === undefined) {
    throw new TileFault(at, `track ${track} has form ${form}, expected 0 to ${FORMS.length - 1}`);
  }
  return { track, carry: carry === 0 ? NONE : carry - 1, items: read(reader, itemCount, count) };
}

type Read = (reader: Reader, items: number, count: number) => Items;

const FORMS: readonly Read[] = [readStates, readRuns, readCounts, readCounter, readArrowCounts, readHeat, readInstants, readArrows];

function readStates(reader: Reader, items: number, count: number): Items {
  const rows = reader.rows(items, 24);
  return {
    form: "states",
    bucket: rows.buckets(count),
    value: rows.u32s(4),
    second: rows.u32s(8),
    last: rows.u32s(12),
    begins: rows.u32s(16),
    share: rows.u16s(20),
    shareSecond: rows.u16s(22),
  };
}

function readRuns(reader: Reader, items: number): Items {
  const rows = reader.rows(items, 24);
  return { form: "runs", begin: rows.times(0), end: rows.ends(8, 0), value: rows.u32s(16), flags: rows.u32s(20) };
}

function readCounts(reader: Reader, items: number, count: number): Items {
  const rows = reader.rows(items, 16);
  return { form: "counts", bucket: rows.buckets(count), value: rows.u32s(4), count: rows.u32s(8), countOfValue: rows.u32s(12) };
}

function readCounter(reader: Reader, items: number, count: number): Items {
  const rows = reader.rows(items, 40);
  return {
    form: "counter",
    bucket: rows.buckets(count),
    changes: rows.u32s(4),
    min: rows.f64s(8),
    max: rows.f64s(16),
    last: rows.f64s(24),
    mean: rows.f64s(32),
  };
}

function readArrowCounts(reader: Reader, items: number, count: number): Items {
  const rows = reader.rows(items, 24);
  return {
    form: "arrow counts",
    bucket: rows.buckets(count),
    from: rows.u32s(4),
    to: rows.u32s(8),
    count: rows.u32s(12),
    longestNs: rows.f64s(16),
  };
}

function readHeat(reader: Reader, items: number, count: number): Items {
  const rows = reader.rows(items, 12);
  return { form: "heat", bucket: rows.buckets(count), bin: rows.u32s(4), count: rows.u32s(8) };
}

function readInstants(reader: Reader, items: number): Items {
  const rows = reader.rows(items, 16);
  return { form: "instants", time: rows.times(0), value: rows.u32s(8), flags: rows.u32s(12) };
}

function readArrows(reader: Reader, items: number): Items {
  const rows = reader.rows(items, 32);
  return {
    form: "arrows",
    begin: rows.times(0),
    end: rows.ends(8, 0),
    from: rows.u32s(16),
    to: rows.u32s(20),
    value: rows.u32s(24),
    flags: rows.u32s(28),
  };
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

  u32s(offset: number): Uint32Array {
    const column = new Uint32Array(this.count);
    for (let index = 0, at = this.begin + offset; index < this.count; index++, at += this.size) {
      column[index] = this.view.getUint32(at, true);
    }
    return column;
  }

  u16s(offset: number): Uint16Array {
    const column = new Uint16Array(this.count);
    for (let index = 0, at = this.begin + offset; index < this.count; index++, at += this.size) {
      column[index] = this.view.getUint16(at, true);
    }
    return column;
  }

  f64s(offset: number): Float64Array {
    const column = new Float64Array(this.count);
    for (let index = 0, at = this.begin + offset; index < this.count; index++, at += this.size) {
      column[index] = this.view.getFloat64(at, true);
    }
    return column;
  }

  /** The first column of what is counted by bucket: none beyond `count`, none before the one before it. */
  buckets(count: number): Uint32Array {
    const column = this.u32s(0);
    this.check(column, (found, before) => found < count && found >= before, `a bucket of ${count}, not before the one of the item before`);
    return column;
  }

  /** A column of times, in their order. */
  times(offset: number): Float64Array {
    const column = this.f64s(offset);
    this.check(column, (found, before) => found >= before, "a time, not before the one of the item before", -Infinity);
    return column;
  }

  /** A column of times that are not before those of another one. */
  ends(offset: number, begins: number): Float64Array {
    const [column, begin] = [this.f64s(offset), this.f64s(begins)];
    this.check(column, (found, _, index) => found >= (begin[index] ?? 0), "an end that is not before the begin");
    return column;
  }

  private check(
    column: Uint32Array | Float64Array,
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
