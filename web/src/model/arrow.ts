// Rows as the server sends them: an Arrow IPC stream, read without copying. Whole numbers of 64 bits and times are bigints, so that
// none is rounded; numbers that a JavaScript number holds are numbers; texts, also those of dictionaries, are strings; missing values are null.

import { tableFromIPC, type Column as ArrowColumn } from "@uwdata/flechette";
import { basesOfColumn, type FieldBase } from "./bases.ts";

/** One column of some rows. */
export interface Column {
  readonly name: string;
  /** No row has a value. */
  readonly isEmpty: boolean;
  /** In which bases its integers are written for people, where that is not 10. */
  readonly bases: readonly FieldBase[];
  /** The value of a row: a number, a bigint, a string, a boolean, bytes, a list, an object, or null. */
  readonly at: (row: number) => unknown;
}

export interface Rows {
  readonly count: number;
  readonly columns: readonly Column[];
  /** Memory that they take, about. */
  readonly bytes: number;
}

const EXACT = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true } as const;

/** The rows in an Arrow stream. Throws an `Error` where the bytes are no Arrow stream. */
export function readRows(bytes: ArrayBuffer): Rows {
  const table = tableFromIPC(bytes, EXACT);
  const columns = table.schema.fields.map((field, index) => columnOf(field.name, table.getChildAt(index) as ArrowColumn<unknown>, field.metadata));
  return { count: table.numRows, columns, bytes: bytes.byteLength };
}

function columnOf(name: string, column: ArrowColumn<unknown>, metadata: ReadonlyMap<string, string> | null): Column {
  return { name, isEmpty: column.nullCount >= column.length, bases: basesOfColumn(metadata?.get("kymo.bases")), at: (row) => column.at(row) ?? null };
}

export function columnNamed(rows: Rows, name: string): Column | null {
  return rows.columns.find((column) => column.name === name) ?? null;
}

/** The times of all rows. One that the trace could not say is the one before it. */
export function timesOf(rows: Rows): BigInt64Array {
  const times = new BigInt64Array(rows.count);
  const column = columnNamed(rows, "time");
  let last = 0n;
  for (let row = 0; row < rows.count; row++) {
    const found = column?.at(row);
    last = typeof found === "bigint" ? found : typeof found === "number" ? BigInt(found) : last;
    times[row] = last;
  }
  return times;
}
