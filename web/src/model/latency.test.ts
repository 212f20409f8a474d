import { expect, test } from "vitest";
import { valueNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Catalogue, Track } from "./catalogue.ts";
import type { Clock } from "./clock.ts";
import { Shape, parseJson } from "./json.ts";
import { bodyOf } from "./jobs.ts";
import { SOURCES, countOf, groupOf, groupOptions, latencyOptions, presetsOf, sourceOf } from "./latency.ts";
import { PLAIN_LENS } from "./lens.ts";
import { readAnswer, type Answer } from "./tables.ts";
import { trackLike } from "../testing/tracks.ts";

const clock: Clock = { origin: nanos(0), unix: false, zone: "UTC", style: "relative" };

/** Tables by their names: columns as `name:class`, and rows. */
function answerOf(...tables: readonly (readonly [string, string, string, number?])[]): Answer {
  const texts = tables.map(([name, columns, rows, omitted = 0]) => {
    const heads = columns.split(" ").map((column) => column.split(":"));
    const list = heads.map(([column, of]) => `{"name":"${column}","title":"${column}","class":"${of}","unit":null}`).join(",");
    return `{"class":"${name}","title":"${name}","span":null,"omitted":${omitted},"columns":[${list}],"rows":${rows}}`;
  });
  return readAnswer(new Shape(parseJson(`{"tables":[${texts.join(",")}],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}`), "result"));
}

test("each kind of latency has an own name, and the first one fits the traces", () => {
  expect(new Set(SOURCES.map((source) => source.id)).size).toBe(SOURCES.length);
  expect([sourceOf("", true).id, sourceOf("", false).id, sourceOf("block", true).id, sourceOf("gone", false).id]).toEqual(["syscalls", "pairs", "block", "pairs"]);
});

test("pairs are those of roles until somebody says otherwise, periods are what somebody says", () => {
  const pairs = sourceOf("pairs", false);
  expect(latencyOptions(pairs, PLAIN_LENS, 9)).toEqual({ top: 9, bins: 160 });
  const said = latencyOptions(pairs, { ...PLAIN_LENS, pairs: ["a", "b if x == 1", "id, tid", ""] }, 9);
  expect(bodyOf({ kind: "pairs", options: said ?? {} })).toBe('{"kind":"pairs","options":{"bins":160,"pairs":{"keys":["id","tid"],"start":["a"],"stop":["b if x == 1"]},"top":9}}');
  const periods = sourceOf("periods", false);
  expect(latencyOptions(periods, PLAIN_LENS, 9)).toBeNull();
  expect(latencyOptions(periods, { ...PLAIN_LENS, periods: "p : a : b\n\nq : c" }, 9)).toMatchObject({ periods: ["p : a : b", "q : c"] });
});

test("operations are those of Barrelfish until both ends and the key are said", () => {
  const steps = sourceOf("steps", false);
  const said = (...pairs: readonly string[]): ReturnType<typeof latencyOptions> => latencyOptions(steps, { ...PLAIN_LENS, pairs }, 9);
  expect([said(), said("a"), said("a", "b"), said("a", "b", " ")]).toEqual([{ top: 9, bins: 160 }, null, null, null]);
  // What tells pairs apart means nothing to operations.
  expect(said("a", "b", "id, tid", "group")).toEqual({ top: 9, bins: 160, pairs: { start: ["a"], stop: ["b"], keys: ["id", "tid"] } });
});

test("what traces have is offered: by their tracks, and by names of events", () => {
  const track = (id: string, kind: Track["kind"]): Track => trackLike(0, { id, kind });
  const catalogue = (tracks: readonly Track[], events: readonly string[]): Catalogue => ({ tracks, values: events.map((label, number) => ({ number: valueNumber(number), label, kind: "event", colour: 0 })) });
  const titles = (of: Catalogue): readonly string[] => presetsOf(of).map((preset) => preset.title);
  expect(titles(catalogue([], []))).toEqual([]);
  const kernel = catalogue([track("latency/0/calls", "heat"), track("latency/1/waiting", "heat"), track("latency/0/softirqs", "heat")], ["irq_softirq_raise", "block:block_rq_issue", "my_block_rq_issued"]);
  expect(titles(kernel)).toEqual(["System calls", "Wake-up", "Wake-up by thread", "Interrupts", "Raise to softirq", "Disks"]);
  expect(titles(catalogue([track("thread/0/7/slices/0", "states")], ["jobs:begin"]))).toEqual(["Pairs"]);
  expect(titles(catalogue([track("thread/0/7/state", "states")], []))).toEqual([]);
  expect(titles(catalogue([], ["capops:USER_DELETE_CALL"]))).toEqual(["Steps"]);
});

test("a group is asked for alone where the server can tell it apart", () => {
  const answer = answerOf(
    ["per-thread", "thread:process incarnation:number count:number", '[[{"name":"a","pid":1,"tid":12},0,7],[{"unknown":true},null,1]]'],
    ["per-priority", "priority:number count:number", "[[120000,5]]"],
    ["wakers", "waker:process thread:process count:number", '[[{"name":"w","pid":1,"tid":5},{"name":"a","pid":1,"tid":12},3],[{"name":"w","pid":1,"tid":5},{"name":"b","pid":1,"tid":13},4]]', 1],
    ["top", "woken:timestamp latency:duration thread:process incarnation:number priority:number waker:process", "[]"],
  );
  const [threads, priorities, wakers, longest] = answer.tables;
  const wakeups = sourceOf("wakeups", true);
  const of = (table = threads, row = 0): ReturnType<typeof groupOf> => (table === undefined || longest === undefined ? null : groupOf(table, longest, table.rows[row] ?? [], clock));
  const thread = { column: "thread", text: "a (12)", tid: 12 };
  expect([of(), of(threads, 1), of(priorities), of(wakers)]).toEqual([thread, null, { column: "priority", text: "120000", tid: null }, { column: "waker", text: "w (5)", tid: 5 }]);
  expect(groupOptions(wakeups, thread)).toEqual({ tids: [12] });
  // Who wakes is not who is woken.
  expect([groupOptions(wakeups, { ...thread, column: "waker" }), groupOptions(wakeups, { ...thread, tid: null })]).toEqual([null, null]);
  const said = (column: string, text: string): Parameters<typeof groupOptions>[1] => ({ column, text, tid: null });
  expect(groupOptions(sourceOf("syscalls", true), said("syscall", "poll"))).toEqual({ names: ["poll"] });
  expect(groupOptions(sourceOf("pairs", true), said("group", "12000"))).toEqual({ names: ["12000"] });
  expect(groupOptions(sourceOf("interrupts", true), said("irq", "irq 12 (eth0)"))).toEqual({ irqs: [12] });
  expect(groupOptions(sourceOf("raised", true), said("irq", "softirq 3"))).toEqual({ softirqs: [3] });
  expect(groupOptions(sourceOf("block", true), said("device", "sda"))).toBeNull();
  // Where rows are missing, nobody knows how many there are.
  expect([countOf(wakeups, answer, thread, clock), countOf(wakeups, answer, said("priority", "120000"), clock), countOf(wakeups, answer, said("waker", "w (5)"), clock)]).toEqual([7, 5, null]);
});
