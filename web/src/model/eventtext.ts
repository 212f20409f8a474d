// Events as text: the cells of a list, and rows as CSV, as JSON and as a table of text. Numbers have all their digits.

import { nanos, type Nanos } from "../units/time.ts";
import type { Column } from "./arrow.ts";
import { baseAt, integerText, type FieldBase } from "./bases.ts";
import { duration, timeText, type Clock } from "./clock.ts";
import { fieldNames, listColumns, named, titleOf, type EventPage, type ListColumn, type Named } from "./events.ts";

/** In which form rows leave the page. */
export type RowFormat = "csv" | "json" | "text";

/** A value as one reads it; empty: there is none. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) {
    return "";
  }
  if (typeof value === "string") {
    return value;
  }
  return typeof value === "object" ? jsonText(value) : String(value);
}

/** A value as JSON, with all digits of whole numbers; bytes as text of hexadecimal digits. */
export function jsonText(value: unknown): string {
  if (value === null || value === undefined) {
    return "null";
  }
  if (typeof value === "bigint") {
    return String(value);
  }
  if (value instanceof Uint8Array) {
    return JSON.stringify([...value].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
  }
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    return `[${[...(value as Iterable<unknown>)].map(jsonText).join(",")}]`;
  }
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`).join(",")}}`;
  }
  // A value that is not finite, as infinity, is a text: JSON has no word for it.
  return typeof value === "number" && !Number.isFinite(value) ? JSON.stringify(String(value)) : JSON.stringify(value);
}

