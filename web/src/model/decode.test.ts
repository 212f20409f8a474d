import { expect, test } from "vitest";
import { level, trackNumber } from "../units/tiles.ts";
import { counter, counts, encodeAnswer, heldCounter, instants, runs, states } from "../testing/tiles.ts";
import { TileFault, decode } from "./decode.ts";
import { NONE, type Answer, type Items } from "./tile.ts";

const heat: Items = { form: "heat", bucket: Uint32Array.of(1, 1), bin: Uint32Array.of(0, 3), count: Uint32Array.of(5, 6) };
const arrowCounts: Items = {
  form: "arrow counts",
  bucket: Uint32Array.of(9),
  from: Uint32Array.of(1),
  to: Uint32Array.of(2),
  count: Uint32Array.of(3),
  longestNs: Float64Array.of(4.5),
};
const arrows: Items = {
  form: "arrows",
  begin: Float64Array.of(-7),
  end: Float64Array.of(8),
  from: Uint32Array.of(1),
  to: Uint32Array.of(2),
  value: Uint32Array.of(3),
  flags: Uint32Array.of(0),
};
const ITEMS: readonly Items[] = [
  states([3, 7, NONE, 8, 2, 40_000, 0], [250, 8, 7, NONE, 1, 65_535, 1]),
  runs([-1e6, 4_000, 7, 1], [4_000, 1e9, 8, 6]),
  counts([0, 3, 10, 9], [255, 4, 1, 1]),
  counter([2, 5, -1.5, 3.25, 1, 0.5]),
  heldCounter(-2.5, [2, 5, -1.5, 3.25, 1, 0.5]),
  heldCounter(0),
  arrowCounts,
  heat,
  instants([0, 1, 0], [77.5, 2, 4]),
  arrows,
];
const answer: Answer = {
  level: level(20),
  first: 1n << 40n,
  count: 256,
  spans: [
    { begin: 0, end: 100, quality: "exact" },
    { begin: 100, end: 200, quality: "estimated" },
    { begin: 200, end: 256, quality: "building" },
  ],
  tracks: ITEMS.map((items, index) => ({ track: trackNumber(10 + index), carry: index === 0 ? 7 : NONE, items })),
};

test("all forms come back as they were sent", () => {
  expect(decode(encodeAnswer(answer))).toEqual(answer);
});

test("a track in which nothing happens has no items", () => {
  const empty = { ...answer, tracks: [{ track: trackNumber(3), carry: 0, items: states() }] };
  expect(decode(encodeAnswer(empty))).toEqual(empty);
});

test("an answer that is cut anywhere is refused with where, and never read beyond", () => {
  const bytes = encodeAnswer(answer);
  for (let size = 0; size < bytes.byteLength; size++) {
    expect(() => decode(bytes.slice(0, size))).toThrow(TileFault);
  }
  expect(() => decode(bytes.slice(0, 30))).toThrow("at byte 28 of the tiles: the begin of a span: 4 bytes are needed, 2 are left");
});

test("whatever a byte is changed to, the answer is read or refused", () => {
  const bytes = encodeAnswer(answer);
  for (let at = 0; at < bytes.byteLength; at++) {
    for (const value of [0, 1, 0x7f, 0xff]) {
      const changed = bytes.slice(0);
      new Uint8Array(changed)[at] = value;
      try {
        expect(decode(changed).count).toBeGreaterThan(0);
      } catch (fault) {
        expect(fault).toBeInstanceOf(TileFault);
      }
    }
  }
});

test.each([
  ["another format", 0, 0x3154594b, 'at byte 0 of the tiles: found 0x3154594b, expected "KYT2"'],
  ["a level that there is not", 4, 63, "at byte 4 of the tiles: found level 0x0000003f, expected at most 62 and three zeros"],
  ["no buckets", 16, 0, "at byte 16 of the tiles: buckets: found 0, expected 1 to 4096"],
  ["more buckets than one may ask for", 16, 5_000, "at byte 16 of the tiles: buckets: found 5000, expected 1 to 4096"],
  ["spans that overlap", 40, 99, "at byte 40 of the tiles: the begin of a span: found 99, expected 100 to 256"],
  ["a quality that there is not", 36, 4, "at byte 36 of the tiles: found a quality that is none of 0 to 3"],
  ["a form that there is not", 68, 8, "at byte 68 of the tiles: track 10 has form 8, expected 0 to 7"],
  ["more items than bytes", 76, 1_000, "at byte 80 of the tiles: 1000 items of 32 bytes: 32000 bytes are needed, 496 are left"],
  ["a bucket behind the last", 80, 256, "at byte 80 of the tiles: item 0 has 256, expected a bucket of 256, not before the one of the item before"],
  ["buckets out of order", 80, 251, "at byte 112 of the tiles: item 1 has 250, expected a bucket of 256, not before the one of the item before"],
])("%s is refused", (_, at, value, message) => {
  const bytes = encodeAnswer(answer);
  new DataView(bytes).setUint32(at, value, true);
  expect(() => decode(bytes)).toThrow(message);
});

test("runs that end before they begin are refused", () => {
  const wrong = { ...answer, tracks: [{ track: trackNumber(1), carry: NONE, items: runs([5, 4, 0, 0]) }] };
  expect(() => decode(encodeAnswer(wrong))).toThrow("item 0 has 4, expected an end that is not before the begin");
});

test("what follows behind the last track is refused", () => {
  const bytes = encodeAnswer(answer);
  const longer = new Uint8Array(bytes.byteLength + 4);
  longer.set(new Uint8Array(bytes));
  expect(() => decode(longer.buffer)).toThrow("4 bytes follow behind the last track");
});
