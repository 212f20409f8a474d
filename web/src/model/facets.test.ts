import { expect, test } from "vitest";
import { trackNumber, valueNumber } from "../units/tiles.ts";
import type { Catalogue } from "./catalogue.ts";
import { allBut, only } from "./choice.ts";
import type { Counts, Whose } from "./counts.ts";
import { applicationsOf, cpusOf, eventNames, eventsOf, hasIdle, isNamed, peopleOf, processEntries, shareOf, subsystemOf, subsystemsOf, threadsOf, withSubsystem } from "./facets.ts";
import { ownersOf } from "./owners.ts";
import { find, findable } from "./search.ts";
import { trackLike } from "../testing/tracks.ts";

const WHOSE: Whose = {
  byCpu: new Map([[1, 80n], [10, 2n]]),
  byThread: new Map([[6, { count: 50n, name: "worker", pid: 5 }], [5, { count: 3n, name: "app", pid: 5 }], [99, { count: 20n, name: "other", pid: null }], [8, { count: 1n, name: "eight", pid: null }]]),
  byProcess: new Map([["5", { count: 53n, name: "app" }]]),
  byApplication: new Map([["app", 53n], ["other", 20n]]),
  idle: 9n,
  unknown: 0n,
  omitted: 0,
};
const COUNTS: Counts = { byName: new Map([["sched_switch", 70n], ["irq_entry", 5n], ["sched_wakeup", 7n]]), whose: WHOSE };
const NAMES = ["irq_entry", "jobs:begin", "jobs:end", "sched_switch", "sched_wakeup"];

test("CPUs are those that tracks or counts tell of", () => {
  const tracks = [trackLike(0, { cpu: 2 }), trackLike(1, { cpu: 1 }), trackLike(2, {}), trackLike(3, { cpu: 2 })];
  expect(cpusOf(tracks, WHOSE).map(({ label, count }) => [label, count])).toEqual([["CPU 1", 80n], ["CPU 2", 0n], ["CPU 10", 2n]]);
  expect(cpusOf(tracks, null).map(({ count }) => count)).toEqual([null, null]);
});

test("processes are called as their first thread, threads say of whom they are", () => {
  const { processes, threads } = peopleOf([
    trackLike(0, { tid: 7, name: "events", kind: "instants" }),
    trackLike(1, { tid: 5, name: "app (5)", process: "5" }),
    trackLike(2, { tid: 6, name: "worker (6)", process: "5" }),
    trackLike(3, { tid: 6, name: "calls", parent: trackNumber(2) }),
    trackLike(4, { tid: 30, name: "gone (30)", process: "29" }),
  ]);
  expect(threads.map(({ key, label, detail }) => [key, label, detail])).toEqual([
    [5, "app (5)", ""],
    [30, "gone (30)", "process 29"],
    [7, "thread 7", ""],
    [6, "worker (6)", "app (5)"],
  ]);
  expect(processes.map(({ key, label, detail }) => [key, label, detail])).toEqual([
    ["5", "app (5)", "2 threads"],
    ["29", "process 29", ""],
  ]);
});

const PEOPLE = [trackLike(1, { tid: 5, name: "app (5)", process: "5" }), trackLike(2, { tid: 6, name: "worker (6)", process: "5" }), trackLike(3, { tid: 7, name: "quiet (7)", process: "7" }), trackLike(4, { tid: 8, name: "events", kind: "instants" })];

test("who was counted stands above the others, also without a track", () => {
  const people = peopleOf(PEOPLE);
  expect(threadsOf(people, null)).toBe(people.threads);
  expect(threadsOf(people, WHOSE).map(({ label, detail, count }) => [label, detail, count])).toEqual([
    ["worker (6)", "app (5)", 50n],
    ["other (99)", "", 20n],
    ["app (5)", "", 3n],
    ["eight (8)", "", 1n],
    ["quiet (7)", "", 0n],
  ]);
  expect(threadsOf(people, { ...WHOSE, omitted: 7 }).at(-1)).toEqual({ key: 7, label: "quiet (7)", detail: "", count: null });
  expect(processEntries(people, WHOSE).map(({ key, count }) => [key, count])).toEqual([["5", 53n], ["7", 0n]]);
});

test("thread 0, where it has a track, has the events of idle CPUs", () => {
  const people = peopleOf([...PEOPLE, trackLike(5, { tid: 0, name: "events", kind: "instants" })]);
  expect(threadsOf(people, WHOSE).find(({ key }) => key === 0)).toEqual({ key: 0, label: "idle (0)", detail: "", count: 9n });
  expect([hasIdle(people.threads), hasIdle(peopleOf(PEOPLE).threads)]).toEqual([true, false]);
});

