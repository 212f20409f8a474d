import { expect, test } from "vitest";
import { trackLike } from "../testing/tracks.ts";
import { nanos } from "../units/time.ts";
import { endAmong, endTracks, hasEnds } from "./ends.ts";
import { Fields, type EventItem, type ItemValue, type RunItem } from "./items.ts";

const value = (label: string, kind: string): ItemValue => ({ label, kind, colour: 0, track: null });
const run = (label: string, kind = "call"): RunItem => ({ kind: "run", begin: nanos(10), end: nanos(20), beginKnown: true, endKnown: true, inDoubt: false, value: value(label, kind), wait: null });
const event = (time: number, label: string, payload: Record<string, string> = {}): EventItem => {
  const fields = new Fields(new Map([["payload", new Fields(new Map(Object.entries(payload)))]]));
  return { kind: "event", time: nanos(time), value: value(label, "event"), event: fields, bases: [], thread: null };
};

function found(events: readonly EventItem[], of: RunItem, side: "begin" | "end"): string | number {
  const end = endAmong(events, of, side, "x");
  return end.kind === "event" ? end.item.value.label : end.count;
}

test("events are looked for on the thread, or the CPU, and then among all", () => {
  const instants = (number: number, id: string, more: object): ReturnType<typeof trackLike> => trackLike(number, { id, kind: "instants", ...more });
  const tracks = [instants(0, "events/0/1", { cpu: 1 }), instants(1, "all/events", {}), instants(2, "thread/0/7/events", { tid: 7 }), instants(3, "thread/1/7/events", { tid: 7, host: "b" }), trackLike(4, { tid: 7 })];
  const idsOf = (track: ReturnType<typeof trackLike>): string[] => endTracks(track, tracks).map(({ id }) => id);
  expect(idsOf(trackLike(9, { tid: 7, cpu: 1 }))).toEqual(["thread/0/7/events", "all/events"]);
  expect(idsOf(trackLike(9, { cpu: 1 }))).toEqual(["events/0/1", "all/events"]);
  expect(idsOf(trackLike(9))).toEqual(["all/events"]);
});

test("the only event at that time is it, whatever its name", () => {
  expect(found([event(10, "rpc_dispatch"), event(11, "later")], run("page", "slice"), "begin")).toBe("rpc_dispatch");
  expect(found([], run("page", "slice"), "begin")).toBe(0);
});

test("of several the one with the name, in its own or in a field, and that sounds like this end", () => {
  expect(found([event(10, "sched_switch"), event(10, "sys_read")], run("read"), "begin")).toBe("sys_read");
  expect(found([event(20, "syscall_entry_read"), event(20, "syscall_exit_read")], run("read"), "end")).toBe("syscall_exit_read");
  expect(found([event(20, "sched_switch"), event(20, "exit_syscall")], run("read"), "end")).toBe("exit_syscall");
  expect(found([event(10, "app:begin", { name: "job" }), event(10, "app:begin", { name: "page" })], run("page", "slice"), "begin")).toBe("app:begin");
});

test("where two fit alike, neither is said to be it", () => {
  expect(found([event(10, "sys_read"), event(10, "sys_read")], run("read"), "begin")).toBe(2);
});

test("states of threads and threads on CPUs have no arguments", () => {
  expect([hasEnds(run("read")), hasEnds(run("running", "doing")), hasEnds(run("make (1)", "thread")), hasEnds(event(1, "x"))]).toEqual([true, false, false, false]);
});
