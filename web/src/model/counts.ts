// Counts of events: by their names, and by their owners, as the analyses `count` and `threads` say it.

import { EMPTY, type Answer, type Cell } from "./tables.ts";

/** The event count of a thread or process, and its name. */
export interface Counted {
  readonly count: bigint;
  readonly name: string | null;
}

/** Event counts by owner. Numbers are those of all machines together. */
export interface Whose {
  /** Of those that say it. */
  readonly byCpu: ReadonlyMap<number, bigint>;
  readonly byThread: ReadonlyMap<number, Counted & { readonly pid: number | null }>;
  /** By their numbers. */
  readonly byProcess: ReadonlyMap<string, Counted>;
  readonly byApplication: ReadonlyMap<string, bigint>;
  /** Of CPUs that ran no thread, and of no known thread. */
  readonly idle: bigint;
  readonly unknown: bigint;
  /** Threads, each life of a number by itself, that have too few events to be told apart here. */
  readonly omitted: number;
}

/** The counts so far. */
export interface Counts {
  readonly byName: ReadonlyMap<string, bigint> | null;
  readonly whose: Whose | null;
}

/** Events by name, of all traces. */
export function readNames(answer: Answer): ReadonlyMap<string, bigint> {
  const found = new Map<string, bigint>();
  for (const [name, count] of cellsOf(answer, "per-class", ["name", "count"])) {
    add(found, name?.kind === "text" ? name.value : "", wholeOf(count));
  }
  return found;
}

/** Event counts by owner. */
export function readWhose(answer: Answer): Whose {
  const [byCpu, byApplication] = [new Map<number, bigint>(), new Map<string, bigint>()];
  const byThread = new Map<number, Counted & { readonly pid: number | null }>();
  const byProcess = new Map<string, Counted>();
  for (const [cpu, count] of cellsOf(answer, "per-cpu", ["cpu", "count"])) {
    if (cpu?.kind === "number") {
      add(byCpu, Number(cpu.value), wholeOf(count));
    }
  }
  for (const [thread, count] of cellsOf(answer, "per-thread", ["thread", "count"])) {
    if (thread?.kind === "process" && thread.tid !== null && thread.tid !== 0) {
      const before = byThread.get(thread.tid);
      // Several lives of one number, the busiest of which comes first, are one line.
      const { name, pid } = before ?? thread;
      byThread.set(thread.tid, { count: (before?.count ?? 0n) + wholeOf(count), name: name ?? thread.name, pid: pid ?? thread.pid });
    }
  }
  for (const [process, count] of cellsOf(answer, "per-process", ["process", "count"])) {
    if (process?.kind === "process" && process.pid !== null && process.pid !== 0) {
      const before = byProcess.get(String(process.pid));
      byProcess.set(String(process.pid), { count: (before?.count ?? 0n) + wholeOf(count), name: before?.name ?? process.name });
    }
  }
  for (const [application, threads, processes, count] of cellsOf(answer, "per-application", ["application", "threads", "processes", "count"])) {
    // The row of CPUs that ran no thread is called `idle` and has no thread.
    if (application?.kind === "text" && wholeOf(threads) + wholeOf(processes) > 0n) {
      add(byApplication, application.value, wholeOf(count));
    }
  }
  const [[idle, unknown] = []] = cellsOf(answer, "total", ["idle", "unknown"]);
  const omitted = answer.tables.find((table) => table.name === "per-thread")?.omitted ?? 0;
  return { byCpu, byThread, byProcess, byApplication, idle: wholeOf(idle), unknown: wholeOf(unknown), omitted };
}

function add<K>(map: Map<K, bigint>, key: K, count: bigint): void {
  map.set(key, (map.get(key) ?? 0n) + count);
}

function wholeOf(cell: Cell | undefined): bigint {
  return cell?.kind === "number" ? BigInt(cell.value) : 0n;
}

/** Some columns of a table's rows. */
function cellsOf(answer: Answer, of: string, columns: readonly string[]): Cell[][] {
  const table = answer.tables.find((one) => one.name === of);
  const places = columns.map((name) => table?.columns.findIndex((column) => column.name === name) ?? -1);
  return (table?.rows ?? []).map((row) => places.map((place) => row[place] ?? EMPTY));
}
