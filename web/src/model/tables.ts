// Tables that analyses answer with: their columns and cells, exact, with uncertain and unknown values marked.
//
// A large answer has a million cells, and users look at few of its tables: a table's cells are read when they are asked for first.

import { nanos, type Nanos } from "../units/time.ts";
import { ShapeFault, type Shape } from "./json.ts";

/** The class of a column's cells; docs/analyses-json.md says how each is written. A class that is not known here is shown as text. */
export type CellClass = string;

export interface Column {
  readonly name: string;
  readonly title: string;
  readonly of: CellClass;
  readonly unit: string | null;
}

/** Whole numbers are exact, at any size. */
export type Numeric = bigint | number;

export type Cell =
  /** There is nothing to say. */
  | { readonly kind: "empty" }
  /** There is a value, but an unknown one. */
  | { readonly kind: "unknown" }
  | { readonly kind: "flag"; readonly value: boolean }
  | { readonly kind: "text"; readonly value: string }
  /** The truth is not below `low` and not above `high`; `null`: nothing bounds it. Both are the value where it is certain. */
  | { readonly kind: "number"; readonly of: CellClass; readonly value: Numeric; readonly low: Numeric | null; readonly high: Numeric | null }
  | { readonly kind: "time"; readonly value: Nanos }
  | { readonly kind: "process"; readonly name: string | null; readonly pid: number | null; readonly tid: number | null }
  | { readonly kind: "irq"; readonly hard: boolean; readonly number: number; readonly name: string | null }
  /** `null`: it began before the trace, or had not ended with it. */
  | { readonly kind: "range"; readonly begin: Nanos | null; readonly end: Nanos | null };

export type Row = readonly Cell[];

export interface Table {
  /** The stable name, also in later versions. */
  readonly name: string;
  readonly title: string;
  readonly span: Span | null;
  readonly columns: readonly Column[];
  /** Rows that there are beyond these. */
  readonly omitted: number;
  /** All rows that were sent. A cell that is not of its column's class is the text that was sent. */
  readonly rows: readonly Row[];
}

/** From when to when. */
export interface Span {
  readonly begin: Nanos;
  readonly end: Nanos;
}

/** The result of an analysis. */
export interface Answer {
  readonly tables: readonly Table[];
  /** Events that the tracer says it lost; at least so many if `lostMore`. */
  readonly lost: bigint;
  readonly lostMore: boolean;
  readonly lostPackets: bigint;
  /** All of the trace could be read. */
  readonly complete: boolean;
}

export const EMPTY: Cell = { kind: "empty" };
const UNKNOWN: Cell = { kind: "unknown" };
/** Columns of these classes hold numbers, some with bounds. */
const NUMBERS: ReadonlySet<CellClass> = new Set(["number", "duration", "size", "bitrate", "ratio", "fd", "cpu"]);

export function isNumeric(of: CellClass): boolean {
  return NUMBERS.has(of) || of === "timestamp" || of === "time-range";
}

/** The result of an analysis in the server's answer. Throws a `ShapeFault`. */
export function readAnswer(shape: Shape): Answer {
  return {
    tables: shape.get("tables").list().map(readTable),
    lost: shape.get("events_discarded").whole(),
    lostMore: shape.get("events_discarded_is_lower_bound").flag(),
    lostPackets: shape.get("packets_lost").whole(),
    complete: shape.get("complete").flag(),
  };
}

function readTable(shape: Shape): Table {
  const columns = readColumns(shape.get("columns"));
  const span = shape.get("span");
  const rows = shape.get("rows").list();
  // Cells are read later, when no caller could be told any more that they stand in other columns.
  rows.forEach((row) => checkLength(row, columns));
  let read: readonly Row[] | null = null;
  return {
    name: shape.get("class").text(),
    title: shape.get("title").text(),
    span: span.given ? { begin: nanos(span.get("begin").whole()), end: nanos(span.get("end").whole()) } : null,
    columns,
    omitted: shape.get("omitted").number(),
    get rows(): readonly Row[] {
      read ??= rows.map((row) => readRow(row, columns));
      return read;
    },
  };
}

export function readColumns(shape: Shape): Column[] {
  return shape.list().map((column) => ({
    name: column.get("name").text(),
    title: column.get("title").text(),
    of: column.get("class").text(),
    unit: column.get("unit").given ? column.get("unit").text() : null,
  }));
}

function checkLength(row: Shape, columns: readonly Column[]): void {
  if (row.length !== columns.length) {
    throw new ShapeFault(`a row has ${row.length} cells; its table has ${columns.length} columns`);
  }
}

