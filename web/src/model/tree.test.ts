import { expect, test } from "vitest";
import { TILE_BUCKETS, level, tileIndex, trackNumber, valueNumber } from "../units/tiles.ts";
import { TileCache } from "./cache.ts";
import type { Catalogue, Track } from "./catalogue.ts";
import { activityOf } from "./idle.ts";
import { PLAIN_LAYOUT, allShown, encodeLayouts, movedBy, movedTo, readLayouts, shownTest, sizeOf, withShown, withSize, withTrackSize, type Layout } from "./layout.ts";
import { rowsOf } from "./rows.ts";
import { NONE, type Items, type Quality } from "./tile.ts";
import { between, placesOf, tracksOf, treeOf, type TreeLine } from "./tree.ts";
import { counts, instants, runs, states } from "../testing/tiles.ts";
import { trackLike } from "../testing/tracks.ts";

const trackOf = (number: number, id: string, group: string, more: Partial<Track> = {}): Track => trackLike(number, { id, name: id, group, ...more });
const THREADS = Array.from({ length: 10 }, (_, index) => trackOf(10 + index, `thread/0/${index}/state`, "Threads", { tid: 400 + index, process: "400", name: `worker (${400 + index})` }));
const TRACKS = [trackOf(0, "cpu/0/0/thread", "CPUs", { name: "CPU 0" }), trackOf(1, "cpu/0/0/irq", "CPUs", { parent: trackNumber(0), name: "interrupts" }), ...THREADS];
const CATALOGUE: Catalogue = { tracks: TRACKS, values: [] };

const linesOf = (layout: Partial<Layout>, query = ""): TreeLine[] => treeOf(CATALOGUE, { ...PLAIN_LAYOUT, ...layout }, { query, leave: null });
const keysOf = (lines: readonly TreeLine[]): string[] => lines.map((line) => line.key);

test("the tree has groups with their tracks, and what is pinned above them", () => {
  const lines = linesOf({ pinned: ["thread/0/3/state", "gone"], folded: ["Threads"], hidden: ["cpu/0/0/irq"] });
  expect(keysOf(lines)).toEqual(["group Pinned", "pinned thread/0/3/state", "group CPUs", "track cpu/0/0/thread", "track cpu/0/0/irq", "group Threads"]);
  expect(lines.map((line) => (line.kind === "group" ? line.share : line.isShown))).toEqual(["all", true, "some", true, false, "all"]);
});

test("what is searched is found by name, process and thread, also in folded groups", () => {
  expect(keysOf(linesOf({ folded: ["Threads"] }, "403"))).toEqual(["group Threads", "track thread/0/3/state"]);
  expect(linesOf({}, "400").length).toBe(11);
  expect(keysOf(linesOf({}, "cpu irq"))).toEqual(["group CPUs", "track cpu/0/0/irq"]);
  expect(keysOf(linesOf({}, "wrkr")).length).toBe(11);
  expect(linesOf({}, "zebra")).toEqual([]);
});

test("lines say which one of how many they are, at their place in the tree", () => {
  const placed = (lines: readonly TreeLine[]): string[] => placesOf(lines).map(({ position, size }) => `${position}/${size}`);
  const lines = linesOf({ pinned: ["thread/0/3/state"], folded: ["Threads"] });
  expect(keysOf(lines)).toEqual(["group Pinned", "pinned thread/0/3/state", "group CPUs", "track cpu/0/0/thread", "track cpu/0/0/irq", "group Threads"]);
  expect(placed(lines)).toEqual(["1/3", "1/1", "2/3", "1/1", "1/1", "3/3"]);
  expect(placed(linesOf({})).slice(3)).toEqual(["2/2", ...Array.from({ length: 10 }, (_, index) => `${index + 1}/10`)]);
  // A part whose track is not among what was found.
  expect(placed(linesOf({}, "irq"))).toEqual(["1/1", "1/1"]);
  expect(placesOf([])).toEqual([]);
});

test("what is marked reaches from one line to another, and a group stands for its tracks", () => {
  const lines = linesOf({});
  expect(keysOf(between(lines, "track cpu/0/0/irq", "group CPUs"))).toEqual(["group CPUs", "track cpu/0/0/thread", "track cpu/0/0/irq"]);
  expect(tracksOf(between(lines, "group CPUs", "track cpu/0/0/irq")).length).toBe(2);
  expect(between(lines, "gone", "group CPUs")).toEqual([]);
});

