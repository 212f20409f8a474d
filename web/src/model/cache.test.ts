import { expect, test, vi } from "vitest";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { counts } from "../testing/tiles.ts";
import { TileCache } from "./cache.ts";
import { questions, type IsMissing } from "./questions.ts";
import { NONE, bytesOf, type Quality, type Tile } from "./tile.ts";

const TRACK = trackNumber(1);

function tileOf(of: number, index: number, quality: Quality = "exact", track = TRACK): Tile {
  return { level: level(of), index: tileIndex(index), track, carry: NONE, items: counts(), spans: [{ begin: 0, end: 256, quality }] };
}

function missingIn(cache: TileCache, version: number): IsMissing {
  return (of, index, track) => cache.isWanted(of, index, track, version);
}

function shown(cache: TileCache, of: number, first: number, count: number): Array<[number, number, number, number]> {
  const pieces = cache.pieces({ level: level(of), first: tileIndex(first), count }, TRACK);
  return pieces.map((piece) => [piece.tile.level, piece.tile.index, piece.begin, piece.end]);
}

test("the tiles that were not drawn for longest go first", () => {
  const size = bytesOf(tileOf(3, 0));
  const cache = new TileCache(3 * size);
  cache.put(tileOf(3, 0), 1, null);
  cache.put(tileOf(3, 1), 1, null);
  cache.put(tileOf(3, 2), 1, null);
  cache.pieces({ level: level(3), first: tileIndex(0), count: 1 }, TRACK);
  cache.put(tileOf(3, 3), 1, null);
  expect(cache.size).toBe(3 * size);
  expect([0, 1, 2, 3].map((index) => cache.isWanted(level(3), tileIndex(index), TRACK, 1))).toEqual([false, true, false, false]);
});

test("a tile that is larger than the cache is kept alone", () => {
  const cache = new TileCache(1);
  cache.put(tileOf(3, 0), 1, null);
  cache.put(tileOf(3, 1), 1, null);
  expect(cache.size).toBe(bytesOf(tileOf(3, 1)));
});

test("a tile that takes the place of another is not counted twice", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(3, 0, "building"), 1, null);
  cache.put(tileOf(3, 0), 2, null);
  expect(cache.size).toBe(bytesOf(tileOf(3, 0)));
  cache.clear();
  expect(cache.size).toBe(0);
});

test("what is exact is never asked for again, everything else when something has changed", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(3, 0), 1, "a");
  cache.put(tileOf(3, 1, "building"), 1, "b");
  const wanted = (version: number): boolean[] => [0, 1].map((index) => cache.isWanted(level(3), tileIndex(index), TRACK, version));
  expect(wanted(1)).toEqual([false, false]);
  expect(wanted(2)).toEqual([false, true]);
  cache.confirm(level(3), tileIndex(1), TRACK, 2);
  expect(wanted(2)).toEqual([false, false]);
  cache.confirm(level(3), tileIndex(1), TRACK, 1);
  expect(wanted(2)).toEqual([false, false]);
});

test("a tile whose end nothing is known of is not sealed", () => {
  const cache = new TileCache(1e6);
  cache.put({ ...tileOf(3, 0), spans: [{ begin: 0, end: 100, quality: "exact" }] }, 1, null);
  expect(cache.isWanted(level(3), tileIndex(0), TRACK, 2)).toBe(true);
});

test("where traces grow, only the tile in which they end is asked for again, at each version, and what it grew out of never", () => {
  const cache = new TileCache(1e6);
  const tracks = [TRACK, trackNumber(2)];
  const put = (index: number, exact: number, version: number): void => {
    const spans = [{ begin: 0, end: exact, quality: "exact" as const }, ...(exact < 256 ? [{ begin: exact, end: 256, quality: "unknown" as const }] : [])];
    tracks.forEach((track) => cache.put({ ...tileOf(3, index, "exact", track), spans }, version, `${version}`));
  };
  const asked = (version: number, end: number): Array<[number, number]> =>
    questions(cache, { level: level(3), first: tileIndex(0), count: end }, tracks, missingIn(cache, version)).map((question) => [question.first, question.count]);
  expect(asked(1, 3)).toEqual([[0, 3]]);
  [256, 256, 100].forEach((exact, index) => put(index, exact, 1));
  expect(asked(1, 3)).toEqual([]);
  for (let version = 2; version < 50; version++) {
    expect(asked(version, 3), `version ${version}`).toEqual([[2, 1]]);
    put(2, 100 + version, version);
  }
  // The end is in the next one: both are asked for, each with its tag, and then that one alone.
  expect(asked(50, 4).sort()).toEqual([[2, 1], [3, 1]]);
  put(2, 256, 50);
  put(3, 10, 50);
  expect(asked(51, 4)).toEqual([[3, 1]]);
  // Seen from afar, the whole is one tile, which ends with the traces, too; what is there of the levels below stays.
  expect(questions(cache, { level: level(9), first: tileIndex(0), count: 1 }, tracks, missingIn(cache, 51)).length).toBe(1);
  expect(shown(cache, 3, 0, 4).map(([of, index]) => [of, index])).toEqual([[3, 0], [3, 1], [3, 2], [3, 3]]);
});

