import { decimal, dictionary, float64, int32, int64, list, struct, uint64, utf8 } from "@uwdata/flechette";
import { expect, test } from "vitest";
import { TIME, TOLD_COLUMNS, encodeColumns, encodeRows } from "../testing/arrow.ts";
import { nanos } from "../units/time.ts";
import { columnNamed, readRows, timesOf, type Rows } from "./arrow.ts";
import type { Clock } from "./clock.ts";
import { contentsOf, ranksOf } from "./eventfind.ts";
import { ALL_EVENTS, baseNames, fieldNames, isSingle, listColumns, named, narrowed, pageOf, placeText, questionText, readNames, readPlace, type EventPage } from "./events.ts";
import { cellText, csvCell, deltaText, fieldText, fieldsText, filledFields, jsonText, pageText, threadText } from "./eventtext.ts";

const CLOCK: Clock = { origin: nanos(1_795_219_372_253_260_578n), unix: true, zone: "UTC", style: "relative" };

/** Rows with columns of some types, as the server would send them. */
function rowsWith(columns: Parameters<typeof encodeColumns>[0], bases: Parameters<typeof encodeColumns>[1] = {}): Rows {
  return readRows(encodeColumns(columns, bases).buffer);
}

function pageWith(rows: Rows): EventPage {
  const place = { time: nanos(0), rank: 0 };
  return pageOf(rows, place, place, false);
}

test("times and whole numbers of 64 bits have all their digits, whatever a double holds", () => {
  const rows = rowsWith({
    time: [TIME, [1_795_219_372_253_260_579n, 1_795_219_372_253_260_580n]],
    signed: [int64(), [-(2n ** 63n), null]],
    unsigned: [uint64(), [2n ** 64n - 1n, 0n]],
    both: [decimal(20, 0, 128), [2n ** 64n - 1n, -(2n ** 63n)]],
    real: [float64(), [0.1, Number.NaN]],
  });
  expect([...timesOf(rows)]).toEqual([1_795_219_372_253_260_579n, 1_795_219_372_253_260_580n]);
  const at = (name: string, row: number): unknown => columnNamed(rows, name)?.at(row);
  expect([at("signed", 0), at("signed", 1), at("unsigned", 0), at("both", 0), at("both", 1)]).toEqual([-(2n ** 63n), null, 2n ** 64n - 1n, 2n ** 64n - 1n, -(2n ** 63n)]);
  expect([at("real", 0), at("real", 1)]).toEqual([0.1, Number.NaN]);
});

test("texts, also of dictionaries, are strings, lists are lists, and what is missing is null", () => {
  const rows = rowsWith({
    name: [dictionary(utf8(), int32()), ["a", "b", "a"]],
    text: [utf8(), ["ä", null, ""]],
    sizes: [list(int32()), [[1, 2], null, []]],
    none: [utf8(), [null, null, null]],
  });
  const all = (name: string): unknown[] => [0, 1, 2].map((row) => columnNamed(rows, name)?.at(row));
  expect([all("name"), all("text")]).toEqual([["a", "b", "a"], ["ä", null, ""]]);
  expect(all("sizes").map(jsonText)).toEqual(["[1,2]", "null", "[]"]);
  expect(rows.columns.filter((column) => column.isEmpty).map((column) => column.name)).toEqual(["none"]);
});

test("a clock without an origin counts from its own, and a time that nobody knows is the one before", () => {
  expect([...timesOf(rowsWith({ time: [int64(), [5n, null, 7n]] }))]).toEqual([5n, 5n, 7n]);
});

test("what is no Arrow stream is an error, not rows", () => {
  expect(() => readRows(new TextEncoder().encode("<html>").buffer)).toThrow();
});

test("places are written as they are read", () => {
  for (const text of ["0", "-5.3", "1795219372255278815.1", "-9223372036854775808"]) {
    expect(placeText(readPlace(text) ?? { time: nanos(1), rank: 1 })).toBe(text);
  }
  expect(["", "x", "1.", "1.2.3", null].map(readPlace)).toEqual([null, null, null, null, null]);
});