function readRow(shape: Shape, columns: readonly Column[]): Row {
  return shape.list().map((cell, index) => readAnyCell(cell, columns[index]?.of ?? "string"));
}

/** A cell of a column of that class; if it is none, the text that was sent instead. */
function readAnyCell(shape: Shape, of: CellClass): Cell {
  try {
    return readCell(shape, of);
  } catch (error) {
    if (!(error instanceof ShapeFault)) {
      throw error;
    }
    return { kind: "text", value: shape.written };
  }
}

/** A cell of a column of that class. Throws a `ShapeFault`. */
export function readCell(shape: Shape, of: CellClass): Cell {
  if (!shape.given) {
    return EMPTY;
  }
  if (shape.isObject && shape.get("unknown").given) {
    return UNKNOWN;
  }
  switch (of) {
    case "mixed":
      return readCell(shape.get("value"), shape.get("class").text());
    case "bool":
      return { kind: "flag", value: shape.flag() };
    case "timestamp":
      return { kind: "time", value: nanos(shape.whole()) };
    case "process":
      return { kind: "process", name: textOf(shape.get("name")), pid: numberOf(shape.get("pid")), tid: numberOf(shape.get("tid")) };
    case "irq":
      return { kind: "irq", hard: shape.get("hard").flag(), number: shape.get("number").number(), name: textOf(shape.get("name")) };
    case "time-range":
      return { kind: "range", begin: timeOf(shape.get("begin")), end: timeOf(shape.get("end")) };
    default:
      return NUMBERS.has(of) ? readNumber(shape, of) : { kind: "text", value: shape.label() };
  }
}

function readNumber(shape: Shape, of: CellClass): Cell {
  if (!shape.isObject) {
    const value = shape.numeric();
    return { kind: "number", of, value, low: value, high: value };
  }
  const bound = (name: string): Numeric | null => (shape.get(name).given ? shape.get(name).numeric() : null);
  return { kind: "number", of, value: shape.get("value").numeric(), low: bound("low"), high: bound("high") };
}

function textOf(shape: Shape): string | null {
  return shape.given ? shape.text() : null;
}

function numberOf(shape: Shape): number | null {
  return shape.given ? shape.number() : null;
}

function timeOf(shape: Shape): Nanos | null {
  return shape.given ? nanos(shape.whole()) : null;
}

/** Whether nothing is in doubt about a number. */
export function isCertain(cell: Cell): boolean {
  return cell.kind !== "number" || (cell.low === cell.value && cell.high === cell.value);
}

/** The number of a cell when it is sorted, drawn or compared; `null`: it is no number. */
export function quantity(cell: Cell | undefined): Numeric | null {
  switch (cell?.kind) {
    case "number":
      return cell.value;
    case "time":
      return cell.value;
    case "range":
      return cell.begin ?? cell.end;
    case "flag":
      return cell.value ? 1 : 0;
    default:
      return null;
  }
}

/** The same as a double: near enough for drawing. */
export function double(cell: Cell | undefined): number | null {
  const found = quantity(cell);
  return found === null ? null : Number(found);
}

/** The place of a column by its name; -1: there is none. */
export function columnAt(table: Pick<Table, "columns">, name: string): number {
  return table.columns.findIndex((column) => column.name === name);
}

/** The table with no other columns than those of these names. */
export function narrowed(table: Table, names: readonly string[]): Table {
  const places = names.map((name) => columnAt(table, name)).filter((place) => place >= 0);
  return {
    ...table,
    columns: places.flatMap((place) => table.columns[place] ?? []),
    rows: table.rows.map((row) => places.flatMap((place) => row[place] ?? [])),
  };
}

/** When the subject of a row happens: one of its times, or all from the first to the last of them; `null` if it has none. */
export function spanOfRow(table: Pick<Table, "columns">, row: Row): Span | null {
  const range = row.find((cell) => cell.kind === "range");
  if (range?.kind === "range" && (range.begin ?? range.end) !== null) {
    const [begin, end] = [range.begin ?? range.end, range.end ?? range.begin];
    return begin === null || end === null ? null : { begin, end };
  }
  const times = row.flatMap((cell) => (cell.kind === "time" ? [cell.value] : []));
  const [first, second] = times;
  if (first === undefined) {
    return null;
  }
  if (second !== undefined && second >= first) {
    return { begin: first, end: second };
  }
  // A row with a begin and a duration.
  const lasts = table.columns.findIndex((column) => column.of === "duration");
  const cell = row[lasts];
  const span = cell?.kind === "number" && typeof cell.value === "bigint" ? cell.value : 0n;
  return { begin: first, end: nanos(first + span) };
}
