import { expect, test } from "vitest";
import { nanos } from "../units/time.ts";
import type { Track } from "./catalogue.ts";
import type { Clock } from "./clock.ts";
import { answerTo, type OmniWorld } from "./omnibox.ts";
import { readTime, type TimeContext } from "./times.ts";
import { trackLike } from "../testing/tracks.ts";

/** 2016-03-04T17:46:22.470818709Z. */
const BEGIN = 1_457_113_582_470_818_709n;
const extent = { begin: nanos(BEGIN), end: nanos(BEGIN + 7_200_000_000_000n) };
const clockOf = (zone: string): Clock => ({ origin: extent.begin, unix: true, zone, style: "relative" });
const context = (zone = "UTC", from = BEGIN): TimeContext => ({ clock: clockOf(zone), extent, from: nanos(from) });
const since = (text: string, of = context()): bigint | string => {
  const found = readTime(text, of);
  return "fault" in found ? found.fault : found.time - BEGIN;
};

test.each<[string, bigint]>([
  ["1.25s", 1_250_000_000n],
  ["1.25", 1_250_000_000n],
  [".5 ms", 500_000n],
  ["17 ns", 17n],
  ["2µs", 2_000n],
  ["1min", 60_000_000_000n],
  ["1 h 15 min 0.000\u202f000\u202f001 s", 4_500_000_000_001n],
  ["1h15min", 4_500_000_000_000n],
  ["1457113582.79", 319_181_291n],
  ["17:46:22.500000001", 29_181_292n],
  ["17:47", 37_529_181_291n],
  ["2016-03-04 17:46:23", 529_181_291n],
  ["2016-03-04T17:46:23.", 529_181_291n],
  ["2016-03-04T17:46:23Z", 529_181_291n],
  ["2016-03-04T12:46:23.000000000-05:00", 529_181_291n],
  ["2016-03-04 23:16:23 +0530", 529_181_291n],
])("%s is found", (text, expected) => {
  expect(since(text)).toBe(expected);
});

test("later and earlier count from where the window is", () => {
  const there = context("UTC", BEGIN + 10_000_000n);
  expect([since("+1.5ms", there), since("-200us", there), since("−200us", there), since("+ 3", there), since("+1min 2s", there)]).toEqual([
    11_500_000n,
    9_800_000n,
    9_800_000n,
    3_010_000_000n,
    62_010_000_000n,
  ]);
});

test("a time of the day is that of the zone that times are shown in", () => {
  expect(since("18:46:23", context("Europe/Berlin"))).toBe(529_181_291n);
  expect(since("23:16:23", context("Asia/Kolkata"))).toBe(529_181_291n);
  // Beyond midnight of that zone the day is another one.
  expect(since("2016-03-05 03:16:23", context("Asia/Tokyo"))).toBe(1_800_529_181_291n);
});

test.each<[string, RegExp]>([
  ["", /^a time is written as/],
  ["soon", /^found “soon”; a time is written as/],
  ["1 h 5 parsec", /^there is no unit “parsec”/],
  ["1 2s", /^found “1 2s”/],
  ["1.5ns", /^1\.5 ns is no whole number of nanoseconds/],
  ["25:00", /^there is no time of day 25:00/],
  ["2016-13-40 12:00", /^there is no day 2016-13-40/],
  ["3h", /^that is behind the end of the traces, which go from 0\.000 s to 2 h 0\.000 s/],
  ["-1s", /^that is before the begin/],
])("%j is refused", (text, expected) => {
  expect(since(text)).toMatch(expected);
});

test("clocks without days have no times of the day, and no seconds since 1970", () => {
  const of = { ...context(), clock: { ...clockOf("UTC"), unix: false } };
  expect(since("12:00", of)).toMatch(/knows no time of day/);
  expect(since("1457113582", of)).toMatch(/behind the end/);
});

const trackOf = (number: number, id: string, more: Partial<Track> = {}): Track => trackLike(number, { id, name: id, group: "Threads", ...more });
const WORLD: OmniWorld = {
  catalogue: {
    tracks: [
      trackOf(0, "cpu/0/0/thread", { name: "CPU 0", group: "CPUs", cpu: 0 }),
      trackOf(1, "thread/0/851/state", { name: "firefox (851)", tid: 851, process: "851" }),
      trackOf(2, "thread/0/860/state", { name: "Socket Thread (860)", tid: 860, process: "851" }),
      trackOf(3, "thread/0/77/state", { name: "kworker (77)", tid: 77, process: "77" }),
    ],
    values: [],
  },
  events: ["sched_switch", "sched_wakeup", "syscall_entry_socket"],
  notes: [{ id: "n", begin: nanos(BEGIN + 1_000_000_000n), end: null, text: "here it stalls\nas the disk is full", track: null, author: "Ada", colour: null, rest: [] }],
  commands: [
    { keys: "W  +", what: "zoom in at the pointer" },
    { keys: "Home", what: "all of the traces" },
  ],
  times: context(),
};
const found = (query: string): string[] => answerTo(query, WORLD).hits.map(({ what, label }) => `${what} ${label}`);

test("names are found of whatever kind, the nearest first", () => {
  expect(found("firefox")).toEqual(["process firefox (851)", "thread firefox (851)"]);
  expect(found("socket")).toEqual(["thread Socket Thread (860)", "event syscall_entry_socket"]);
  expect(found("sched_sw")).toEqual(["event sched_switch"]);
  expect(found("cpu 0")[0]).toBe("track CPU 0");
  expect(found("860")).toEqual(["thread Socket Thread (860)"]);
  expect(answerTo("zebra", WORLD)).toEqual({ hits: [], note: "No track, thread, process, event or note is called like that." });
});

test("a note is found by all that it says, and by who says it", () => {
  expect(found("disk full")).toEqual(["note here it stalls"]);
  const [hit] = answerTo("ada", WORLD).hits;
  expect(hit?.detail).toBe("1.000\u202f000\u202f000 s");
  expect(hit?.goal.kind === "note" && hit.goal.note.id).toBe("n");
});

test("a process leads to its first thread", () => {
  const goal = answerTo("firefox", WORLD).hits.find((hit) => hit.what === "process")?.goal;
  expect(goal?.kind === "track" && goal.track.id).toBe("thread/0/851/state");
});

test("commands stand behind >, times behind @, and ? says so", () => {
  expect(found("> zoom")).toEqual(["command zoom in at the pointer"]);
  expect(found(">").length).toBe(2);
  expect(found("@1.25s")).toEqual(["time 1.250\u202f000\u202f000 s"]);
  expect(answerTo("@", WORLD).note).toMatch(/^A time is written as/);
  expect(answerTo("@1s", { ...WORLD, times: null }).note).toMatch(/being opened/);
  expect([found("?"), found("")].map((lines) => lines.length)).toEqual([3, 3]);
});
