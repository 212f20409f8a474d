import { expect, test } from "vitest";
import { trackNumber } from "../units/tiles.ts";
import type { Track } from "./catalogue.ts";
import type { Whose } from "./counts.ts";
import { ownersOf } from "./owners.ts";

const NOBODY: Whose = { byCpu: new Map(), byThread: new Map(), byProcess: new Map(), byApplication: new Map(), idle: 0n, unknown: 0n, omitted: 0 };

function tracksOf(...all: readonly Partial<Track>[]): readonly Track[] {
  const plain: Omit<Track, "number" | "id"> = { kind: "states", name: "", group: "Threads", host: null, cpu: null, tid: null, process: null, depth: null, parent: null };
  return all.map((more, number) => ({ ...plain, number: trackNumber(number), id: `t${number}`, ...more }));
}

const applications = (tracks: readonly Track[], whose: Whose | null = null): (string | null)[] => tracks.map(ownersOf(tracks, whose).applicationOf);

test("threads are of the application that their process is called", () => {
  const tracks = tracksOf(
    { tid: 6, name: "worker (6)", process: "5" },
    { tid: 5, name: "app (5)", process: "5" },
    { tid: 6, name: "events", kind: "instants", parent: trackNumber(0) },
    { name: "queue", kind: "counter", process: "5" },
    { cpu: 0, name: "CPU 0" },
  );
  expect(applications(tracks)).toEqual(["app", "app", "app", "app", null]);
  expect([...ownersOf(tracks, null).members]).toEqual([["app", { threads: [6, 5], processes: ["5"] }]]);
});

test("where nobody knows what a process is called, its lowest thread that has a name says it", () => {
  expect(applications(tracksOf({ tid: 9, name: "nine (9)", process: "5" }, { tid: 8, name: "eight (8)", process: "5" }, { tid: 7, name: "thread 7", process: "5" }))).toEqual(["eight", "eight", "eight"]);
});

test("a thread of no known process is one by itself; one without any name is of none", () => {
  expect(applications(tracksOf({ tid: 9, name: "cc (9)" }, { tid: 8, name: "thread 8" }, { tid: 7, name: "thread 7", process: "3" }))).toEqual(["cc", null, null]);
});

test("threads of the kernel are of one application as far as their names agree", () => {
  const tracks = tracksOf({ tid: 4, name: "kworker/0:1 (4)", process: "4" }, { tid: 5, name: "kworker/1:0H (5)" }, { tid: 6, name: "/bin/x (6)", process: "6" });
  expect(applications(tracks)).toEqual(["kworker", "kworker", "/bin/x"]);
});

test("what tracks do not say, counts may", () => {
  const tracks = tracksOf({ tid: 11, name: "events", kind: "instants" }, { tid: 12, name: "twelve (12)" });
  const whose = { ...NOBODY, byThread: new Map([[11, { count: 1n, name: "eleven", pid: 10 }], [10, { count: 1n, name: "server", pid: 10 }], [12, { count: 1n, name: "other", pid: null }]]) };
  expect(applications(tracks)).toEqual([null, "twelve"]);
  expect(applications(tracks, whose)).toEqual(["server", "twelve"]);
  expect(ownersOf(tracks, whose).members.get("server")).toEqual({ threads: [11, 10], processes: ["10"] });
});

test("counts name a process whose first thread has no track", () => {
  const tracks = tracksOf({ tid: 1367, name: "threaded-ml (1367)", process: "1365" }, { tid: 1369, name: "vlc (1369)", process: "1365" }, { tid: 5, name: "app (5)", process: "5" });
  const whose = { ...NOBODY, byProcess: new Map([["1365", { count: 726n, name: "vlc" }], ["5", { count: 1n, name: "app" }]]) };
  expect([applications(tracks), ownersOf(tracks, null).isGuess]).toEqual([["threaded-ml", "threaded-ml", "app"], true]);
  expect([applications(tracks, whose), ownersOf(tracks, whose).isGuess]).toEqual([["vlc", "vlc", "app"], false]);
  expect(ownersOf(tracks, whose).members.get("vlc")).toEqual({ threads: [1367, 1369], processes: ["1365"] });
  // Applications are listed as the counts call them, also after a change of a name.
  expect(applications(tracks, { ...NOBODY, byProcess: new Map([["5", { count: 1n, name: "sh" }]]) })[2]).toBe("sh");
  expect(ownersOf(tracks.slice(2), null).isGuess).toBe(false);
});

test("numbers are those of one machine", () => {
  const tracks = tracksOf({ tid: 5, name: "here (5)", process: "5", host: "a" }, { tid: 6, name: "x (6)", process: "5", host: "b" });
  expect(applications(tracks)).toEqual(["here", "x"]);
});

test("what is known is kept until something else is", () => {
  const tracks = tracksOf({ tid: 5, name: "app (5)" });
  const owners = ownersOf(tracks, null);
  expect(ownersOf(tracks, null)).toBe(owners);
  expect(ownersOf(tracks, NOBODY)).not.toBe(owners);
});
