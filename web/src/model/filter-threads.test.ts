import { expect, test } from "vitest";
import { allBut, only } from "./choice.ts";
import type { Track } from "./catalogue.ts";
import { halfFollowed, threadsMeant, unfollowed } from "./filter-threads.ts";
import { PLAIN_FILTER, type FieldNames, type Filter } from "./filter.ts";
import { questionText } from "./events.ts";
import { trackLike } from "../testing/tracks.ts";

/** The events of a kernel that recorded no contexts. */
const NONE: FieldNames = { cpu: [{ name: "$ctx.cpu_id", isEverywhere: true }], thread: [], process: [], processName: [] };
const CPU = trackLike(0, { id: "cpu/0/0/thread", group: "CPUs", cpu: 0 });
const thread = (number: number, tid: number, process: string | null, more: Partial<Track> = {}): Track => trackLike(number, { id: `thread/0/${tid}/state`, tid, process, ...more });
const TRACKS = [CPU, thread(1, 7, "7"), thread(2, 8, "7"), thread(3, 9, "9"), thread(4, 10, null), thread(5, 8, null, { id: "thread/0/8/calls", parent: thread(2, 8, "7").number })];

const meant = (change: Partial<Filter>, tracks: readonly Track[] = TRACKS): string | null => threadsMeant({ ...PLAIN_FILTER, names: NONE, ...change }, tracks)?.ranges ?? null;

test("where events name no thread, a filter means those that its processes and threads have", () => {
  expect(meant({ processes: only(["7"]) })).toBe("7-8");
  expect(meant({ processes: allBut(["7"]) })).toBe("9-10");
  expect(meant({ threads: only([9]), cpus: only([0]) })).toBe("9");
  expect(meant({ processes: only(["7"]), threads: allBut([7]) })).toBe("8");
  expect(meant({ threads: only([7, 8, 10]) })).toBe("7-8,10");
  // A process without a thread means no event, not all of them.
  expect(meant({ processes: only(["12"]) })).toBe("999999999");
});

test("no thread is asked for where fields say it, where CPUs tell nothing of threads, and where there are too many", () => {
  expect(meant({ cpus: only([0]), text: "prio > 1" })).toBeNull();
  expect(meant({ names: { ...NONE, thread: [{ name: "$ctx.tid", isEverywhere: true }] }, threads: only([7]) })).toBeNull();
  expect(meant({ processes: only(["7"]) }, TRACKS.slice(1))).toBeNull();
  const many = [CPU, ...Array.from({ length: 4_000 }, (_, index) => thread(index + 1, 2 * index + 1, index % 3 === 0 ? "1" : "2"))];
  expect([meant({ processes: only(["1"]) }, many), meant({ threads: only([5, 6]) }, many)]).toEqual([null, "5"]);
  // Threads of one process in a row are one range, however many there are.
  const inRow = [CPU, thread(0, 3, "2"), ...Array.from({ length: 4_000 }, (_, index) => thread(index + 1, 2 * index + 10, "1"))];
  expect([meant({ processes: only(["1"]) }, inRow), meant({ processes: allBut(["1"]) }, inRow)]).toEqual(["10-8008", "3"]);
});

test("threads of long numbers are asked for as long as they fit into a URL", () => {
  // Seven digits and a comma, which is three characters in a URL: 800 of these are 8,000 characters.
  const apart = (count: number): readonly Track[] => [CPU, ...Array.from({ length: 2 * count }, (_, index) => thread(index, 4_000_000 + index, index % 2 === 0 ? "1" : "2"))];
  expect([meant({ processes: only(["1"]) }, apart(800))?.split(",").length, meant({ processes: only(["1"]) }, apart(801))]).toEqual([800, null]);
  expect(questionText({ filter: null, names: [], threads: meant({ processes: only(["1"]) }, apart(800)) ?? "" }).length).toBeLessThan(8_192);
});

test("numbers below 0 are of no thread", () => {
  const odd = [...TRACKS, thread(6, -5, "7"), thread(7, -1, "3")];
  expect([meant({ processes: only(["7"]) }, odd), meant({ processes: allBut(["9"]) }, odd), meant({ threads: only([-1]) }, odd)]).toEqual(["7-8", "7-8,10", "999999999"]);
});

test("facets that lists follow by the threads that CPUs ran are not said to be missing", () => {
  const filter: Filter = { ...PLAIN_FILTER, names: { ...NONE, cpu: [] }, cpus: only([0]), processes: only(["7"]) };
  expect([unfollowed(filter, TRACKS), unfollowed(filter, TRACKS.slice(1))]).toEqual([["cpus"], ["cpus", "processes"]]);
  // Tiles do not follow them.
  expect([halfFollowed(filter, TRACKS), halfFollowed(filter, TRACKS.slice(1)), halfFollowed({ ...filter, processes: null }, TRACKS)]).toEqual([["processes"], [], []]);
  expect(questionText({ filter: "prio > 1", names: ["a"], threads: "7-8,10" })).toBe("event=a&filter=prio+%3E+1&threads=7-8%2C10");
});
