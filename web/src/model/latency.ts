// The sources of Latency: for each kind of latency the analysis that finds it, and the roles of its tables. And which of these the traces
// have: that is told by their tracks and by names of their events, without asking for anything.

import { cellText } from "./cells.ts";
import type { Catalogue, Track } from "./catalogue.ts";
import type { Clock } from "./clock.ts";
import type { Options } from "./jobs.ts";
import type { Group, Lens } from "./lens.ts";
import { columnAt, double, type Answer, type Cell, type Row, type Table } from "./tables.ts";

export interface Source {
  /** Small letters; stands in the URL. */
  readonly id: string;
  readonly title: string;
  readonly kind: string;
  /** The table of the longest, and its column that says how long. */
  readonly longest: string;
  readonly value: string;
  /** Tables with distributions of durations. */
  readonly distributions: readonly string[];
  /** Tables of statistics, the first one first. */
  readonly groups: readonly string[];
  /** The table with one row about all of them; without one, percentiles are those of the bins. */
  readonly total: string | null;
}

export const SOURCES: readonly Source[] = [
  { id: "syscalls", title: "System calls", kind: "syscalls", longest: "slowest", value: "duration", distributions: ["distribution"], groups: ["per-syscall", "per-thread"], total: null },
  { id: "wakeups", title: "Wakeup to run", kind: "sched", longest: "top", value: "latency", distributions: ["distribution"], groups: ["per-thread", "per-priority", "wakers"], total: "total" },
  { id: "interrupts", title: "Interrupts", kind: "irq", longest: "top", value: "duration", distributions: ["hard-distribution", "soft-distribution"], groups: ["hard", "soft"], total: null },
  { id: "raised", title: "Raise to softirq", kind: "irq", longest: "top-raised", value: "duration", distributions: ["raise-distribution"], groups: ["soft"], total: null },
  { id: "operations", title: "Input and output", kind: "io", longest: "slowest", value: "duration", distributions: ["distribution"], groups: ["per-category"], total: null },
  { id: "block", title: "Requests to disks", kind: "block", longest: "longest", value: "latency", distributions: ["distribution"], groups: ["per-device"], total: null },
  { id: "pairs", title: "Pairs of events", kind: "pairs", longest: "longest", value: "duration", distributions: ["distribution"], groups: ["per-group", "open"], total: "total" },
  { id: "steps", title: "Steps of operations", kind: "breakdown", longest: "longest-operations", value: "duration", distributions: ["operation-durations"], groups: ["operations", "steps", "breakdown", "unmatched"], total: null },
  { id: "messages", title: "Messages", kind: "flows", longest: "longest", value: "latency", distributions: ["distribution"], groups: ["per-route", "early", "open"], total: "total" },
  { id: "periods", title: "Periods", kind: "periods", longest: "periods", value: "duration", distributions: ["distribution"], groups: ["statistics", "open"], total: null },
];

const kernelsKnown = new WeakMap<readonly Track[], boolean>();

/** Whether the traces are of kernels, which have CPUs. Kept, because it is asked for whenever the pointer moves. */
export function isOfKernel(tracks: readonly Track[]): boolean {
  let known = kernelsKnown.get(tracks);
  if (known === undefined) {
    known = tracks.some((track) => track.group === "CPUs");
    kernelsKnown.set(tracks, known);
  }
  return known;
}

/** The one of that id, else the first that the traces are likely to have: those of kernels have system calls. */
export function sourceOf(id: string, isKernel: boolean): Source {
  const plain = isKernel ? "syscalls" : "pairs";
  const found = SOURCES.find((source) => source.id === id) ?? SOURCES.find((source) => source.id === plain);
  if (found === undefined) {
    throw new Error("there are pairs");
  }
  return found;
}

/** A latency that users often look at, for traces that have it. */
export interface Preset {
  readonly title: string;
  readonly hint: string;
  readonly latency: string;
  /** `null`: the longest. */
  readonly table: string | null;
}

interface KnownPreset extends Preset {
  readonly isIn: (catalogue: Catalogue) => boolean;
}

/** Whether there is a track of how long these take. */
function hasHeat(id: string): KnownPreset["isIn"] {
  return ({ tracks }) => tracks.some((track) => track.kind === "heat" && track.id.startsWith("latency/") && track.id.endsWith(`/${id}`));
}

function hasEvents(name: RegExp): KnownPreset["isIn"] {
  return ({ values }) => values.some((value) => value.kind === "event" && name.test(value.label));
}

