// The data that charts draw from tables: distributions of durations, durations over time, quantities over time.
//
// Charts get doubles: times are counted from a begin, so that nanoseconds stay exact for a hundred days.

import { cellText } from "./cells.ts";
import type { Clock } from "./clock.ts";
import { columnAt, double, spanOfRow, type Column, type Row, type Span, type Table } from "./tables.ts";
import type { Nanos } from "../units/time.ts";

/** How often something lies between two values: `low[i]` to before `high[i]`. */
export interface Bins {
  readonly title: string;
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly count: readonly number[];
  readonly total: number;
}

/** The bins of a table, if it has any. */
export function binsOf(table: Table): Bins | null {
  const [low, high, count] = ["low", "high", "count"].map((name) => columnAt(table, name));
  if (low === undefined || high === undefined || count === undefined || low < 0 || high < 0 || count < 0 || table.columns.length > 3) {
    return null;
  }
  const column = (at: number): number[] => table.rows.map((row) => double(row[at]) ?? 0);
  const counts = column(count);
  return { title: table.title, low: column(low), high: column(high), count: counts, total: counts.reduce((sum, one) => sum + one, 0) };
}

export const PERCENTILES: ReadonlyArray<readonly [string, string, number]> = [
  ["p50", "50 %", 0.5],
  ["p90", "90 %", 0.9],
  ["p99", "99 %", 0.99],
  ["p999", "99.9 %", 0.999],
];

/** A value that so many percent are not above. */
export interface Percentile {
  readonly title: string;
  /** The known bounds: it lies between these. */
  readonly low: number;
  readonly high: number;
}

/** Percentiles as a row of statistics tells them. */
export function percentilesOf(table: Table, row: Row): Percentile[] {
  return PERCENTILES.flatMap(([name, title]) => {
    const cell = row[columnAt(table, name)];
    const value = double(cell);
    return cell?.kind === "number" && value !== null ? [{ title, low: Number(cell.low ?? value), high: Number(cell.high ?? value) }] : [];
  });
}

/** Percentiles as bins tell them: by nearest rank, the bin that they lie in. */
export function percentilesIn({ low, high, count, total }: Bins): Percentile[] {
  if (total === 0) {
    return [];
  }
  return PERCENTILES.map(([, title, part]) => {
    const rank = Math.ceil(total * part);
    let [index, sum] = [0, count[0] ?? 0];
    while (sum < rank && index + 1 < count.length) {
      index++;
      sum += count[index] ?? 0;
    }
    return { title, low: low[index] ?? 0, high: (high[index] ?? 1) - 1 };
  });
}

/** Something that took so long, at some time. */
export interface Point {
  readonly row: Row;
  readonly span: Span;
  /** When it begins, in nanoseconds from the begin of the chart. */
  readonly x: number;
  /** How long it takes. */
  readonly y: number;
}

/** The rows of a table as points, in the order of time. */
export function pointsOf(table: Table, rows: readonly Row[], column: string, begin: Nanos): Point[] {
  const at = columnAt(table, column);
  const points = rows.flatMap((row) => {
    const [span, y] = [spanOfRow(table, row), double(row[at])];
    return span === null || y === null ? [] : [{ row, span, x: Number(span.begin - begin), y }];
  });
  return points.sort((one, other) => one.x - other.x);
}

/** Numbers over time. `time[i]` to `time[i + 1]` is a period; the last time is the end of the last one. */
export interface Course {
  readonly begin: Nanos;
  readonly time: readonly number[];
  readonly lines: readonly Line[];
}

export interface Line {
  readonly title: string;
  readonly column: Column;
  /** One for each period. */
  readonly values: readonly number[];
}

/** Lines at most: more than a reader tells apart. */
const LINES_MAX = 6;

