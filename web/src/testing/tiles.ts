// Writes answers of the server as bytes, for tests and the stand-in of a server: the other direction of `model/decode`, written for
// itself from the layout.

import type { Answer, Items, TrackItems } from "../model/tile.ts";
import { NONE, lengthOf } from "../model/tile.ts";

type Part = readonly ["u8" | "u16" | "u32" | "u64" | "f64", number | bigint];

const FORMS: readonly Items["form"][] = ["states", "runs", "counts", "counter", "arrow counts", "heat", "instants", "arrows"];
const QUALITIES = ["exact", "estimated", "building", "unknown"] as const;

/** The bytes of an answer. */
export function encodeAnswer(answer: Answer): ArrayBuffer {
  const parts: Part[] = [
    ...[..."KYT2"].map((letter): Part => ["u8", letter.charCodeAt(0)]),
    ["u32", answer.level],
    ["u64", answer.first],
    ["u32", answer.count],
    ["u32", answer.spans.length],
    ["u32", answer.tracks.length],
  ];
  for (const span of answer.spans) {
    parts.push(["u32", span.begin], ["u32", span.end], ["u32", QUALITIES.indexOf(span.quality)]);
  }
  for (const track of answer.tracks) {
    parts.push(...trackParts(track));
  }
  return bytesOf(parts);
}

function trackParts(track: TrackItems): Part[] {
  const count = lengthOf(track.items);
  const { items } = track;
  const held = items.form === "counter" && !Number.isNaN(items.held) ? items.held : null;
  const carry = held !== null ? 1 : track.carry === NONE ? 0 : track.carry + 1;
  const parts: Part[] = [["u32", track.track], ["u32", FORMS.indexOf(track.items.form)], ["u32", carry], ["u32", count]];
  if (held !== null) {
    parts.push(["f64", held]);
  }
  for (let index = 0; index < count; index++) {
    parts.push(...itemParts(track.items, index));
  }
  return parts;
}

function itemParts(items: Items, index: number): Part[] {
  const of = (column: ArrayLike<number>): number => column[index] ?? 0;
  switch (items.form) {
    case "states":
      return [
        ...u32s(of(items.bucket), of(items.value), of(items.second), of(items.last), of(items.begins), of(items.busiest)),
        ...[items.share, items.shareSecond, items.busy, []].map((column): Part => ["u16", of(column)]),
      ];
    case "runs":
      return [["f64", of(items.begin)], ["f64", of(items.end)], ...u32s(of(items.value), of(items.flags))];
    case "counts":
      return u32s(of(items.bucket), of(items.value), of(items.count), of(items.countOfValue));
    case "counter":
      return [
        ...u32s(of(items.bucket), of(items.changes)),
        ...[items.min, items.max, items.last, items.mean].map((column): Part => ["f64", of(column)]),
      ];
    case "arrow counts":
      return [...u32s(of(items.bucket), of(items.from), of(items.to), of(items.count)), ["f64", of(items.longestNs)]];
    case "heat":
      return u32s(of(items.bucket), of(items.bin), of(items.count));
    case "instants":
      return [["f64", of(items.time)], ...u32s(of(items.value), of(items.flags))];
    case "arrows":
      return [["f64", of(items.begin)], ["f64", of(items.end)], ...u32s(of(items.from), of(items.to), of(items.value), of(items.flags))];
  }
}

function u32s(...values: number[]): Part[] {
  return values.map((value): Part => ["u32", value]);
}

const SIZES = { u8: 1, u16: 2, u32: 4, u64: 8, f64: 8 } as const;

function bytesOf(parts: readonly Part[]): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(parts.reduce((sum, [kind]) => sum + SIZES[kind], 0)));
  let at = 0;
  for (const [kind, value] of parts) {
    if (kind === "u64") {
      view.setBigUint64(at, BigInt(value), true);
    } else if (kind === "f64") {
      view.setFloat64(at, Number(value), true);
    } else if (kind === "u8") {
      view.setUint8(at, Number(value));
    } else if (kind === "u16") {
      view.setUint16(at, Number(value), true);
    } else {
      view.setUint32(at, Number(value), true);
    }
    at += SIZES[kind];
  }
  return view.buffer;
}