const shownIds = (layout: Layout): string[] => TRACKS.filter(shownTest(layout)).map((track) => track.id);

test("a group that is hidden is a name, however many tracks it has", () => {
  const closed = withShown(PLAIN_LAYOUT, THREADS, false, TRACKS);
  expect(closed).toEqual({ ...PLAIN_LAYOUT, closed: ["Threads"] });
  const one = withShown(closed, THREADS.slice(2, 3), true, TRACKS);
  expect(one).toEqual({ ...PLAIN_LAYOUT, closed: ["Threads"], shown: ["thread/0/2/state"] });
  expect(shownIds(one)).toEqual(["cpu/0/0/thread", "cpu/0/0/irq", "thread/0/2/state"]);
  expect(withShown(one, THREADS.slice(2, 3), false, TRACKS)).toEqual(closed);
  expect(withShown(one, THREADS, true, TRACKS)).toEqual(PLAIN_LAYOUT);
  expect(allShown({ ...one, hidden: ["x"], active: true })).toEqual(PLAIN_LAYOUT);
});

test("a small group is named track by track", () => {
  expect(withShown(PLAIN_LAYOUT, TRACKS.slice(0, 2), false, TRACKS).hidden).toEqual(["cpu/0/0/thread", "cpu/0/0/irq"]);
});

test("groups and pinned tracks stand where they were put", () => {
  expect(movedTo(["a", "b", "c"], "a", "c")).toEqual(["b", "c", "a"]);
  expect(movedTo(["a", "b", "c"], "c", "a")).toEqual(["c", "a", "b"]);
  expect(movedBy(["a", "b", "c"], "a", 1)).toEqual(["b", "a", "c"]);
  expect(movedBy(["a", "b", "c"], "a", -1)).toEqual(["a", "b", "c"]);
  expect(movedBy(["a", "b"], "gone", 1)).toEqual(["a", "b"]);
  const rows = rowsOf(CATALOGUE, { ...PLAIN_LAYOUT, groups: ["Threads"] });
  expect(rows.filter((row) => row.track === null).map((row) => row.group)).toEqual(["Threads", "CPUs"]);
});

test("rows have three heights, each for itself or all together", () => {
  const [cpu, irq] = TRACKS;
  if (cpu === undefined || irq === undefined) {
    throw new Error("there are two");
  }
  const large = withTrackSize(PLAIN_LAYOUT, [cpu.id], "large");
  const heights = (layout: Layout): number[] => rowsOf(CATALOGUE, layout).slice(1, 3).map((row) => row.height);
  expect(heights(PLAIN_LAYOUT)).toEqual([20, 16]);
  expect(heights(large)).toEqual([40, 16]);
  expect(heights(withSize(large, -1))).toEqual([20, 10]);
  expect([sizeOf(withSize(large, 1))(cpu), sizeOf(withSize(large, 1))(irq)]).toEqual(["large", "large"]);
  expect(withSize(withSize(large, 1), 1)).toEqual(withSize(large, 1));
  expect(withTrackSize(large, [cpu.id], "plain")).toEqual(PLAIN_LAYOUT);
});

test("layouts are kept by their names", () => {
  const layouts = new Map([["mine", { ...PLAIN_LAYOUT, pinned: Array.from({ length: 1_000 }, (_, index) => `a&b/${index}`), active: true }]]);
  expect(readLayouts(encodeLayouts(layouts))).toEqual(layouts);
  expect([readLayouts(null).size, readLayouts("{").size, readLayouts('[["a"],3,["b","rows=small"]]').get("b")?.size]).toEqual([0, 0, "small"]);
});

const VALUES = ["blocked", "running on CPU 0"].map((label, number) => ({ number: valueNumber(number), label, kind: "doing", colour: 0 })).concat({ number: valueNumber(2), label: "poll", kind: "call", colour: 0 });
const [BLOCKED, RUNNING, POLL] = [0, 1, 2];
const END = TILE_BUCKETS * 2 ** 10;