/** The course of a table over periods, if its first column is one: a line for each name in it, else for each of its numbers. */
export function courseOf(table: Table, clock: Clock): Course | null {
  if (table.columns[0]?.of !== "time-range" || table.rows.length === 0) {
    return null;
  }
  const periods = new Map<bigint, { readonly span: Span; readonly rows: Row[] }>();
  for (const row of table.rows) {
    const span = spanOfRow(table, row);
    if (span !== null) {
      const period = periods.get(span.begin);
      if (period === undefined) {
        periods.set(span.begin, { span, rows: [row] });
      } else {
        period.rows.push(row);
      }
    }
  }
  const ordered = [...periods.values()].sort((one, other) => Number(one.span.begin - other.span.begin));
  const [first, last] = [ordered[0], ordered.at(-1)];
  if (first === undefined || last === undefined) {
    return null;
  }
  return filled(table.span ?? { begin: first.span.begin, end: last.span.end }, ordered, linesOf(table, ordered.map((period) => period.rows), clock));
}

/** Columns that are numbers but identify something, rather than say how much there was. */
const NOT_DRAWN: ReadonlySet<string> = new Set(["cpu", "fd", "time-range", "timestamp", "string", "process", "irq", "mixed", "path", "syscall", "disk", "netif", "bool"]);

function linesOf(table: Table, periods: readonly (readonly Row[])[], clock: Clock): Line[] {
  const numbers = table.columns.flatMap((column, at) => (NOT_DRAWN.has(column.of) ? [] : [{ column, at }]));
  const sum = (rows: readonly Row[], at: number): number => rows.reduce((all, row) => all + (double(row[at]) ?? 0), 0);
  const named = table.columns.findIndex((column) => column.of === "string");
  const [number] = numbers;
  if (named < 0 || number === undefined) {
    return numbers.slice(0, LINES_MAX).map(({ column, at }) => ({ title: column.title, column, values: periods.map((rows) => sum(rows, at)) }));
  }
  const { column, at } = number;
  const totals = new Map<string, number>();
  const nameOf = (row: Row): string => (row[named] === undefined ? "" : cellText(row[named], clock));
  periods.flat().forEach((row) => totals.set(nameOf(row), (totals.get(nameOf(row)) ?? 0) + (double(row[at]) ?? 0)));
  const most = [...totals].sort((one, other) => other[1] - one[1]).slice(0, LINES_MAX - 1);
  const all: Line = { title: "all", column, values: periods.map((rows) => sum(rows, at)) };
  return [all, ...most.map(([title]) => ({ title, column, values: periods.map((rows) => sum(rows.filter((row) => nameOf(row) === title), at)) }))];
}

/** Periods of which the table says nothing are 0: tables leave out periods without occurrences. */
function filled(all: Span, ordered: ReadonlyArray<{ readonly span: Span }>, lines: readonly Line[]): Course {
  const begin = ordered[0] !== undefined && ordered[0].span.begin < all.begin ? ordered[0].span.begin : all.begin;
  const time: number[] = [];
  const values: number[][] = lines.map(() => []);
  let end = begin;
  const gap = (next: Nanos): void => {
    if (next > end) {
      time.push(Number(end - begin));
      values.forEach((line) => line.push(0));
    }
  };
  ordered.forEach(({ span }, index) => {
    gap(span.begin);
    time.push(Number(span.begin - begin));
    values.forEach((line, at) => line.push(lines[at]?.values[index] ?? 0));
    end = span.end;
  });
  gap(all.end);
  end = all.end > end ? all.end : end;
  return { begin, time: [...time, Number(end - begin)], lines: lines.map((line, at) => ({ ...line, values: values[at] ?? [] })) };
}

/** Where a logarithmic axis has marks: each multiple of a power of ten that lies between two values. */
export function logMarks(low: number, high: number): number[] {
  const marks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (let digit = 1; digit < 10; digit++) {
      // Divided, as negative powers of ten are no exact doubles.
      const mark = power < 0 ? digit / 10 ** -power : digit * 10 ** power;
      if (mark >= low && mark <= high) {
        marks.push(mark);
      }
    }
  }
  return marks;
}

/** Those of the marks that are named: powers of ten; of few marks also their doubles and fivefolds. */
export function namedMarks(marks: readonly number[]): (number | null)[] {
  const digitOf = (mark: number): number => Math.round(mark / 10 ** Math.floor(Math.log10(mark) + 1e-9));
  const powers = marks.filter((mark) => digitOf(mark) === 1).length;
  const named = new Set(powers > 2 ? [1] : powers > 0 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  return marks.map((mark) => (named.has(digitOf(mark)) ? mark : null));
}
