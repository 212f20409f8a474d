// The running times of a selection with too many runs to be added up here: an analysis of the server knows them exactly. It tells threads and processes only of
// all CPUs together; for some of the CPUs, it tells how busy each one was.

import type { Catalogue, Track } from "./catalogue.ts";
import { cellText, grouped } from "./cells.ts";
import { duration, type Clock } from "./clock.ts";
import type { Options, Question } from "./jobs.ts";
import type { Sums } from "./sums.ts";
import { CPUS, PROCESSES, THREADS, partText, type SumTable } from "./sumtext.ts";
import { columnAt, quantity, type Answer, type Cell, type Row, type Table } from "./tables.ts";
import { nanos, type Nanos } from "../units/time.ts";

/** So many rows of a table are asked for. */
const ROWS_MAX = 1_000;

/** Which question tells the running times of these tracks exactly; `null`: sums are exact already, or no question does. */
export function cpuQuestion({ tracks }: Catalogue, selected: readonly Track[], sums: Sums, times: Options): Question | null {
  const [all, some] = [tracks.filter(isCpu), selected.filter(isCpu)];
  const rounded = new Set(sums.tracks.filter(({ isExact }) => !isExact).map(({ track }) => track));
  // CPUs of several machines have the same numbers.
  const isOneHost = new Set(all.map(({ host }) => host)).size === 1;
  if (!sums.isRead || !isOneHost || !some.some(({ number }) => rounded.has(number))) {
    return null;
  }
  const which = some.length === all.length ? { by: ["cpu", "process", "thread"] } : { by: ["cpu"], cpus: some.flatMap(({ cpu }) => cpu ?? []) };
  return { kind: "cpu", options: { ...times, ...which, top: ROWS_MAX } };
}

/** Rows that show which thread a CPU runs. */
function isCpu({ id, cpu }: Track): boolean {
  return cpu !== null && /^cpu\/.*\/thread$/.test(id);
}

/** The tables with those that an answer has exactly in their places. */
export function withExact(tables: readonly SumTable[], answer: Answer, span: Nanos, clock: Clock): readonly SumTable[] {
  const exact = new Map(exactTables(answer, span, clock).map((table) => [table.title, table]));
  return tables.map((table) => exact.get(table.title) ?? table);
}

function exactTables({ tables }: Answer, span: Nanos, clock: Clock): SumTable[] {
  const named = (name: string): Table | null => tables.find((table) => table.name === name) ?? null;
  const cpus = named("per-cpu");
  const total = (name: string): bigint => (cpus?.rows ?? []).reduce((sum, row) => sum + wholeOf(row, columnAt(cpus ?? NO_COLUMNS, name)), 0n);
  const whole = Number(span) * (cpus?.rows.length ?? 1);
  const found: SumTable[] = [];
  for (const [name, title, key] of [["per-process", PROCESSES, "process"], ["per-thread", THREADS, "thread"]] as const) {
    const table = named(name);
    if (table !== null) {
      const [who, life, time, runs] = [key, "incarnation", "run_time", "runs"].map((column) => columnAt(table, column));
      const nameOf = (row: Row): string => `${cellText(row[who ?? 0] ?? EMPTY, clock)}${lifeText(wholeOf(row, life ?? -1))}`;
      const rows = table.rows.map((row) => [nameOf(row), [timeText(row[time ?? 0], clock), partText(Number(wholeOf(row, time ?? 0)), whole), grouped(wholeOf(row, runs ?? 0))]] as const);
      const still = (["idle", "unknown"] as const).flatMap((state) => (total(state) > 0n ? [[state, [duration(nanos(total(state))), partText(Number(total(state)), whole)]] as const] : []));
      found.push({ title, columns: ["time", "part", "count"], rows: [...still, ...rows], more: table.omitted });
    }
  }
  if (cpus !== null) {
    const [cpu, busy, idle, unknown] = ["cpu", "busy", "idle", "unknown"].map((column) => columnAt(cpus, column));
    const rows = cpus.rows.map((row) => [`CPU ${cellText(row[cpu ?? 0] ?? EMPTY, clock)}`, [timeText(row[busy ?? 0], clock), partText(Number(wholeOf(row, busy ?? 0)), Number(span)), timeText(row[idle ?? 0], clock), timeText(row[unknown ?? 0], clock)]] as const);
    found.push({ title: CPUS, columns: ["busy", "part", "idle", "unknown"], rows, more: cpus.omitted });
  }
  return found;
}

const EMPTY: Cell = { kind: "empty" };
const NO_COLUMNS = { columns: [] };

/** Threads with the same number, one after the other, are several. */
function lifeText(life: bigint): string {
  return life > 0n ? `, life ${life}` : "";
}

function wholeOf(row: Row, at: number): bigint {
  const found = quantity(row[at]);
  return typeof found === "bigint" ? found : 0n;
}

/** A time in a few digits; one that is not certain with its bounds. */
function timeText(cell: Cell | undefined, clock: Clock): string {
  if (cell?.kind !== "number" || typeof cell.value !== "bigint") {
    return cellText(cell ?? EMPTY, clock);
  }
  const text = (value: unknown): string => (typeof value === "bigint" ? duration(nanos(value)) : "?");
  return cell.low === cell.value && cell.high === cell.value ? text(cell.value) : `${text(cell.value)} [${text(cell.low)}..${text(cell.high)}]`;
}