/** Columns of states from rows of bucket, value, second, last, begins, share and share of the second; and of the busiest value, and all that is
 * busy, without which nothing is at rest. */
export function states(...rows: number[][]): Items {
  const column = (index: number): Uint32Array => Uint32Array.from(rows, (row) => row[index] ?? 0);
  return {
    form: "states",
    bucket: column(0),
    value: column(1),
    second: column(2),
    last: column(3),
    begins: column(4),
    share: Uint16Array.from(column(5)),
    shareSecond: Uint16Array.from(column(6)),
    busiest: Uint32Array.from(rows, (row) => row[7] ?? row[1] ?? NONE),
    busy: Uint16Array.from(rows, (row) => row[8] ?? Math.min(65_535, (row[5] ?? 0) + (row[6] ?? 0))),
  };
}

/** Columns of runs from rows of begin, end, value and flags. */
export function runs(...rows: number[][]): Items {
  return {
    form: "runs",
    begin: Float64Array.from(rows, (row) => row[0] ?? 0),
    end: Float64Array.from(rows, (row) => row[1] ?? 0),
    value: Uint32Array.from(rows, (row) => row[2] ?? 0),
    flags: Uint32Array.from(rows, (row) => row[3] ?? 0),
  };
}

/** Columns of counted instants from rows of bucket, value, count and count of the value. */
export function counts(...rows: number[][]): Items {
  const column = (index: number): Uint32Array => Uint32Array.from(rows, (row) => row[index] ?? 0);
  return { form: "counts", bucket: column(0), value: column(1), count: column(2), countOfValue: column(3) };
}

/** Columns of a counter from rows of bucket, changes, min, max, last and mean; nothing is before them. */
export function counter(...rows: number[][]): Items {
  return heldCounter(NaN, ...rows);
}

/** The same of a counter that is something before them. */
export function heldCounter(held: number, ...rows: number[][]): Items {
  const column = (index: number): Float64Array => Float64Array.from(rows, (row) => row[index] ?? 0);
  return {
    form: "counter",
    held,
    bucket: Uint32Array.from(column(0)),
    changes: Uint32Array.from(column(1)),
    min: column(2),
    max: column(3),
    last: column(4),
    mean: column(5),
  };
}

/** Columns of instants from rows of time, value and flags. */
export function instants(...rows: number[][]): Items {
  return {
    form: "instants",
    time: Float64Array.from(rows, (row) => row[0] ?? 0),
    value: Uint32Array.from(rows, (row) => row[1] ?? 0),
    flags: Uint32Array.from(rows, (row) => row[2] ?? 0),
  };
}

/** Columns of a heat map from rows of bucket, bin and count. */
export function heat(...rows: number[][]): Items {
  const column = (index: number): Uint32Array => Uint32Array.from(rows, (row) => row[index] ?? 0);
  return { form: "heat", bucket: column(0), bin: column(1), count: column(2) };
}

/** Columns of arrows from rows of begin, end, from, to, value and flags. */
export function arrows(...rows: number[][]): Items {
  const column = (index: number): Float64Array => Float64Array.from(rows, (row) => row[index] ?? 0);
  const numbers = (index: number): Uint32Array => Uint32Array.from(rows, (row) => row[index] ?? 0);
  return { form: "arrows", begin: column(0), end: column(1), from: numbers(2), to: numbers(3), value: numbers(4), flags: numbers(5) };
}

/** Columns of counted arrows from rows of bucket, from, to, count and the longest. */
export function arrowCounts(...rows: number[][]): Items {
  const column = (index: number): Uint32Array => Uint32Array.from(rows, (row) => row[index] ?? 0);
  return { form: "arrow counts", bucket: column(0), from: column(1), to: column(2), count: column(3), longestNs: Float64Array.from(rows, (row) => row[4] ?? NaN) };
}
