// The text of cells of tables: for people, exactly and with their units; and for programs, as `kymo KIND --csv` and `--json` write them.

import { nanos, type Nanos } from "../units/time.ts";
import { spelled, timeText, type Clock } from "./clock.ts";
import { isCertain, type Cell, type CellClass, type Column, type Numeric, type Table } from "./tables.ts";

const NARROW = "\u202f";

/** A whole number in groups of three digits. */
export function grouped(value: bigint | number): string {
  return value.toLocaleString("en").replaceAll(",", NARROW);
}

/** A duration to the nanosecond, in the units that suit it: "1.479 037 ms", "1 h 1 min 1.000 000 001 s". */
export function exactDuration(span: bigint): string {
  const size = span < 0n ? -span : span;
  if (size >= 1_000_000_000n) {
    return spelled(span, 9);
  }
  const [unit, places] = size < 1_000n ? ["ns", 0] : size < 1_000_000n ? ["µs", 3] : ["ms", 6];
  const sign = span < 0n ? "−" : "";
  const part = 10n ** BigInt(places);
  const fraction = (size % part).toString().padStart(places, "0").replace(/(\d{3})(?=\d)/g, `$1${NARROW}`);
  return places === 0 ? `${sign}${size} ns` : `${sign}${grouped(size / part)}.${fraction} ${unit}`;
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** So many bytes, or bits: whole ones as long as they are few, else four digits. */
function sizeText(value: number, units: readonly string[], step: number): string {
  let [size, unit] = [Math.abs(value), 0];
  while (size >= step * 10 && unit + 1 < units.length) {
    size /= step;
    unit++;
  }
  const digits = unit === 0 ? (Number.isInteger(size) ? grouped(size) : size.toPrecision(4)) : size < 1000 ? size.toPrecision(4) : grouped(Math.round(size));
  return `${value < 0 ? "−" : ""}${digits} ${units[unit] ?? ""}`;
}

/** A number of some class, with its unit. */
export function numberText(value: Numeric, of: CellClass): string {
  if (value === Infinity || value === -Infinity) {
    return value > 0 ? "∞" : "−∞";
  }
  switch (of) {
    case "duration":
      return typeof value === "bigint" ? exactDuration(value) : `${value} ns`;
    case "size":
      return sizeText(Number(value), SIZES, 1024);
    case "bitrate":
      return sizeText(Number(value), ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], 1000);
    case "ratio":
      return `${(Number(value) * 100).toFixed(2)} %`;
    default:
      return typeof value === "bigint" ? grouped(value) : String(value);
  }
}

/** The text of a cell; times as the page writes them. */
export function cellText(cell: Cell, clock: Clock): string {
  switch (cell.kind) {
    case "empty":
      return "";
    case "unknown":
      return "unknown";
    case "flag":
      return cell.value ? "yes" : "no";
    case "text":
      return cell.value;
    case "number":
      return isCertain(cell) ? numberText(cell.value, cell.of) : `${numberText(cell.value, cell.of)} ${boundsText(cell)}`;
    case "time":
      return timeText(clock, cell.value);
    case "process":
      return processText(cell);
    case "irq":
      return `${cell.hard ? "irq" : "softirq"} ${cell.number}${cell.name === null ? "" : ` (${cell.name})`}`;
    case "range":
      return rangeText(cell.begin, cell.end, clock);
  }
}

function boundsText({ of, low, high }: Cell & { readonly kind: "number" }): string {
  const text = (bound: Numeric | null): string => (bound === null ? "?" : numberText(bound, of));
  return `[${text(low)}..${text(high)}]`;
}

function processText({ name, pid, tid }: Cell & { readonly kind: "process" }): string {
  if (tid === 0) {
    return "idle";
  }
  const number = tid ?? pid;
  return name === null ? (number === null ? "unknown" : String(number)) : number === null ? name : `${name} (${number})`;
}

function rangeText(begin: Nanos | null, end: Nanos | null, clock: Clock): string {
  if (begin === null || end === null) {
    return begin === null ? `… ${end === null ? "…" : timeText(clock, end)}` : `${timeText(clock, begin)} …`;
  }
  return `${timeText(clock, begin)} + ${exactDuration(end - begin)}`;
}

/** The details of a cell that do not fit into it; empty: none. */
export function cellHint(cell: Cell): string {
  switch (cell.kind) {
    case "number":
      return [cell.of === "size" ? `${grouped(cell.value)} bytes` : cell.of === "ratio" ? String(cell.value) : "", isCertain(cell) ? "" : "The truth is not outside of the bounds in brackets."]
        .filter((part) => part !== "")
        .join(". ");
    case "process":
      return [cell.pid === null ? "" : `process ${cell.pid}`, cell.tid === null ? "" : `thread ${cell.tid}`].filter((part) => part !== "").join(", ");
    case "unknown":
      return "There is activity here, but the trace does not identify it.";
    default:
      return "";
  }
}

/** How many rows are shown of how many. */
export function countText(table: Table, shown: number): string {
  const all = table.rows.length + table.omitted;
  const of = shown === all ? "" : ` of ${grouped(all)}`;
  const rest = table.omitted > 0 ? ` (${grouped(table.omitted)} ${table.omitted === 1 ? "is" : "are"} not asked for)` : "";
  return `${grouped(shown)}${of} ${all === 1 ? "row" : "rows"}${rest}`;
}

/** An unknown value, in CSV. */
const UNKNOWN = "NA";

