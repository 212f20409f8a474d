import { expect, test } from "vitest";
import { nanos } from "../units/time.ts";
import { binsOf, courseOf, logMarks, namedMarks, percentilesIn, percentilesOf, pointsOf } from "./charts.ts";
import type { Clock } from "./clock.ts";
import { Shape, parseJson } from "./json.ts";
import { timesOf } from "./lens.ts";
import { readAnswer, type Table } from "./tables.ts";

const clock: Clock = { origin: nanos(0), unix: false, zone: "UTC", style: "relative" };

function tableOf(columns: string, rows: string, span = '{"begin":1000,"end":2000}'): Table {
  const heads = columns.split(" ").map((column) => column.split(":"));
  const list = heads.map(([name, of]) => `{"name":"${name}","title":"${name}","class":"${of}","unit":null}`).join(",");
  const text = `{"tables":[{"class":"t","title":"T","span":${span},"omitted":0,"columns":[${list}],"rows":${rows}}],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}`;
  const [table] = readAnswer(new Shape(parseJson(text), "result")).tables;
  if (table === undefined) {
    throw new Error("there is no table");
  }
  return table;
}

const BINS = tableOf("low:duration high:duration count:number", '[[10, 20, 5], [20, 40, {"value": 4, "low": 3, "high": 4}], [40, 80, 0], [80, 160, 1]]');

test("a distribution is bins, and nothing else is", () => {
  expect(binsOf(BINS)).toEqual({ title: "T", low: [10, 20, 40, 80], high: [20, 40, 80, 160], count: [5, 4, 0, 1], total: 10 });
  expect(binsOf(tableOf("low:duration count:number", "[[1, 2]]"))).toBeNull();
});

test("percentiles lie in the bin of their rank, or are what the statistics say", () => {
  const bins = binsOf(BINS);
  expect(bins === null ? [] : percentilesIn(bins).map(({ low, high }) => [low, high])).toEqual([
    [10, 19],
    [20, 39],
    [80, 159],
    [80, 159],
  ]);
  expect(bins === null ? [] : percentilesIn({ ...bins, count: [0, 0, 0, 0], total: 0 })).toEqual([]);
  const table = tableOf("p50:duration p90:duration p99:duration", '[[7, {"value": 100, "low": 99, "high": 101}, null]]');
  expect(percentilesOf(table, table.rows[0] ?? [])).toEqual([
    { title: "50 %", low: 7, high: 7 },
    { title: "90 %", low: 99, high: 101 },
  ]);
});

test("points stand in the order of time, and rows without one are left out", () => {
  const table = tableOf("begin:timestamp took:duration", "[[1300, 5], [1100, 7], [null, 9], [1200, null]]");
  expect(pointsOf(table, table.rows, "took", nanos(1_000)).map(({ x, y, span }) => [x, y, span.begin, span.end])).toEqual([
    [100, 7, 1_100n, 1_107n],
    [300, 5, 1_300n, 1_305n],
  ]);
});

test("a course has a line for each number, over all of the time", () => {
  const table = tableOf("time:time-range held:number cpu:cpu", '[[{"begin": 1100, "end": 1200}, 5, 0], [{"begin": 1400, "end": 1500}, -3, 0]]');
  const course = courseOf(table, clock);
  expect([course?.begin, course?.time]).toEqual([1_000n, [0, 100, 200, 400, 500, 1_000]]);
  expect(course?.lines.map(({ title, values }) => [title, values])).toEqual([["held", [0, 5, 0, -3, 0]]]);
});

test("a course of names has a line for all, and for the most frequent ones", () => {
  const at = (begin: number): string => `{"begin": ${begin}, "end": ${begin + 500}}`;
  const rows = [..."abcdefgh"].map((name, index) => `[${at(1_000)}, "${name}", ${index}]`);
  const course = courseOf(tableOf("period:time-range name:string count:number", `[${rows.join(",")}, [${at(1_500)}, "a", 100]]`), clock);
  expect(course?.time).toEqual([0, 500, 1_000]);
  expect(course?.lines.map(({ title, values }) => [title, ...values])).toEqual([["all", 28, 100], ["a", 0, 100], ["h", 7, 0], ["g", 6, 0], ["f", 5, 0], ["e", 4, 0]]);
  expect(courseOf(BINS, clock)).toBeNull();
});

test("a logarithmic axis has marks at each digit, and names for as many as there is room for", () => {
  expect(logMarks(0.7, 25)).toEqual([0.7, 0.8, 0.9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20]);
  expect(namedMarks(logMarks(1, 150)).filter((mark) => mark !== null)).toEqual([1, 10, 100]);
  expect(namedMarks(logMarks(4, 25)).filter((mark) => mark !== null)).toEqual([5, 10, 20]);
  expect(namedMarks(logMarks(210, 640))).toEqual([300, 400, 500, 600]);
});

test("what is asked for is all, the window, or what is selected", () => {
  const [view, selection] = [
    { begin: nanos(5), span: nanos(10) },
    { begin: nanos(7), span: nanos(1) },
  ];
  expect([timesOf("all", view, selection), timesOf("window", view, null), timesOf("selection", view, selection), timesOf("selection", view, null)]).toEqual([{}, { begin_ns: 5n, end_ns: 15n }, { begin_ns: 7n, end_ns: 8n }, null]);
});