test.each<[string, Items, readonly [number, number], boolean]>([
  ["a change before the window, to what waits", states([3, RUNNING, BLOCKED, BLOCKED, 1, 65_535, 0]), [10, 20], true],
  ["to what runs", states([3, BLOCKED, NONE, RUNNING, 1, 65_535, 0]), [10, 20], false],
  ["a change in its last bucket", states([19, BLOCKED, NONE, RUNNING, 1, 65_535, 0]), [10, 20], false],
  ["a change behind it", states([20, BLOCKED, NONE, RUNNING, 1, 65_535, 0]), [10, 20], true],
  ["a run that ends before it", runs([0, 10 * 1_024, RUNNING, 0]), [10, 20], true],
  ["a run that ends in it", runs([0, 10 * 1_024 + 1, RUNNING, 0]), [10, 20], false],
  ["events around it", instants([10 * 1_024 - 1, 0, 0], [20 * 1_024, 0, 0]), [10, 20], true],
  ["an event in it", instants([20 * 1_024 - 1, 0, 0]), [10, 20], false],
  ["counts around it", counts([9, 0, 1, 1], [20, 0, 1, 1]), [10, 20], true],
])("%s: only the window counts, not all of a tile", (_, items, [from, to], isIdle) => {
  const cache = new TileCache(1 << 20);
  const range = { level: level(10), first: tileIndex(3), count: 1 };
  cache.put({ level: level(10), index: tileIndex(3), track: trackNumber(7), carry: BLOCKED, items, spans: [{ begin: 0, end: TILE_BUCKETS, quality: "exact" }] }, 1, null);
  const window = { from: 3 * TILE_BUCKETS + from, to: 3 * TILE_BUCKETS + to };
  expect([...activityOf(cache, range, window, { tracks: [], values: VALUES }).idle]).toEqual(isIdle ? [7] : []);
});

test.each<[string, Items, number, Quality, boolean]>([
  ["nothing at all", states(), NONE, "exact", true],
  ["blocked all along", states(), BLOCKED, "exact", true],
  ["running all along", states(), RUNNING, "exact", false],
  ["in a call all along", runs([-5, END, POLL, 0]), NONE, "exact", true],
  ["a call that ends", runs([-5, 100, POLL, 0]), NONE, "exact", false],
  ["something that changes", states([3, BLOCKED, NONE, RUNNING, 1, 65_535, 0]), BLOCKED, "exact", false],
  ["not read yet", states(), BLOCKED, "building", false],
  ["no event", counts(), NONE, "exact", true],
  ["an event", instants([5, 0, 0]), NONE, "exact", false],
])("%s: whether a track is idle", (_, items, carry, quality, isIdle) => {
  const cache = new TileCache(1 << 20);
  const range = { level: level(10), first: tileIndex(3), count: 1 };
  cache.put({ level: level(10), index: tileIndex(3), track: trackNumber(7), carry, items, spans: [{ begin: 0, end: TILE_BUCKETS, quality }] }, 1, null);
  const window = { from: 3 * TILE_BUCKETS, to: 4 * TILE_BUCKETS };
  const values = { tracks: [], values: VALUES };
  expect([...activityOf(cache, range, window, values).idle]).toEqual(isIdle ? [7] : []);
  // Of a wider window too little is known.
  expect(activityOf(cache, { ...range, count: 2 }, window, values).idle.size).toBe(0);
});

test("an empty coarser tile says that nothing happens in a part of it; a busy one says nothing of its parts", () => {
  const cache = new TileCache(1 << 20);
  const range = { level: level(10), first: tileIndex(12), count: 2 };
  const put = (of: number, index: number, track: number, items: Items): void =>
    cache.put({ level: level(of), index: tileIndex(index), track: trackNumber(track), carry: NONE, items, spans: [{ begin: 0, end: TILE_BUCKETS, quality: "exact" }] }, 1, null);
  put(12, 3, 1, counts([5, 0, 1, 1]));
  put(12, 3, 2, counts([100, 0, 1, 1]));
  put(11, 6, 3, counts());
  // Only half of the window lies in these.
  put(11, 5, 4, counts());
  put(10, 12, 5, counts());
  const window = { from: 12 * TILE_BUCKETS + 100, to: 13 * TILE_BUCKETS + 200 };
  const { idle, busy } = activityOf(cache, range, window, { tracks: [], values: VALUES });
  expect([[...idle].sort(), [...busy]]).toEqual([[1, 3], []]);
});
