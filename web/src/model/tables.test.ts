import { expect, test } from "vitest";
import { nanos } from "../units/time.ts";
import { cellHint, cellText, countText, csvOf, exactDuration, jsonOf, typedDuration, typedNumber } from "./cells.ts";
import type { Clock } from "./clock.ts";
import { Shape, ShapeFault, parseJson } from "./json.ts";
import { firstSorting, nextSorting, sieveOf, sorted } from "./sort.ts";
import { readAnswer, spanOfRow, type Answer, type Cell, type Table } from "./tables.ts";

const BEGIN = 1_795_219_372_253_260_578n;
const clock: Clock = { origin: nanos(BEGIN), unix: true, zone: "UTC", style: "relative" };

/** An answer with one table, of columns such as `time:timestamp`. */
function answerOf(columns: string, rows: string, omitted = 0): Answer {
  const list = columns.split(" ").map((column) => column.split(":"));
  const heads = list.map(([name, of]) => `{"name":"${name}","title":"${name}","class":"${of}","unit":null}`);
  const table = `{"class":"t","title":"T","span":{"begin":${BEGIN},"end":${BEGIN + 5n}},"omitted":${omitted},"columns":[${heads.join(",")}],"rows":${rows}}`;
  return readAnswer(new Shape(parseJson(`{"tables":[${table}],"events_discarded":3,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}`), "result"));
}

function tableOf(columns: string, rows: string, omitted = 0): Table {
  const [table] = answerOf(columns, rows, omitted).tables;
  if (table === undefined) {
    throw new Error("there is no table");
  }
  return table;
}

function textsOf(table: Table): string[] {
  return table.rows.flatMap((row) => row.map((cell) => plain(cellText(cell, clock))));
}

/** Digits stand in groups; tests are easier to read with plain spaces. */
function plain(text: string): string {
  return text.replaceAll("\u202f", " ");
}

test("cells are exact, and say what is not certain and what nobody knows", () => {
  const columns = "a:number b:duration c:size d:ratio e:timestamp f:process g:irq h:time-range i:mixed j:string k:bool l:cpu";
  const rows = `[[18446744073709551615, {"value": 17, "low": 12, "high": null}, 3404410, 0.22852774, ${BEGIN + 1_500n}, {"name": "bash", "pid": 7, "tid": 8},
    {"hard": false, "number": 9, "name": null}, {"begin": ${BEGIN}, "end": null}, {"class": "duration", "value": 61000000001}, "x, y", true, 3],
    [{"unknown": true}, null, "inf", 0, null, {"name": null, "pid": null, "tid": 0}, null, null, null, null, null, null]]`;
  expect(textsOf(tableOf(columns, rows))).toEqual([
    ...["18 446 744 073 709 551 615", "17 ns [12 ns..?]", "3 325 KiB", "22.85 %", "0.000 001 500 s", "bash (8)", "softirq 9", "0.000 000 000 s …", "1 min 1.000 000 001 s", "x, y", "yes", "3"],
    ...["unknown", "", "∞", "0.00 %", "", "idle", "", "", "", "", "", ""],
  ]);
});

test("what does not fit into a cell is said beside it", () => {
  const [row] = tableOf("a:size b:duration c:number", `[[3404410, {"value": 17, "low": 12, "high": 20}, {"unknown": true}]]`).rows;
  expect((row ?? []).map((cell) => plain(cellHint(cell)))).toEqual(["3 404 410 bytes", "The truth is not outside of the bounds in brackets.", "There is activity here, but the trace does not identify it."]);
});

test("a table with rows of other lengths than its columns is refused at once", () => {
  expect(() => tableOf("a:number", "[[1], [1, 2]]")).toThrow(new ShapeFault("a row has 2 cells; its table has 1 columns"));
  expect(() => tableOf("a:number", "[7]")).toThrow(new ShapeFault("result.tables[0].rows[0]: found 7, expected a list"));
});

test("a cell that is not what its column says is the text that was sent", () => {
  expect(textsOf(tableOf("a:number b:process c:irq d:mixed e:string", '[["x", 4, {"hard": 1}, {"value": 3}, ["y"]]]'))).toEqual(['"x"', "4", '{"hard":1}', '{"value":3}', '["y"]']);
});

test("numbers that no whole number can say exactly are numbers all the same", () => {
  const [row] = tableOf("a:number b:ratio c:bitrate d:duration", '[[9007199254740992.0, 1e300, {"value": 1.8e19, "low": 1e16, "high": null}, 12345678901234567890]]').rows;
  expect((row ?? []).map((cell) => (cell.kind === "number" ? cell.value : cell.kind))).toEqual([9_007_199_254_740_992, 1e300, 1.8e19, 12_345_678_901_234_567_890n]);
  expect((row ?? []).map((cell) => plain(cellText(cell, clock)))).toEqual(["9007199254740992", "1e+302 %", "18 000 000 Tbit/s [10 000 Tbit/s..?]", "142889 d 19 h 15 min 1.234 567 890 s"]);
});

test.each([
  [0n, "0 ns"],
  [1_234n, "1.234 µs"],
  [1_479_037n, "1.479 037 ms"],
  [3_661_000_000_001n, "1 h 1 min 1.000 000 001 s"],
  [-2_000n, "−2.000 µs"],
])("%d ns is exactly %s", (span, text) => {
  expect(plain(exactDuration(span))).toBe(text);
});