test("applications are those of tracks and those that were counted", () => {
  expect(applicationsOf(ownersOf(PEOPLE, null), null).map(({ key, detail, count }) => [key, detail, count])).toEqual([["app", "2 threads", null], ["quiet", "", null]]);
  expect(applicationsOf(ownersOf(PEOPLE, null), WHOSE).map(({ key, count }) => [key, count])).toEqual([["app", 53n], ["other", 20n], ["quiet", 0n]]);
});

test("events are those that were counted or met, the most frequent first", () => {
  const value = { number: valueNumber(0), colour: 0 };
  const catalogue: Catalogue = { tracks: [], values: [{ ...value, label: "met", kind: "event" }, { ...value, label: "bash", kind: "thread" }, { ...value, label: "irq_entry", kind: "event" }] };
  const names = eventNames(catalogue, COUNTS);
  expect(names).toEqual(["irq_entry", "met", "sched_switch", "sched_wakeup"]);
  expect(eventsOf(names, COUNTS).map(({ key, count }) => [key, count])).toEqual([["sched_switch", 70n], ["sched_wakeup", 7n], ["irq_entry", 5n], ["met", 0n]]);
  expect(eventNames(catalogue, null)).toEqual(["irq_entry", "met"]);
});

test("an event is part of its provider, or of what its name begins with", () => {
  expect(["sched_switch", "lttng_ust_libc:malloc_a", "plain", "a:b:c"].map(subsystemOf)).toEqual(["sched", "lttng_ust_libc", "plain", "a"]);
});

test("a subsystem is a pattern where that means nothing else", () => {
  const found = subsystemsOf([...NAMES, "jobs_x"], COUNTS);
  expect(found.map(({ key, count, names }) => [key, count, names])).toEqual([
    ["sched", 77n, ["sched_*"]],
    ["irq", 5n, ["irq_entry"]],
    ["jobs", 0n, ["jobs:begin", "jobs:end", "jobs_x"]],
  ]);
  // `lttng_*` would also mean what the provider `lttng_ust` tells.
  const [own] = subsystemsOf(["lttng_a", "lttng_b", "lttng_ust:x"], null);
  expect([own?.key, own?.names]).toEqual(["lttng", ["lttng_a", "lttng_b"]]);
});

test("subsystems are chosen and taken out as a whole, whatever was clicked before", () => {
  const all = subsystemsOf(NAMES, COUNTS);
  const [sched, , jobs] = all;
  if (sched === undefined || jobs === undefined) {
    throw new Error("there are three");
  }
  const without = withSubsystem(null, sched, false, NAMES);
  expect(without).toEqual(allBut(["sched_*"]));
  expect(withSubsystem(without, sched, true, NAMES)).toBeNull();
  const some = allBut(["sched_switch"]);
  expect([shareOf(some, sched), shareOf(some, jobs), shareOf(without, sched)]).toEqual(["some", "all", "none"]);
  expect(withSubsystem(some, sched, true, NAMES)).toBeNull();
  const alone = withSubsystem(only(["sched_switch"]), sched, true, NAMES);
  expect(alone).toEqual(only(["sched_*"]));
  const both = withSubsystem(alone, jobs, true, NAMES);
  expect(both).toEqual(only(["sched_*", "jobs:*"]));
  expect(withSubsystem(both, sched, false, NAMES)).toEqual(only(["jobs:*"]));
  expect(withSubsystem(only(["jobs:*"]), jobs, false, NAMES)).toBeNull();
  // A pattern that somebody wrote into the URL may mean more than a subsystem.
  expect(withSubsystem(only(["*"]), sched, false, NAMES)).toEqual({ only: ["*"], but: ["sched_*"] });
  expect(withSubsystem(allBut(["*e*"]), jobs, true, ["jobs:begin", "jobs:end", "irq_entry"])).toEqual(allBut(["irq_entry"]));
});

test("only stars are patterns", () => {
  expect([isNamed("a.c", "abc"), isNamed("a*", "abc"), isNamed("*b*", "abc"), isNamed("a*", "ba"), isNamed("(x)*", "(x)y")]).toEqual([false, true, true, false, true]);
});

test("what begins with it is found first, then words, then parts, then letters in that order", () => {
  const all = ["xsched", "irq sched", "sched_switch", "sched", "s_c_h_e_d", "a-c-d"].map((name) => findable(name, name));
  expect(find(all, "sched").map((hit) => hit.item)).toEqual(["sched", "sched_switch", "irq sched", "xsched"]);
  expect(find(all, "SCHED IRQ").map((hit) => hit.item)).toEqual(["irq sched"]);
  expect(find(all, "ssw").map((hit) => hit.item)).toEqual(["sched_switch"]);
  expect(find(all, "").length).toBe(6);
  expect(find(all, "sched", 2).length).toBe(2);
  expect(find(all, "zz")).toEqual([]);
});
