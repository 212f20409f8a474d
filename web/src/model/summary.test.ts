import { expect, test } from "vitest";
import { nanos } from "../units/time.ts";
import type { Clock } from "./clock.ts";
import { Shape, parseJson } from "./json.ts";
import { busyOf, callsOf, eventsOf } from "./summary.ts";
import { narrowed, readAnswer, type Answer } from "./tables.ts";

const clock: Clock = { origin: nanos(0), unix: false, zone: "UTC", style: "relative" };

function answerOf(...tables: readonly (readonly [name: string, columns: string, rows: string])[]): Answer {
  const texts = tables.map(([name, columns, rows]) => {
    const list = columns.split(" ").map((column) => column.split(":"));
    const heads = list.map(([title, of]) => `{"name":"${title}","title":"${title}","class":"${of}","unit":null}`);
    return `{"class":"${name}","title":"${name}","span":null,"omitted":0,"columns":[${heads.join(",")}],"rows":${rows}}`;
  });
  const text = `{"tables":[${texts.join(",")}],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}`;
  return readAnswer(new Shape(parseJson(text), "result"));
}

function plain(texts: readonly string[]): string[] {
  return texts.map((text) => text.replaceAll("\u202f", " "));
}

test("events are counted, and the most frequent ones named", () => {
  const sum = eventsOf(answerOf(["total", "count:number", '[[{"value": 1010, "low": 1010, "high": null}]]'], ["per-class", "name:string count:number", '[["a", 5], ["b", 1000], ["c", 4], ["d", 1]]']), clock);
  expect([sum.count, plain(sum.most)]).toEqual([1_010n, ["b 1 000", "a 5", "c 4"]]);
});

test("CPUs are busy for a part of the time that they have", () => {
  const cpus = ["per-cpu", "cpu:cpu busy:duration idle:duration unknown:duration", "[[0, 30, 70, 0], [1, 20, 70, 10]]"] as const;
  const threads = ["per-thread", "thread:process run_time:duration", '[[{"name": "x", "pid": 1, "tid": 2}, 20], [{"name": "y", "pid": 1, "tid": 3}, 30]]'] as const;
  const sum = busyOf(answerOf(cpus, threads), clock);
  expect([sum.time, sum.share, sum.most]).toEqual([50n, 0.25, ["y (3) 30 ns", "x (2) 20 ns"]]);
  expect(busyOf(answerOf(), clock)).toMatchObject({ time: 0n, share: null, most: [] });
});

test("system calls are counted, with the time that they take", () => {
  const sum = callsOf(answerOf(["per-syscall", "syscall:syscall count:number total:duration", '[["read", 3, 2000], ["poll", 1, 9007199254740993]]']), clock);
  expect([sum.count, sum.time, plain(sum.most)]).toEqual([4n, 9_007_199_254_742_993n, ["poll 104 d 5 h 59 min 59.254 740 993 s", "read 2.000 µs"]]);
});

test("a table has those columns that are asked for, in that order", () => {
  const [table] = answerOf(["t", "a:number b:number c:number", "[[1, 2, 3]]"]).tables;
  const found = table === undefined ? null : narrowed(table, ["c", "gone", "a"]);
  expect([found?.columns.map((column) => column.name), found?.rows.map((row) => row.map((cell) => (cell.kind === "number" ? cell.value : null)))]).toEqual([["c", "a"], [[3n, 1n]]]);
});
