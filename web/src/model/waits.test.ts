import { expect, test } from "vitest";
import { trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Track } from "./catalogue.ts";
import { factsOf, titleOf, type Telling } from "./facts.ts";
import { readItems, type RunItem } from "./items.ts";

const PLAIN = { host: null, cpu: null, process: null, tid: null, depth: null, parent: null };
const CPU: Track = { ...PLAIN, number: trackNumber(0), id: "cpu/0/3/thread", kind: "states", name: "CPU 3", group: "CPUs", cpu: 3 };
const MAKE: Track = { ...PLAIN, number: trackNumber(1), id: "thread/0/7/state", kind: "states", name: "make (7)", group: "Threads", tid: 7, process: "7" };
const HELPER: Track = { ...PLAIN, number: trackNumber(2), id: "thread/0/9/state", kind: "states", name: "helper (9)", group: "Threads", tid: 9, process: "7" };
const telling: Telling = { clock: { origin: nanos(0), unix: false, zone: "UTC", style: "relative" }, tracks: [CPU, MAKE, HELPER] };

const thread = (label: string, track: number | null): object => ({ number: 0, label, kind: "thread", colour: 1, track, process: track === null ? null : 7, application: track === null ? null : "make", application_colour: 8 });
const NO_WAIT = { call: null, waker: null, instead: null, to: null, requests: [], unknown: [], unrecorded: [] };

/** A state of thread 7 as the server tells it. */
function stateOf(label: string, wait: object | null, more: object = {}): RunItem {
  const value = { number: 1, label, kind: "doing", colour: 5, track: null };
  const run = { kind: "run", begin_ns: 2000, end_ns: 9000, begin_known: true, end_known: true, in_doubt: false, value, wait, ...more };
  const [item] = readItems(JSON.stringify({ complete: true, items: [run], next_ns: null })).items;
  if (item?.kind !== "run") {
    throw new Error("a run was told");
  }
  return item;
}

/** What is told of waiting. */
function told(item: RunItem): string[] {
  const facts = factsOf(item, MAKE, telling).filter(({ name }) => !["begin", "end", "duration", "is a", "track", "group", "thread", "process"].includes(name));
  return facts.map(({ name, text, to, isDoubtful }) => `${name}: ${text.replaceAll("\u202f", " ")}${isDoubtful ? "?" : ""}${to === null ? "" : ` -> ${to.track} at ${to.time}`}`);
}

const CALL = { value: { number: 2, label: "read", kind: "call", colour: 3, track: null }, begin_ns: 1500, begin_known: true, in_doubt: false, fd: 5 };
const WAKER = { time_ns: 9000, from: 0, value: thread("helper (9)", 2), irq: null, softirq: null };

test("a blocked thread is told with its call, its file, who woke it and where that leads", () => {
  const item = stateOf("blocked", { ...NO_WAIT, call: CALL, waker: WAKER });
  expect(titleOf(item, telling)).toBe("blocked in read (fd 5)");
  expect(told(item)).toEqual(["in: read (fd 5) -> thread/0/7/calls at 1500", "woken by: helper (9) of make (7) on CPU 3 -> thread/0/9/state at 9000"]);
  const nameless = stateOf("blocked", { ...NO_WAIT, call: { ...CALL, fd: null }, waker: { ...WAKER, value: null } });
  expect(titleOf(nameless, telling)).toBe("blocked in read");
  expect(told(nameless)[1]).toBe("woken by: an unknown thread on CPU 3 -> cpu/0/3/thread at 9000");
});

test("whoever is woken from within an interrupt is not said to be woken by who was interrupted", () => {
  const value = (label: string, kind: string): object => ({ number: 3, label, kind, colour: 1, track: null });
  const idle = { ...WAKER, value: thread("idle", null) };
  expect(told(stateOf("blocked", { ...NO_WAIT, call: CALL, waker: { ...idle, softirq: value("BLOCK", "softirq") } }))[1]).toBe(
    "woken by: softirq BLOCK on CPU 3, where idle ran -> cpu/0/3/thread at 9000",
  );
  expect(told(stateOf("blocked", { ...NO_WAIT, call: CALL, waker: { ...idle, irq: value("irq 41 sda", "irq"), softirq: value("BLOCK", "softirq") } }))[1]).toBe(
    "woken by: irq 41 sda in softirq BLOCK on CPU 3, where idle ran -> cpu/0/3/thread at 9000",
  );
  const hints = factsOf(stateOf("blocked", { ...NO_WAIT, waker: idle, unrecorded: ["interrupts"] }), MAKE, telling).map(({ hint }) => hint);
  expect(hints).toContain("No interrupts are recorded: perhaps one of them did it.");
});

test("who can run is told with who has its CPU, and where it runs then", () => {
  const item = stateOf("waiting for a CPU", { ...NO_WAIT, waker: WAKER, instead: thread("make (7)", 1), to: 0 });
  expect(titleOf(item, telling)).toBe("waiting for a CPU");
  expect(told(item)).toEqual([
    "in: no system call",
    "woken by: helper (9) of make (7) on CPU 3 -> thread/0/9/state at 9000",
    "behind: make (7) -> thread/0/7/state at 2000",
    "runs then on: CPU 3 -> cpu/0/3/thread at 9000",
  ]);
});

test("requests to disks are told with how long these took", () => {
  const request = { device: "8:0", sector: 64, bytes: 4096, write: false, begin_ns: 1900, end_ns: 8900 };
  expect(told(stateOf("uninterruptible", { ...NO_WAIT, requests: [request, { ...request, write: true, end_ns: null }] })).slice(1)).toEqual([
    "disk 8:0: read of 4096 bytes at sector 64, done after 7.000 µs",
    "disk 8:0: write of 4096 bytes at sector 64, not seen done?",
  ]);
});

test("what is not recorded, what nobody knows and what is not the case are told apart", () => {
  expect(told(stateOf("blocked", NO_WAIT))).toEqual(["in: no system call"]);
  expect(told(stateOf("blocked", { ...NO_WAIT, unknown: ["call", "waker"] }))).toEqual(["in: not known?", "woken by: unknown?"]);
  expect(told(stateOf("uninterruptible", { ...NO_WAIT, unrecorded: ["calls", "wakeups", "interrupts", "requests"] }))).toEqual([
    "in: not known: no system calls are recorded?",
    "disk: not known: no requests are recorded?",
    "woken by: not known: no wakeups are recorded?",
  ]);
  expect(told(stateOf("preempted", { ...NO_WAIT, unknown: ["instead", "to"] }))).toEqual(["in: no system call", "behind: unknown?", "runs then on: unknown?"]);
});

test("a run of which nothing is told of waiting is told as before", () => {
  expect(titleOf(stateOf("blocked", null), telling)).toBe("blocked");
  expect(told(stateOf("blocked", null))).toEqual([]);
});
