// A span of time in three lines: of the answers of analyses the sums, and those few that make up most of them.

import { cellText, exactDuration, grouped } from "./cells.ts";
import type { Clock } from "./clock.ts";
import { columnAt, quantity, type Answer, type Row, type Table } from "./tables.ts";

export interface Summed {
  readonly count: bigint | null;
  /** The counted unit. */
  readonly unit: string;
  readonly time: bigint | null;
  /** A part of the possible total. */
  readonly share: number | null;
  /** Those that make up most of it, each with its part. */
  readonly most: readonly string[];
}

/** So many are named. */
const NAMED = 3;

/** How many events, and which most often. */
export function eventsOf(answer: Answer, clock: Clock): Summed {
  const [total, classes] = [tableOf(answer, "total"), tableOf(answer, "per-class")];
  return { count: sumOf(total, "count"), unit: sumOf(total, "count") === 1n ? "event" : "events", time: null, share: null, most: mostOf(classes, "name", "count", clock) };
}

/** How long CPUs were busy, of all the time that they had, and with which threads. */
export function busyOf(answer: Answer, clock: Clock): Summed {
  const [cpus, threads] = [tableOf(answer, "per-cpu"), tableOf(answer, "per-thread")];
  const [busy, idle, unknown] = [sumOf(cpus, "busy"), sumOf(cpus, "idle"), sumOf(cpus, "unknown")];
  const all = busy + idle + unknown;
  return { count: null, unit: "", time: busy, share: all === 0n ? null : Number(busy) / Number(all), most: mostOf(threads, "thread", "run_time", clock) };
}

/** How many system calls, how long they took together, and which longest. */
export function callsOf(answer: Answer, clock: Clock): Summed {
  const calls = tableOf(answer, "per-syscall");
  return { count: sumOf(calls, "count"), unit: sumOf(calls, "count") === 1n ? "call" : "calls", time: sumOf(calls, "total"), share: null, most: mostOf(calls, "syscall", "total", clock) };
}

function tableOf(answer: Answer, name: string): Table | null {
  return answer.tables.find((table) => table.name === name) ?? null;
}

function wholeOf(row: Row, at: number): bigint {
  const found = quantity(row[at]);
  return typeof found === "bigint" ? found : 0n;
}

function sumOf(table: Table | null, name: string): bigint {
  const at = table === null ? -1 : columnAt(table, name);
  return (table?.rows ?? []).reduce((sum, row) => sum + wholeOf(row, at), 0n);
}

function mostOf(table: Table | null, name: string, value: string, clock: Clock): string[] {
  if (table === null) {
    return [];
  }
  const [who, much] = [columnAt(table, name), columnAt(table, value)];
  const isTime = table.columns[much]?.of === "duration";
  const ordered = [...table.rows].sort((one, other) => (wholeOf(one, much) > wholeOf(other, much) ? -1 : wholeOf(one, much) < wholeOf(other, much) ? 1 : 0));
  return ordered.slice(0, NAMED).map((row) => `${row[who] === undefined ? "" : cellText(row[who], clock)} ${isTime ? exactDuration(wholeOf(row, much)) : grouped(wholeOf(row, much))}`);
}