/** A value of a column as one reads it, with its integers in the bases that the trace wishes. */
function shownText(value: unknown, bases: readonly FieldBase[], event: string | null, path: readonly string[] = []): string {
  const of = baseAt(bases, path, event);
  if (typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value) && of !== null)) {
    return integerText(BigInt(value), of);
  }
  if (Array.isArray(value) || (of !== null && ArrayBuffer.isView(value))) {
    return `[${[...(value as Iterable<unknown>)].map((one) => shownText(one, bases, event, path)).join(",")}]`;
  }
  if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    return `{${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${shownText(member, bases, event, [...path, name])}`).join(",")}}`;
  }
  // Within others a text has quotes.
  return path.length === 0 && typeof value === "string" ? value : jsonText(value);
}

/** The text of a field in a row: where the trace has a name for the value, that name. `isPlain`: numbers are in base 10, for programs. */
export function fieldText(columns: Named, name: string, row: number, isPlain = false): string {
  const label = cellText(columns.get(`${name}_label`)?.at(row));
  const [value, bases] = [columns.get(name)?.at(row), columns.get(name)?.bases ?? []];
  const event = columns.get("name")?.at(row);
  const isShown = label === "" && !isPlain && bases.length > 0 && value !== null;
  const text = isShown ? shownText(value, bases, typeof event === "string" ? event : null) : label === "" ? cellText(value) : label;
  return text === "" ? cellText(columns.get(`${name}_bytes`)?.at(row)) : text;
}

/** All fields that a row has, as `name=value`. */
export function fieldsText(columns: Named, names: readonly string[], row: number, isPlain = false): string {
  const found: string[] = [];
  for (const name of names) {
    const value = columns.get(name)?.at(row) ?? null;
    if (value !== null || columns.has(`${name}_bytes`)) {
      const text = fieldText(columns, name, row, isPlain);
      const isBare = typeof value !== "string" || /^[^\s"=]+$/.test(text);
      found.push(value === null && text === "" ? "" : `${titleOf(name)}=${isBare ? text : JSON.stringify(text)}`);
    }
  }
  return found.filter((text) => text !== "").join("  ");
}

/** The names of fields that any of some rows has: most fields of a kernel's events are empty in most pages. */
export function filledFields(columns: readonly Column[]): readonly string[] {
  const all = columns.map((column) => column.name);
  const empty = new Set(columns.filter((column) => column.isEmpty).map((column) => column.name));
  return fieldNames(all).filter((name) => !empty.has(name) || (all.includes(`${name}_bytes`) && !empty.has(`${name}_bytes`)));
}

/** A thread as its name and its number. */
export function threadText(columns: Named, names: readonly string[], row: number): string {
  const [name = "", number = ""] = names.map((one) => cellText(columns.get(one)?.at(row)));
  return number === "" ? name : name === "" ? number : `${name} (${number})`;
}

/** The time since the row before. */
export function deltaText(time: Nanos, before: Nanos | null): string {
  return before === null ? "" : `+${duration(nanos(time - before), 6)}`;
}

/** One cell as the list shows it, and as CSV has it: `clock` is `null` for exact times. */
function textOf(column: ListColumn, page: EventPage, columns: Named, fields: readonly string[], row: number, clock: Clock | null): string {
  const time = nanos(page.times[row] ?? 0n);
  switch (column.kind) {
    case "time":
      // Groups of digits help the eye, and get into the way of a search in the copied text.
      return clock === null ? String(time) : timeText(clock, time).replaceAll("\u202f", "");
    case "delta":
      return deltaText(time, row === 0 ? null : nanos(page.times[row - 1] ?? 0n));
    case "thread":
      return threadText(columns, column.names, row);
    case "fields":
      return fieldsText(columns, fields, row, clock === null);
    default:
      return fieldText(columns, column.names[0] ?? "", row, clock === null);
  }
}

/** RFC 4180: quotes where a comma, a quote or the end of a line would be misread. */
export function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/** The names of CSV columns, by their kinds. */
const CSV_NAMES: Partial<Record<ListColumn["kind"], string>> = { time: "time_ns", event: "event", cpu: "cpu", fields: "fields" };

/** Columns as CSV has them: times exact, and no more columns than the user wants to read. */
function csvColumns(page: EventPage, single: boolean): readonly ListColumn[] {
  const all = page.rows.columns.map((column) => column.name);
  const columns = listColumns(all, single).filter((column) => column.kind !== "delta");
  return columns.flatMap((column) => (column.kind === "thread" ? column.names.map((name): ListColumn => ({ kind: "field", title: name, names: [name] })) : [column]));
}

/** Some rows of a page, from one to before another one. */
export interface Part {
  readonly first: number;
  readonly end: number;
}

/** Rows of a page, all or a part of them, in one of the forms. A heading is there where one is asked for. */
export function pageText(page: EventPage, format: RowFormat, single: boolean, heading: boolean, clock: Clock, part?: Part): string {
  const { first, end } = part ?? { first: 0, end: page.rows.count };
  const rows = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
  switch (format) {
    case "csv":
      return csvText(page, rows, single, heading);
    case "json":
      return jsonLines(page, rows);
    case "text":
      return tableText(page, rows, single, clock);
  }
}

function csvText(page: EventPage, rows: readonly number[], single: boolean, heading: boolean): string {
  const columns = csvColumns(page, single);
  const [cells, fields] = [named(page.rows), filledFields(page.rows.columns)];
  const head = heading ? csvLine(columns.map((column) => CSV_NAMES[column.kind] ?? column.title)) : "";
  return head + rows.map((row) => csvLine(columns.map((column) => textOf(column, page, cells, fields, row, null)))).join("");
}

/** An object for each row in a line of its own, with the fields that the row has. */
function jsonLines(page: EventPage, rows: readonly number[]): string {
  const columns = page.rows.columns.filter((column) => !column.isEmpty && column.name !== "time");
  const line = (row: number): string => {
    const members = columns.flatMap((column) => {
      const value = column.at(row);
      return value === null ? [] : [`${JSON.stringify(column.name)}:${jsonText(value)}`];
    });
    return `{${[`"time_ns":${page.times[row]}`, ...members].join(",")}}\n`;
  };
  return rows.map(line).join("");
}

/** A table of aligned columns, as the list shows them. */
function tableText(page: EventPage, rows: readonly number[], single: boolean, clock: Clock): string {
  const columns = listColumns(page.rows.columns.map((column) => column.name), single);
  const [cells, fields] = [named(page.rows), filledFields(page.rows.columns)];
  const lines = [columns.map((column) => column.title), ...rows.map((row) => columns.map((column) => textOf(column, page, cells, fields, row, clock)))];
  const widths = columns.map((_, index) => lines.reduce((most, line) => Math.max(most, line[index]?.length ?? 0), 0));
  const isNumber = (index: number): boolean => columns[index]?.kind === "time" || columns[index]?.kind === "delta";
  const padded = (text: string, index: number): string => (isNumber(index) ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0));
  return lines.map((line) => `${line.map(padded).join("  ").trimEnd()}\n`).join("");
}