test("questions are put together and written for a URL", () => {
  const question = { filter: "a == 1 || b", names: readNames(" sched_* , x y x") };
  expect(question.names).toEqual(["sched_*", "x", "y"]);
  expect(narrowed(question, "c || d").filter).toBe("(a == 1 || b) && (c || d)");
  expect(narrowed(ALL_EVENTS, "c").filter).toBe("c");
  expect(questionText(narrowed(question, "c & 1"))).toBe("event=sched_*&event=x&event=y&filter=%28a+%3D%3D+1+%7C%7C+b%29+%26%26+%28c+%26+1%29");
  expect(questionText(ALL_EVENTS)).toBe("");
  expect([["a"], ["a*"], ["a", "b"], []].map((names) => isSingle({ filter: null, names }))).toEqual([true, false, false, false]);
});

test("a list has columns for what all events have, and one for the rest", () => {
  const all = ["time", "cycles", "stream", "name", "cpu_id", "vpid", "vtid", "procname", "id", "kind", "kind_label", "payload.name", "_sizes_length", "sizes"];
  expect(listColumns(all, false).map((column) => column.title)).toEqual(["Time", "Δ", "Event", "CPU", "Thread", "Fields"]);
  expect(baseNames(all)).toEqual(["time", "name", "cpu_id", "vtid", "procname"]);
  expect(fieldNames(all)).toEqual(["vpid", "id", "kind", "payload.name", "sizes"]);
  const single = all.filter((name) => name !== "name");
  expect(listColumns(single, true).map((column) => column.title)).toEqual(["Time", "Δ", "CPU", "Thread", "vpid", "id", "kind", "name", "sizes"]);
});

test("a field of single events is no thread: who is woken is not who runs", () => {
  const kernel = ["time", "cycles", "stream", "name", "cpu_id", "prev_comm", "tid", "vtid"];
  expect(listColumns(kernel, false).map((column) => column.kind)).toEqual(["time", "delta", "event", "cpu", "fields"]);
  expect(fieldNames(kernel)).toEqual(["prev_comm", "tid", "vtid"]);
});

test("where only some classes of events say their CPU, it stands behind fields of others, and is one all the same", () => {
  const own = ["time", "cycles", "stream", "name", "vpid", "vtid", "handler_level", "procname", "monotonic", "program", "pid", "cpu_id", "size"];
  expect(listColumns(own, false).map((column) => [column.kind, column.names])).toEqual([["time", ["time"]], ["delta", ["time"]], ["event", ["name"]], ["cpu", ["cpu_id"]], ["thread", ["procname", "vtid"]], ["fields", []]]);
  expect(fieldNames(own)).toEqual(["vpid", "monotonic", "program", "pid", "size"]);
});

test("cells say what values are", () => {
  expect([null, "a b", 5n, -0.5, true, [1n, "x"], { a: 1n, b: null }, Uint8Array.of(1, 255)].map(cellText)).toEqual([
    "",
    "a b",
    "5",
    "-0.5",
    "true",
    '[1,"x"]',
    '{"a":1,"b":null}',
    '"01ff"',
  ]);
  expect([Number.NaN, Number.POSITIVE_INFINITY, 2n ** 64n - 1n, "\u0000\n"].map(jsonText)).toEqual(['"NaN"', '"Infinity"', "18446744073709551615", '"\\u0000\\n"']);
  expect(deltaText(nanos(1_500), nanos(1_000))).toBe("+500 ns");
  expect(deltaText(nanos(1_500), null)).toBe("");
});

test("fields are told by name where there are any, by labels, and quoted where that is needed", () => {
  const rows = rowsWith({
    time: [int64(), [1n, 2n]],
    kind: [int32(), [5, 6]],
    kind_label: [utf8(), ["CUSTOM", null]],
    "payload.name": [utf8(), ["a b", 'x"y']],
    empty: [utf8(), ["", null]],
    none: [utf8(), [null, null]],
  });
  const fields = filledFields(rows.columns);
  expect(fields).toEqual(["kind", "payload.name", "empty"]);
  expect(fieldsText(named(rows), fields, 0)).toBe('kind=CUSTOM  name="a b"  empty=""');
  expect(fieldsText(named(rows), fields, 1)).toBe('kind=6  name="x\\"y"');
});

