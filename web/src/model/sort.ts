// Which rows of a table are shown, and in which order: sorted by a column, chosen by the typed text.

import { cellText, typedNumber } from "./cells.ts";
import type { Clock } from "./clock.ts";
import { double, isNumeric, quantity, type Cell, type Row, type Table } from "./tables.ts";

export interface Sorting {
  /** The place of a column. */
  readonly column: number;
  readonly descending: boolean;
}

/** Rows in the order of a column. Those of which it says nothing come last in either direction; equal ones stay as they were. */
export function sorted(rows: readonly Row[], sorting: Sorting | null): readonly Row[] {
  if (sorting === null) {
    return rows;
  }
  const { column, descending } = sorting;
  const keys = new Map(rows.map((row) => [row, sortKey(row[column])]));
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [left, right] = [keys.get(one) ?? null, keys.get(other) ?? null];
    if (left === null || right === null) {
      return left === right ? 0 : left === null ? 1 : -1;
    }
    return sign * compared(left, right);
  });
}

type Key = bigint | number | string;

function sortKey(cell: Cell | undefined): Key | null {
  const found = quantity(cell);
  if (found !== null || cell === undefined) {
    return found;
  }
  switch (cell.kind) {
    case "text":
      return cell.value;
    case "process":
      return cell.name ?? String(cell.tid ?? cell.pid ?? "");
    case "irq":
      return `${cell.hard ? 0 : 1} ${String(cell.number).padStart(6, "0")}`;
    default:
      return null;
  }
}

function compared(left: Key, right: Key): number {
  if (typeof left === "string" || typeof right === "string") {
    const [one, other] = [String(left), String(right)];
    return one < other ? -1 : one > other ? 1 : 0;
  }
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Which direction one wants first: the most of numbers, the begin of texts and times. */
export function firstSorting(table: Pick<Table, "columns">, column: number): Sorting {
  const of = table.columns[column]?.of ?? "string";
  return { column, descending: isNumeric(of) && !["timestamp", "time-range", "cpu", "fd"].includes(of) };
}

/** The effect of a click on a column header: sorts, turns it around, sorts no more. */
export function nextSorting(table: Pick<Table, "columns">, before: Sorting | null, column: number): Sorting | null {
  const first = firstSorting(table, column);
  if (before === null || before.column !== column) {
    return first;
  }
  return before.descending === first.descending ? { column, descending: !first.descending } : null;
}

/** Keeps the rows that a text fits, in one column or (`null`) in any. */
export type Sieve = (row: Row) => boolean;

/** Of numbers a text may say a range: "> 5ms", "<= 3", "10..20"; all else is a part of the cell's text, in any case. */
export function sieveOf(text: string, column: number | null, clock: Clock): Sieve {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") {
    return () => true;
  }
  const fits = rangeOf(wanted);
  if (column !== null && fits !== null) {
    return (row) => {
      const value = double(row[column]);
      return value !== null && fits(value);
    };
  }
  const has = (cell: Cell | undefined): boolean => cell !== undefined && cellText(cell, clock).toLowerCase().includes(wanted);
  return (row) => (column === null ? row.some(has) : has(row[column]));
}

function rangeOf(text: string): ((value: number) => boolean) | null {
  const [, sign, limit] = /^(<=|>=|<|>|=)(.+)$/.exec(text) ?? [];
  const bound = limit === undefined ? null : typedNumber(limit);
  if (sign !== undefined && bound !== null) {
    return (value) => (sign === "<" ? value < bound : sign === "<=" ? value <= bound : sign === ">" ? value > bound : sign === ">=" ? value >= bound : value === bound);
  }
  const [low, high] = text.split("..").map(typedNumber);
  return low === undefined || high === undefined || low === null || high === null ? null : (value) => value >= low && value <= high;
}