test("CSV is what `kymo KIND --csv` prints", () => {
  const table = tableOf("a:number b:process c:irq d:time-range e:string", `[[{"value": 17, "low": 12, "high": null}, {"name": "a,b", "pid": 1, "tid": null}, {"hard": true, "number": 3, "name": "e"}, {"begin": 1, "end": 2}, "q\\"q"], [4, {"unknown": true}, null, null, null]]`);
  expect(csvOf(table, table.rows)).toBe('a,a_low,a_high,b,b_pid,b_tid,c,c_number,c_hard,d_begin,d_end,e\r\n17,12,inf,"a,b",1,NA,e,3,true,1,2,"q""q"\r\n4,4,4,NA,NA,NA,,,,,,\r\n');
});

test("JSON says the same again, whatever the size of its numbers", () => {
  const rows = `[[18446744073709551615, {"value": 17, "low": 12, "high": null}, {"class": "duration", "value": 5}, {"name": null, "pid": 1, "tid": 2}], [{"unknown": true}, null, "inf", null]]`;
  const table = tableOf("a:number b:duration c:mixed d:process", rows.replace('"inf"', "null"), 4);
  const again = parseJson(jsonOf(table, table.rows)) as { rows: unknown; omitted: number; class: string };
  expect([again.rows, again.omitted, again.class]).toEqual([parseJson(rows.replace('"inf"', "null")), 4, "t"]);
  expect((parseJson(jsonOf(table, table.rows.slice(1))) as { omitted: number }).omitted).toBe(5);
});

const NUMBERS = tableOf("n:duration s:string", `[[20, "b"], [null, "none"], [9007199254740993, "big"], [9007199254740992, "c"], [3, "a"]]`);
const names = (rows: readonly (readonly Cell[])[]): string[] => rows.map((row) => (row[1]?.kind === "text" ? row[1].value : ""));

test("rows are sorted exactly, and those of which nothing is said come last", () => {
  expect(names(sorted(NUMBERS.rows, { column: 0, descending: true }))).toEqual(["big", "c", "b", "a", "none"]);
  expect(names(sorted(NUMBERS.rows, { column: 0, descending: false }))).toEqual(["a", "b", "c", "big", "none"]);
  expect(names(sorted(NUMBERS.rows, { column: 1, descending: false }))).toEqual(["a", "b", "big", "c", "none"]);
  expect(sorted(NUMBERS.rows, null)).toBe(NUMBERS.rows);
});

test("a column sorts, turns around, and sorts no more", () => {
  const first = firstSorting(NUMBERS, 0);
  expect(first).toEqual({ column: 0, descending: true });
  const second = nextSorting(NUMBERS, first, 0);
  expect(second).toEqual({ column: 0, descending: false });
  expect(nextSorting(NUMBERS, second, 0)).toBeNull();
  expect(nextSorting(NUMBERS, second, 1)).toEqual({ column: 1, descending: false });
});

test.each([
  ["", null, ["b", "none", "big", "c", "a"]],
  ["A", null, ["a"]],
  ["BIG", 1, ["big"]],
  ["> 3", 0, ["b", "big", "c"]],
  [">= 3 ns", 0, ["b", "big", "c", "a"]],
  ["3..0.02us", 0, ["b", "a"]],
  ["= 20", 0, ["b"]],
  ["< 10s", 0, ["b", "a"]],
] as const)("%j in column %j keeps %j", (text, column, kept) => {
  expect(names(NUMBERS.rows.filter(sieveOf(text, column, clock)))).toEqual(kept);
});

test("numbers are read as people type them", () => {
  expect(["12.5ms", "1k", "40 %", "1_000", "2 KiB", "-3", "x", "1x", ""].map(typedNumber)).toEqual([12_500_000, 1_000, 0.4, 1_000, 2_048, -3, null, null, null]);
  expect([typedDuration("1.5 us"), typedDuration("-1"), typedDuration("long")]).toEqual([1_500n, null, null]);
});

test("a row says when what it is about happens", () => {
  const of = (columns: string, row: string): string | null => {
    const table = tableOf(columns, `[${row}]`);
    const span = spanOfRow(table, table.rows[0] ?? []);
    return span === null ? null : `${span.begin}-${span.end}`;
  };
  expect(of("time:time-range duration:duration", `[{"begin": 5, "end": 9}, 4]`)).toBe("5-9");
  expect(of("time:time-range", `[{"begin": null, "end": 9}]`)).toBe("9-9");
  expect(of("latency:duration begin:timestamp end:timestamp parent:timestamp", "[4, 5, 9, 2]")).toBe("5-9");
  expect(of("woken:timestamp latency:duration", "[5, 4]")).toBe("5-9");
  expect(of("begin:timestamp key:string", '[5, "x"]')).toBe("5-5");
  expect(of("name:string total:duration", '["x", 4]')).toBeNull();
});

test("it is said how many rows are shown of how many", () => {
  const said = (rows: string, omitted: number, shown: number): string => plain(countText(tableOf("a:number", rows, omitted), shown));
  expect([said("[]", 0, 0), said("[[1]]", 0, 1), said("[[1], [2]]", 0, 1), said("[[1], [2]]", 4_000, 2)]).toEqual(["0 rows", "1 row", "1 of 2 rows", "2 of 4 002 rows (4 000 are not asked for)"]);
});

test("what is lost stands with the tables", () => {
  expect(answerOf("a:number", "[]")).toMatchObject({ lost: 3n, lostMore: false, lostPackets: 0n, complete: true });
});