const PRESETS: readonly KnownPreset[] = [
  { title: "System calls", hint: "From entry to exit", latency: "syscalls", table: null, isIn: hasHeat("calls") },
  { title: "Wake-up", hint: "From when a thread can run to when it runs", latency: "wakeups", table: null, isIn: hasHeat("waiting") },
  { title: "Wake-up by thread", hint: "How long each thread waits for a CPU, with percentiles", latency: "wakeups", table: "per-thread", isIn: hasHeat("waiting") },
  { title: "Interrupts", hint: "From entry to exit, of interrupts and softirqs", latency: "interrupts", table: null, isIn: (catalogue) => hasHeat("irqs")(catalogue) || hasHeat("softirqs")(catalogue) },
  { title: "Raise to softirq", hint: "From when work is put off to when it begins", latency: "raised", table: null, isIn: hasEvents(/softirq_raise$/) },
  { title: "Disks", hint: "From when a request goes to its device to when that is done", latency: "block", table: null, isIn: hasEvents(/block_rq_(issue|complete)$/) },
  { title: "Messages", hint: "From when something is sent to when it is received, as roles say", latency: "messages", table: null, isIn: ({ tracks }) => tracks.some((track) => track.id.startsWith("messages/")) },
  { title: "Steps", hint: "How long operations on capabilities take, and each of their steps", latency: "steps", table: null, isIn: hasEvents(/^capops:/) },
  { title: "Pairs", hint: "What begins with one event and ends with another, as roles say", latency: "pairs", table: null, isIn: ({ tracks }) => tracks.some((track) => track.id.includes("/slices/")) },
];

const presetsKnown = new WeakMap<Catalogue, readonly Preset[]>();

/** Those that fit the traces; kept, because a catalog has many tracks. */
export function presetsOf(catalogue: Catalogue): readonly Preset[] {
  const known = presetsKnown.get(catalogue) ?? PRESETS.filter(({ isIn }) => isIn(catalogue));
  presetsKnown.set(catalogue, known);
  return known;
}

/** Bins of a distribution: narrow enough to see two humps as two. */
const BINS = 160;

/** The options of the request; `null` where the user has to say first which events are meant. */
export function latencyOptions(source: Source, lens: Lens, top: number): Options | null {
  const plain: Options = { top, bins: BINS };
  if (source.kind === "periods") {
    const periods = lens.periods.split("\n").filter((line) => line.trim() !== "");
    return periods.length === 0 ? null : { ...plain, periods };
  }
  const [start = "", stop = "", keys = "", group = ""] = lens.pairs.map((part) => part.trim());
  const names = keys.split(/[\s,]+/).filter((key) => key !== "");
  if (source.kind === "breakdown" && (start !== "" || stop !== "")) {
    return start === "" || stop === "" || names.length === 0 ? null : { ...plain, pairs: { start: [start], stop: [stop], keys: names } };
  }
  if (source.kind === "pairs" && (start !== "" || stop !== "")) {
    return { ...plain, pairs: { start: start === "" ? [] : [start], stop: stop === "" ? [] : [stop], keys: names, ...(group === "" ? {} : { group }) } };
  }
  return plain;
}

/** Columns by which longest ones can be told apart. */
const GROUPING: ReadonlySet<string> = new Set(["process", "syscall", "irq", "string", "mixed", "disk", "number"]);

/** The group that a row of statistics is about, as far as the longest ones say the same; `null`: of these no column does. */
export function groupOf(table: Table, longest: Table, row: Row, clock: Clock): Group | null {
  const at = table.columns.findIndex((column) => columnAt(longest, column.name) >= 0 && GROUPING.has(column.of));
  const [column, cell] = [table.columns[at], row[at]];
  if (column === undefined || cell === undefined || cell.kind === "empty" || cell.kind === "unknown") {
    return null;
  }
  return { column: column.name, text: groupText(cell, clock), tid: cell.kind === "process" ? cell.tid : null };
}

/** The text that tells a group from others: of numbers all digits as they are. */
export function groupText(cell: Cell, clock: Clock): string {
  return cell.kind === "number" ? String(cell.value) : cellText(cell, clock);
}

/** How the server is asked for a group alone; `null`: it cannot be. */
export function groupOptions(source: Source, group: Group): Options | null {
  const { column, text, tid } = group;
  if (column === "thread" && tid !== null && ["syscalls", "sched", "io"].includes(source.kind)) {
    return { tids: [tid] };
  }
  if ((source.kind === "syscalls" && column === "syscall") || (source.kind === "pairs" && column === "group")) {
    return { names: [text] };
  }
  const [, kind, number] = /^(irq|softirq) (\d{1,9})\b/.exec(text) ?? [];
  return source.kind === "irq" && column === "irq" && number !== undefined ? { [kind === "irq" ? "irqs" : "softirqs"]: [Number(number)] } : null;
}

/** How many a group has, as statistics say; `null`: they do not. */
export function countOf(source: Source, answer: Answer, group: Group, clock: Clock): number | null {
  for (const table of answer.tables.filter(({ name }) => source.groups.includes(name))) {
    const [of, count] = [columnAt(table, group.column), columnAt(table, "count")];
    const rows = of < 0 || count < 0 ? [] : table.rows.filter((row) => row[of] !== undefined && groupText(row[of], clock) === group.text);
    if (rows.length > 0 && table.omitted === 0) {
      return rows.reduce((sum, row) => sum + (double(row[count]) ?? 0), 0);
    }
  }
  return null;
}