test("a tile of which nothing was there is asked for again once something is", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(3, 7, "unknown"), 4, "a");
  expect([4, 5].map((version) => cache.isWanted(level(3), tileIndex(7), TRACK, version))).toEqual([false, true]);
});

test("meanwhile the part of a coarser tile is drawn", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(5, 1), 1, null);
  expect(shown(cache, 3, 4, 4)).toEqual([
    [5, 1, 0, 64],
    [5, 1, 64, 128],
    [5, 1, 128, 192],
    [5, 1, 192, 256],
  ]);
  expect(shown(cache, 3, 8, 1)).toEqual([]);
});

test("meanwhile finer tiles are drawn, rather than coarser ones if they are complete", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(9, 0), 1, null);
  cache.put(tileOf(3, 0), 1, null);
  cache.put(tileOf(2, 2), 1, null);
  expect(shown(cache, 4, 0, 1)).toEqual([[9, 0, 0, 8]]);
  cache.put(tileOf(2, 3), 1, null);
  expect(shown(cache, 4, 0, 1)).toEqual([
    [3, 0, 0, 256],
    [2, 2, 0, 256],
    [2, 3, 0, 256],
  ]);
});

test("a part of a tile far above is less than a bucket of it", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(20, 0), 1, null);
  expect(shown(cache, 10, 3, 1)).toEqual([[20, 0, 0.75, 1]]);
});

test("neighbouring tiles that lack the same tracks are one question, the middle comes first", () => {
  const cache = new TileCache(1e6);
  const tracks = [TRACK, trackNumber(2)];
  cache.put(tileOf(3, 2), 1, "a");
  cache.put(tileOf(3, 3), 1, "a");
  cache.put(tileOf(3, 3, "exact", trackNumber(2)), 1, "a");
  const asked = questions(cache, { level: level(3), first: tileIndex(0), count: 8 }, tracks, missingIn(cache, 1));
  expect(asked.map((question) => [question.first, question.count, question.tracks])).toEqual([
    [2, 1, [2]],
    [4, 4, [1, 2]],
    [0, 2, [1, 2]],
  ]);
});

test("a question is no larger than what a server takes", () => {
  const cache = new TileCache(1e6);
  const tracks = Array.from({ length: 300 }, (_, index) => trackNumber(index));
  const asked = questions(cache, { level: level(3), first: tileIndex(0), count: 20 }, tracks, missingIn(cache, 1));
  expect(asked.map((question) => [question.count, question.tracks.length]).sort()).toEqual([
    [16, 256],
    [16, 44],
    [4, 256],
    [4, 44],
  ]);
});

test("a question names its tag if all that it asks for has the same", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(3, 0, "building"), 1, "a");
  cache.put(tileOf(3, 1, "building"), 1, "a");
  cache.put(tileOf(3, 2, "building"), 1, "b");
  const asked = questions(cache, { level: level(3), first: tileIndex(0), count: 4 }, [TRACK], missingIn(cache, 2));
  expect(asked.map((question) => [question.first, question.count, question.etag]).sort()).toEqual([
    [0, 2, "a"],
    [2, 1, "b"],
    [3, 1, null],
  ]);
});

test("what stands in for a missing tile is looked for no higher than there are tiles", () => {
  const cache = new TileCache(1e6);
  cache.put(tileOf(3, 5), 1, null);
  const looks = vi.spyOn(Map.prototype, "get");
  cache.pieces({ level: level(0), first: tileIndex(0), count: 1 }, TRACK);
  const count = looks.mock.calls.length;
  looks.mockRestore();
  expect(count).toBe(4);
});

test("what a range does not tell yet is not read, but what is behind the end of the traces is nothing that could be", () => {
  const cache = new TileCache(1e6);
  const isUnread = (buckets: number): boolean => cache.isUnread({ level: level(3), first: tileIndex(1), count: 2 }, TRACK, buckets);
  expect(isUnread(1_000)).toBe(false);
  cache.put(tileOf(3, 1), 1, null);
  const spans = [{ begin: 0, end: 100, quality: "exact" as const }, { begin: 100, end: 256, quality: "unknown" as const }];
  cache.put({ ...tileOf(3, 2), spans }, 1, null);
  expect([isUnread(512 + 100), isUnread(512 + 101)]).toEqual([false, true]);
  cache.put(tileOf(3, 2), 2, null);
  expect(isUnread(1_000)).toBe(false);
});