test("integers are written in the base that the trace wishes, and in base 10 for programs", () => {
  const columns = {
    time: [int64(), [1n, 2n]],
    name: [dictionary(utf8(), int32()), ["a", "b"]],
    addr: [uint64(), [2n ** 64n - 1n, 0x1234n]],
    flags: [int32(), [10, 10]],
    few: [list(int32()), [[8, 9], null]],
    deep: [struct({ one: int32(), text: utf8() }), [{ one: 15, text: "x" }, { one: 1, text: "y" }]],
  } as const;
  const rows = rowsWith(columns, {
    addr: [{ path: [], base: 16, bits: 64 }],
    flags: [{ path: [], base: 8, bits: 32, events: ["b"] }],
    few: [{ path: [], base: 16, bits: 8 }],
    deep: [{ path: ["one"], base: 16, bits: 8 }],
  });
  const fields = filledFields(rows.columns);
  const told = [0, 1].map((row) => fieldsText(named(rows), fields, row));
  expect(told).toEqual(['addr=0xFFFFFFFFFFFFFFFF  flags=10  few=[0x8,0x9]  deep={"one":0xF,"text":"x"}', 'addr=0x1234  flags=012  deep={"one":0x1,"text":"y"}']);
  expect(fieldText(named(rows), "addr", 1, true)).toBe("4660");
  const [csv, text] = (["csv", "text"] as const).map((format) => pageText(pageWith(rows), format, false, false, CLOCK));
  expect([csv?.includes("addr=4660"), text?.includes("addr=0x1234"), text?.includes("4660")]).toEqual([true, true, false]);
});

test("a thread is its name and its number", () => {
  const rows = rowsWith({ procname: [utf8(), ["nginx", null]], vtid: [int32(), [7, 8]] });
  expect([0, 1].map((row) => threadText(named(rows), ["procname", "vtid"], row))).toEqual(["nginx (7)", "8"]);
  expect(threadText(named(rows), ["vtid"], 0)).toBe("7");
});

test("cells of CSV are quoted as RFC 4180 says", () => {
  expect(["a b", "a,b", 'say "x"', "two\nlines", "\r", ""].map(csvCell)).toEqual(["a b", '"a,b"', '"say ""x"""', '"two\nlines"', '"\r"', ""]);
});

const TOLD = [
  { time: 1_795_219_372_253_260_579n, name: "jobs:begin", cpu: 1, id: 2n ** 60n + 1n, text: 'a,"b"' },
  { time: 1_795_219_372_253_262_079n, name: "jobs:end", cpu: 0, id: 7n },
];

test("rows leave as CSV, as JSON lines with all digits, and as a table of text", () => {
  const page = pageWith(readRows(encodeRows(TOLD).buffer));
  expect(pageText(page, "csv", false, true, CLOCK)).toBe(
    'time_ns,event,cpu,fields\r\n1795219372253260579,jobs:begin,1,"id=1152921504606846977  text=""a,\\""b\\"""""\r\n1795219372253262079,jobs:end,0,id=7\r\n',
  );
  expect(pageText(page, "csv", true, false, CLOCK).split("\r\n")[1]).toBe("1795219372253262079,jobs:end,0,7,");
  const lines = pageText(page, "json", false, true, CLOCK).trimEnd().split("\n");
  expect(lines[0]).toBe('{"time_ns":1795219372253260579,"name":"jobs:begin","cpu_id":1,"id":1152921504606846977,"text":"a,\\"b\\""}');
  expect(JSON.parse(lines[1] ?? "")).toEqual({ time_ns: 1795219372253262079, name: "jobs:end", cpu_id: 0, id: 7 });
  const text = pageText(page, "text", false, true, CLOCK).trimEnd().split("\n");
  expect(text.length).toBe(3);
  expect(text[2]).toMatch(/^ *0\.000001501 s {2}\+1\.500 µs {2}jobs:end {4}0 {4}id=7$/u);
  // All columns begin where their heading does.
  expect(text.map((line) => line.indexOf("jobs:"))).toEqual([-1, text[0]?.indexOf("Event"), text[0]?.indexOf("Event")]);
});

test("rows of one time are told apart by what is in them", () => {
  const rows = readRows(encodeRows([...TOLD, ...TOLD], TOLD_COLUMNS).buffer);
  const contents = contentsOf(rows);
  expect(new Set(contents).size).toBe(2);
  expect(ranksOf(contents, contents.slice(1, 2))).toEqual([1, 3]);
  expect(ranksOf(["a", "b", "c"], [])).toEqual([]);
});
