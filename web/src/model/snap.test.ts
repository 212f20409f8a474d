import { expect, test } from "vitest";
import { counts, instants, runs, states } from "../testing/tiles.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { nanos, type Nanos } from "../units/time.ts";
import type { Piece } from "./cache.ts";
import { restOf, snapAt, snapFrom } from "./snap.ts";
import { BEGIN_UNKNOWN, END_UNKNOWN, NONE, type Items } from "./tile.ts";

const ORIGIN = nanos(1_000);
/** The second tile of a level with buckets of 4 ns: from 2,024 on. */
const piece = (items: Items, begin = 0, end = 256): Piece => ({ tile: { level: level(2), index: tileIndex(1), track: trackNumber(0), carry: NONE, items, spans: [] }, begin, end, standIn: false });
const at = (pieces: readonly Piece[], time: number, reach = 5, others: readonly Nanos[] = []): number | null => {
  const found = snapAt(pieces, ORIGIN, nanos(time), nanos(reach), others);
  return found === null ? null : Number(found.time);
};

test("a time snaps to the nearest begin or end of a bar, or event, that is near enough", () => {
  const bars = [piece(runs([10, 30, 1, 0], [30, 52, 2, 0]))];
  expect([2_024, 2_030, 2_033, 2_039, 2_047, 2_053, 2_075, 2_082].map((time) => at(bars, time))).toEqual([null, 2_034, 2_034, 2_034, null, 2_054, 2_076, null]);
  expect(at([piece(instants([7, 1, 0]))], 2_029)).toBe(2_031);
  // Other times, as of the picked item, snap as well.
  expect([at([], 2_000, 5, [nanos(2_004)]), at(bars, 2_033, 5, [nanos(2_031)])]).toEqual([2_004, 2_034]);
});

test("ends that nobody knows are no edges, and a tile that stands in counts for its part alone", () => {
  expect(at([piece(runs([10, 30, 1, BEGIN_UNKNOWN]))], 2_034)).toBe(null);
  expect(at([piece(runs([10, 30, 1, END_UNKNOWN]))], 2_054)).toBe(null);
  expect([at([piece(runs([10, 30, 1, 0]), 4, 256)], 2_034), at([piece(runs([10, 30, 1, 0]), 4, 256)], 2_054)]).toEqual([null, 2_054]);
});

test("where tiles sum up, a bucket in which something changes is an edge that is not exact", () => {
  const found = snapAt([piece(states([5, 1, NONE, 2, 1, 65_535, 0]))], ORIGIN, nanos(2_043), nanos(3));
  expect(found).toEqual({ time: 2_044n, isExact: false, until: 2_048n });
  expect(at([piece(counts([5, 1, 3, 3]))], 2_045)).toBe(2_044);
});

test("edges follow each other", () => {
  const bars = [piece(runs([10, 30, 1, 0], [30, 52, 2, 0]))];
  expect(snapFrom(bars, ORIGIN, nanos(2_034), 1)?.time).toBe(2_054n);
  expect(snapFrom(bars, ORIGIN, nanos(2_054), -1)?.time).toBe(2_034n);
  expect([snapFrom(bars, ORIGIN, nanos(2_076), 1), snapFrom(bars, ORIGIN, nanos(2_034), -1)]).toEqual([null, null]);
});

test("a bucket with edges has a part before a time in it, and one behind that", () => {
  const summed = [piece(states([2, 1, NONE, 2, 1, 65_535, 0], [5, 1, NONE, 2, 1, 65_535, 0], [7, 2, NONE, 1, 1, 65_535, 0]))];
  const rest = (time: number, by: 1 | -1): readonly bigint[] | null => {
    const found = restOf(summed, ORIGIN, nanos(time), by);
    return found === null ? null : [found.begin, found.end];
  };
  expect([rest(2_046, -1), rest(2_046, 1)]).toEqual([[2_044n, 2_046n], [2_047n, 2_048n]]);
  expect([rest(2_044, -1), rest(2_044, 1), rest(2_047, 1)]).toEqual([null, [2_045n, 2_048n], null]);
  expect([rest(2_043, -1), rest(2_048, -1), restOf([piece(runs([10, 30, 1, 0]))], ORIGIN, nanos(2_034), 1)]).toEqual([null, null, null]);
  // The bucket of a time is neither behind it nor before it.
  expect([snapFrom(summed, ORIGIN, nanos(2_046), -1)?.time, snapFrom(summed, ORIGIN, nanos(2_046), 1)?.time]).toEqual([2_032n, 2_052n]);
  expect([snapFrom(summed, ORIGIN, nanos(2_048), -1)?.time, snapFrom(summed, ORIGIN, nanos(2_044), -1)?.time]).toEqual([2_044n, 2_032n]);
});

test("among many edges nothing snaps: a time is as good as another one", () => {
  const many = [piece(instants(...Array.from({ length: 9 }, (_, index) => [index, 1, 0])))];
  expect([at(many, 2_028, 5), at(many, 2_028, 1)]).toEqual([null, 2_028]);
});
