import { expect, test } from "vitest";
import type { Catalogue, Track } from "./catalogue.ts";
import { allBut, only } from "./choice.ts";
import { followingTracks, trackTest } from "./filter-tracks.ts";
import { PLAIN_FILTER, type Filter } from "./filter.ts";
import { ownersOf } from "./owners.ts";
import { PLAIN_LAYOUT, rowsOf } from "./rows.ts";
import { trackLike } from "../testing/tracks.ts";

const SOME: readonly Partial<Track>[] = [
  { id: "cpu0", name: "cpu0", cpu: 0 },
  { id: "cpu1", name: "cpu1", cpu: 1 },
  { id: "main", name: "main", tid: 5, process: "5" },
  { id: "worker", name: "worker", tid: 6, process: "5" },
  { id: "worker events", name: "worker events", tid: 6, kind: "instants" },
  { id: "stranger", name: "stranger", tid: 7 },
  { id: "elsewhere", name: "elsewhere", tid: 6, process: "9", host: "b" },
  { id: "latencies", name: "latencies", kind: "heat" },
];
const TRACKS = SOME.map((more, number) => trackLike(number, more));
const CATALOGUE: Catalogue = { tracks: TRACKS, values: [] };

function meant(change: Partial<Filter>): string[] {
  const isMeant = trackTest({ ...PLAIN_FILTER, ...change }, TRACKS);
  return TRACKS.filter((track) => isMeant === null || isMeant(track)).map((track) => track.id);
}

test("tracks are asked for what they say of themselves", () => {
  expect(meant({ cpus: only([1]) })).toEqual(["cpu1", "main", "worker", "worker events", "stranger", "elsewhere", "latencies"]);
  expect(meant({ threads: only([6]) })).toEqual(["cpu0", "cpu1", "worker", "worker events", "elsewhere", "latencies"]);
  expect(meant({ threads: allBut([6]) })).toEqual(["cpu0", "cpu1", "main", "stranger", "latencies"]);
});

test("a thread is of the process that any of its tracks names, on its machine", () => {
  expect(meant({ processes: only(["5"]) })).toEqual(["cpu0", "cpu1", "main", "worker", "worker events", "latencies"]);
  expect(meant({ processes: allBut(["5"]) })).toEqual(["cpu0", "cpu1", "stranger", "elsewhere", "latencies"]);
});

test("a choice of applications is one of all their threads", () => {
  const tracks = TRACKS.map((track) => (track.id === "main" ? { ...track, name: "app (5)" } : track.id === "stranger" ? { ...track, name: "cc (7)" } : track));
  const ids = (change: Partial<Filter>): string[] => {
    const isMeant = trackTest({ ...PLAIN_FILTER, owners: ownersOf(tracks, null), ...change }, tracks);
    return tracks.filter((track) => isMeant === null || isMeant(track)).map((track) => track.id);
  };
  expect(ids({ applications: only(["app"]) })).toEqual(["cpu0", "cpu1", "main", "worker", "worker events", "latencies"]);
  expect(ids({ applications: allBut(["app"]) })).toEqual(["cpu0", "cpu1", "stranger", "elsewhere", "latencies"]);
  expect(ids({ applications: only(["app", "cc"]), threads: allBut([6]) })).toEqual(["cpu0", "cpu1", "main", "stranger", "latencies"]);
  expect(ids({ applications: only(["gone"]) })).toEqual(["cpu0", "cpu1", "latencies"]);
  expect(ids({ applications: only(["app"]), owners: null }).length).toBe(tracks.length);
});

test("expressions and events say nothing of tracks", () => {
  expect(trackTest({ ...PLAIN_FILTER, text: "x", events: only(["a"]) }, TRACKS)).toBeNull();
});

test("a choice of events is followed by what tells of events, and not by what lasts", () => {
  const kinds = ["states", "instants", "heat", "arrows", "counter"] as const;
  expect([...followingTracks(kinds.map((kind, number) => trackLike(number, { id: kind, name: kind, kind })))]).toEqual([1, 2, 3]);
});

test("rows of other tracks are paler, or not there", () => {
  const filter: Filter = { ...PLAIN_FILTER, cpus: only([1]) };
  const dimmed = rowsOf(CATALOGUE, { ...PLAIN_LAYOUT, pinned: ["cpu0"] }, filter).filter((row) => row.dimmed);
  expect(dimmed.map((row) => row.key)).toEqual(["pinned cpu0", "track cpu0"]);
  const hidden = rowsOf(CATALOGUE, { ...PLAIN_LAYOUT, pinned: ["cpu0"] }, { ...filter, mode: "hide" });
  expect(hidden.map((row) => row.key).filter((key) => key.includes("cpu"))).toEqual(["track cpu1"]);
  expect(hidden.some((row) => row.dimmed)).toBe(false);
});

test("one of ten thousands of threads is found", () => {
  const tracks = Array.from({ length: 16_000 }, (_, number) => trackLike(number, { id: `thread/0/${number}/state`, name: `thread/0/${number}/state`, tid: number, group: "Threads" }));
  const rows = rowsOf({ tracks, values: [] }, PLAIN_LAYOUT, { ...PLAIN_FILTER, threads: only([7]), mode: "hide" });
  expect(rows.map((row) => row.key)).toEqual(["group Threads", "track thread/0/7/state"]);
});
