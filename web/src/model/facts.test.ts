import { expect, test } from "vitest";
import { trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { FieldBase } from "./bases.ts";
import { factsOf, fieldLines, titleOf, type Telling } from "./facts.ts";
import { parseFields, type ArrowItem, type EventItem, type Fields, type RunItem } from "./items.ts";
import { trackLike } from "../testing/tracks.ts";

const CPU = trackLike(0, { id: "cpu/0/3/thread", name: "CPU 3", group: "CPUs", cpu: 3 });
const MAKE = trackLike(1, { id: "thread/0/7/state", name: "make (7)", group: "Threads", tid: 7, process: "make" });
const telling: Telling = { clock: { origin: nanos(1_000), unix: false, zone: "UTC", style: "relative" }, tracks: [CPU, MAKE] };
const value = { label: "make (7)", kind: "thread", colour: 1, track: trackNumber(1) };
const run: RunItem = { kind: "run", begin: nanos(2_000), end: nanos(4_500), beginKnown: true, endKnown: true, inDoubt: false, value, wait: null };
const arrow: ArrowItem = { kind: "arrow", begin: nanos(2_000), end: nanos(4_500), endKnown: true, receivedFirst: false, from: trackNumber(0), to: trackNumber(1), value, waker: null };

/** Facts as lines, with where they lead. */
function lines(...facts: ReturnType<typeof factsOf>): string[] {
  return facts.map(({ name, text, to, isDoubtful }) => `${name}: ${text.replaceAll("\u202f", " ")}${isDoubtful ? "?" : ""}${to === null ? "" : ` -> ${to.track} at ${to.time}`}`);
}

test("a message is told with who sends and who receives it, and when", () => {
  const [from, to] = [trackLike(2, { id: "thread/0/8/events", name: "events", group: "Threads", tid: 8 }), trackLike(3, { id: "events/0/1", name: "stream 1", group: "Events" })];
  const message: ArrowItem = { ...arrow, from: trackNumber(2), to: trackNumber(3), value: { label: "render", kind: "message", colour: 1, track: null } };
  const all = { ...telling, tracks: [CPU, MAKE, from, to] };
  expect(titleOf(message, all)).toBe("render: thread 8 → stream 1");
  expect(lines(...factsOf(message, trackLike(4, { id: "messages/0", name: "messages", group: "Arrows" }), all)).slice(0, 6)).toEqual([
    "message: render",
    "from: thread 8 -> thread/0/8/events at 2000",
    "to: stream 1 -> events/0/1 at 4500",
    "sent: 0.000 001 000 s",
    "received: 0.000 003 500 s",
    "latency: 2.500 µs",
  ]);
});

test("an event that names no thread is told with the one that its CPU ran", () => {
  const owned = { ...value, owner: { process: "7", application: "make", colour: 1 } };
  const event: EventItem = { kind: "event", time: nanos(2_000), value, event: null, bases: [], thread: owned };
  const lane = trackLike(2, { id: "events/0/0", name: "events of CPU 3", group: "Events", cpu: 3 });
  expect(lines(...factsOf(event, lane, telling)).slice(0, 4)).toEqual(["time: 0.000 001 000 s", "thread: make (7) -> thread/0/7/state at 2000", "of process: make (7)", "track: events of CPU 3"]);
  expect(lines(...factsOf({ ...event, thread: null }, lane, telling)).slice(0, 2)).toEqual(["time: 0.000 001 000 s", "track: events of CPU 3"]);
  expect(lines(...factsOf(event, MAKE, telling)).filter((line) => line.startsWith("thread"))).toEqual(["thread: 7"]);
});

test("a run is told with its ends, and where the row is of what it shows", () => {
  expect(titleOf(run, telling)).toBe("make (7)");
  expect(lines(...factsOf(run, CPU, telling))).toEqual([
    "begin: 0.000 001 000 s",
    "end: 0.000 003 500 s",
    "duration: 2.500 µs",
    "is a: thread that runs",
    "its row: make (7) -> thread/0/7/state at 2000",
    "track: CPU 3",
    "group: CPUs",
    "CPU: 3",
  ]);
});

test("what is not known of a run is said instead of a duration", () => {
  const open = factsOf({ ...run, beginKnown: false, endKnown: false, inDoubt: true, value: { ...value, track: null } }, MAKE, telling);
  expect(lines(...open).slice(0, 4)).toEqual([
    "begin: since before 0.000 001 000 s?",
    "end: not before 0.000 003 500 s?",
    "in doubt: events are missing around it?",
    "is a: thread that runs",
  ]);
  expect(lines(...open).slice(-2)).toEqual(["thread: 7", "process: make"]);
});

test("an arrow says who woke whom, and leads to both", () => {
  expect(titleOf(arrow, telling)).toBe("CPU 3 wakes make (7)");
  expect(lines(...factsOf(arrow, CPU, telling)).slice(0, 6)).toEqual([
    "waker: unknown?",
    "from: CPU 3 -> cpu/0/3/thread at 2000",
    "wakee: make (7) -> thread/0/7/state at 4500",
    "woken: 0.000 001 000 s",
    "runs: 0.000 003 500 s",
    "latency: 2.500 µs",
  ]);
  const known = { ...arrow, waker: value, endKnown: false };
  expect(titleOf(known, telling)).toBe("make (7) wakes make (7)");
  expect(lines(...factsOf(known, CPU, telling))).toContain("waker: make (7) -> thread/0/7/state at 2000");
  expect(lines(...factsOf(known, CPU, telling))).toContain("runs: time unknown?");
});

test("copied are whole nanoseconds, also of times of the day", () => {
  const unix: Telling = { ...telling, clock: { origin: nanos(1_795_219_282_000_000_000n), unix: true, zone: "UTC", style: "absolute" } };
  const [begin, , span] = factsOf({ ...run, begin: nanos(1_795_219_372_253_260_578n), end: nanos(1_795_219_372_253_260_599n) }, CPU, unix);
  expect([begin?.text.replaceAll("\u202f", ""), begin?.copy, span?.copy]).toEqual(["00:02:52.253260578", "1795219372253260578", "21"]);
  expect(begin?.hint.replaceAll("\u202f", "")).toBe("1795219372253260578 ns\n1 min 30.253260578 s since begin\n2026-11-21 00:02:52.253260578 UTC");
});

const EVENT = parseFields(
  '{"time":5,"trace":"demo","stream":1,"event":"jobs:submit","id":0,"packet_context":{"cpu_id":1},"context":{"vtid":18446744073709551615},' +
    '"payload":{"kind":{"value":5,"labels":["CUSTOM"]},"flags":{"value":6,"labels":["A","B"]},"name":"","share":0.50,"few":[1,2],"none":[],"deep":[{"x":true}],"null":null}}',
) as Fields;

test("an event tells its own fields first, by type and as they were written", () => {
  const event: EventItem = { kind: "event", time: nanos(2_000), value, event: EVENT, bases: [], thread: null };
  expect(lines(...factsOf(event, MAKE, telling)).slice(0, 4)).toEqual(["time: 0.000 001 000 s", "trace: demo", "stream: 1", "id: 0"]);
  expect(fieldLines(EVENT, []).map(({ name, text, type, depth }) => `${" ".repeat(depth)}${name}${text === null ? "" : `=${text}`} (${type})`)).toEqual([
    "fields (structure)",
    " kind=CUSTOM (5) (enumeration)",
    " flags=A, B (6) (enumeration)",
    " name= (text)",
    " share=0.50 (real number)",
    " few=[1, 2] (list of 2)",
    " none=none (list of 0)",
    " deep (list of 1)",
    "  0 (structure)",
    "   x=true (true or false)",
    " null=null (nothing)",
    "context of the packet (structure)",
    " cpu_id=1 (integer)",
    "context of the event (structure)",
    " vtid=18446744073709551615 (integer)",
  ]);
  const vtid = fieldLines(EVENT, []).at(-1);
  expect([vtid?.hint, vtid?.copy]).toEqual(["0xffffffffffffffff", "18446744073709551615"]);
});

test("integers are written and copied in the base that the trace wishes, with base 10 beside it", () => {
  const base = (path: string, base = 16): FieldBase => ({ path: path.split("."), base, bits: 64, events: null });
  const fields = fieldLines(EVENT, [base("payload.flags"), base("payload.few", 8), base("payload.share"), base("context.vtid")]);
  const told = (name: string): unknown => fields.filter((line) => line.name === name).map(({ text, copy, hint }) => [text, copy, hint]);
  expect(told("flags")).toEqual([["A, B (0x6)", '{"value": 6, "labels": ["A", "B"]}', ""]]);
  expect(told("few")).toEqual([["[01, 02]", "[1, 2]", ""]]);
  expect(told("share")).toEqual([["0.50", "0.50", ""]]);
  expect(told("vtid")).toEqual([["0xFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFF", "18446744073709551615"]]);
});

test("an event of which nobody knows which it is has its time at least", () => {
  expect(lines(...factsOf({ kind: "event", time: nanos(2_000), value, event: null, bases: [], thread: null }, MAKE, telling))[0]).toBe("time: 0.000 001 000 s");
});