/** Rows as lines with CRLF, as RFC 4180 and docs/analyses-json.md have them. */
export function csvOf(table: Pick<Table, "columns">, rows: readonly (readonly Cell[])[]): string {
  const wide = table.columns.map((_, index) => rows.some((row) => row[index] !== undefined && !isCertain(row[index])));
  const head = table.columns.flatMap((column, index) => csvNames(column, wide[index] ?? false));
  const lines = rows.map((row) => row.flatMap((cell, index) => csvFields(cell, table.columns[index], wide[index] ?? false)));
  return [head, ...lines].map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

function csvNames({ name, of }: Column, isWide: boolean): string[] {
  const parts: Readonly<Record<string, readonly string[]>> = { process: ["", "_pid", "_tid"], irq: ["", "_number", "_hard"], "time-range": ["_begin", "_end"] };
  return (parts[of] ?? (isWide ? ["", "_low", "_high"] : [""])).map((part) => `${name}${part}`);
}

function csvFields(cell: Cell, column: Column | undefined, isWide: boolean): string[] {
  const count = column === undefined ? 1 : csvNames(column, isWide).length;
  const text = (value: Numeric | string | null): string => (value === null ? "" : value === Infinity ? "inf" : value === -Infinity ? "-inf" : String(value));
  switch (cell.kind) {
    case "empty":
    case "unknown":
      return new Array<string>(count).fill(cell.kind === "unknown" ? UNKNOWN : "");
    case "flag":
      return [String(cell.value)];
    case "text":
      return [cell.value];
    case "number":
      return isWide ? [text(cell.value), text(cell.low ?? -Infinity), text(cell.high ?? Infinity)] : [text(cell.value)];
    case "time":
      return [text(cell.value)];
    case "process":
      return [cell.name, cell.pid, cell.tid].map((part) => (part === null ? UNKNOWN : String(part)));
    case "irq":
      return [cell.name ?? UNKNOWN, text(cell.number), String(cell.hard)];
    case "range":
      return [text(cell.begin), text(cell.end)];
  }
}

function quoted(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

/** A table with these rows as JSON, as the server writes it: whole numbers of any size. */
export function jsonOf(table: Table, rows: readonly (readonly Cell[])[]): string {
  const columns = table.columns.map(({ name, title, of, unit }) => JSON.stringify({ name, title, class: of, unit }));
  const lines = rows.map((row) => `    [${row.map((cell, index) => cellJson(cell, table.columns[index]?.of === "mixed")).join(", ")}]`);
  const span = table.span === null ? "null" : `{"begin": ${table.span.begin}, "end": ${table.span.end}}`;
  const omitted = table.omitted + table.rows.length - rows.length;
  const head = `"class": ${JSON.stringify(table.name)}, "title": ${JSON.stringify(table.title)}, "span": ${span}, "omitted": ${omitted}`;
  return `{\n  ${head},\n  "columns": [${columns.join(", ")}],\n  "rows": [\n${lines.join(",\n")}\n  ]\n}\n`;
}

function cellJson(cell: Cell, isMixed: boolean): string {
  const plain = plainJson(cell);
  const of = cell.kind === "number" ? cell.of : MIXED[cell.kind];
  return isMixed && of !== undefined ? `{"class": ${JSON.stringify(of)}, "value": ${plain}}` : plain;
}

/** The class of a cell that may be of any. */
const MIXED: Readonly<Partial<Record<Cell["kind"], CellClass>>> = { flag: "bool", text: "string", time: "timestamp", process: "process", irq: "irq", range: "time-range" };

function plainJson(cell: Cell): string {
  const number = (value: Numeric | null): string => (value === null ? "null" : value === Infinity ? '"inf"' : value === -Infinity ? '"-inf"' : String(value));
  switch (cell.kind) {
    case "empty":
      return "null";
    case "unknown":
      return '{"unknown": true}';
    case "flag":
      return String(cell.value);
    case "text":
      return JSON.stringify(cell.value);
    case "number":
      return isCertain(cell) ? number(cell.value) : `{"value": ${number(cell.value)}, "low": ${number(cell.low)}, "high": ${number(cell.high)}}`;
    case "time":
      return number(cell.value);
    case "process":
      return `{"name": ${JSON.stringify(cell.name)}, "pid": ${number(cell.pid)}, "tid": ${number(cell.tid)}}`;
    case "irq":
      return `{"hard": ${cell.hard}, "number": ${cell.number}, "name": ${JSON.stringify(cell.name)}}`;
    case "range":
      return `{"begin": ${number(cell.begin)}, "end": ${number(cell.end)}}`;
  }
}

const UNITS: Readonly<Record<string, number>> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, "%": 0.01, k: 1e3, kib: 1024, mib: 2 ** 20, gib: 2 ** 30, b: 1 };

/** A number as people type it: "12.5ms", "1k", "40 %"; `null` if it is none. Of durations a plain one means nanoseconds. */
export function typedNumber(text: string): number | null {
  const [, digits, unit] = /^\s*(-?\d[\d_ ]*(?:\.\d+)?)\s*([a-zµ%]*)\s*$/i.exec(text) ?? [];
  const factor = unit === undefined || unit === "" ? 1 : UNITS[unit.toLowerCase()];
  return digits === undefined || factor === undefined ? null : Number(digits.replace(/[_ ]/g, "")) * factor;
}

/** A duration that the user typed; `null` if it is none. */
export function typedDuration(text: string): Nanos | null {
  const found = typedNumber(text);
  return found === null || found < 0 || !Number.isFinite(found) ? null : nanos(Math.round(found));
}
