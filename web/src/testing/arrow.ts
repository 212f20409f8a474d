// Pages of events for tests, as the server sends them: made by the library that reads them, so that tests look at what pages do with
// what they mean. What the true server sends is read in browser/events.test.ts.

import { Column, Table, columnFromArray, dictionary, int32, int64, tableFromColumns, tableToIPC, timestamp, uint32, utf8, TimeUnit, type DataType } from "@uwdata/flechette";

const EXACT = { useBigInt: true, useDecimalInt: true };

/** Times as the server sends them, of which the library would write only as many digits as a double has. */
export const TIME = timestamp(TimeUnit.NANOSECOND, "UTC");

/** An Arrow IPC stream of some columns, some of which say in which bases their integers are written. */
export function encodeColumns(columns: Readonly<Record<string, readonly [DataType, readonly unknown[]]>>, bases: Readonly<Record<string, object>> = {}): Uint8Array<ArrayBuffer> {
  const made = Object.entries(columns).map(([name, [type, values]]): [string, Column<unknown>] => {
    const column = columnFromArray([...values], type === TIME ? int64() : type, EXACT);
    return [name, type === TIME ? new Column([...column.data], TIME) : column];
  });
  const table = tableFromColumns(made);
  const fields = table.schema.fields.map((field) => (bases[field.name] === undefined ? field : { ...field, metadata: new Map([["kymo.bases", JSON.stringify(bases[field.name])]]) }));
  return new Uint8Array(tableToIPC(new Table({ ...table.schema, fields }, table.children), { format: "stream" }) ?? []);
}

/** An event of a list. */
export interface Told {
  readonly time: bigint;
  readonly name: string;
  readonly cpu: number;
  readonly [field: string]: unknown;
}

const TYPES: Readonly<Record<string, DataType>> = {
  time: TIME,
  name: dictionary(utf8(), int32()),
  cpu_id: uint32(),
  id: int64(),
  text: utf8(),
};

/** The columns that lists of told events have. */
export const TOLD_COLUMNS = ["time", "name", "cpu_id", "id", "text"] as const;

/** An Arrow IPC stream of some events. */
export function encodeRows(told: readonly Told[], columns: readonly string[] = TOLD_COLUMNS): Uint8Array<ArrayBuffer> {
  const values = (name: string): unknown[] => told.map((event) => (name === "cpu_id" ? event.cpu : event[name]) ?? null);
  return encodeColumns(Object.fromEntries(columns.map((name) => [name, [TYPES[name] ?? utf8(), values(name)]])));
}
