// What Latency can look at: for each kind of latency the analysis that finds it, and which of its tables say what.

import type { Track } from "./catalogue.ts";
import type { Options } from "./jobs.ts";
import type { Lens } from "./lens.ts";

export interface Source {
  /** Small letters; stands in the URL. */
  readonly id: string;
  readonly title: string;
  readonly kind: string;
  /** The table of the longest, and its column that says how long. */
  readonly longest: string;
  readonly value: string;
  /** Tables that say how often what took how long. */
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

/** Bins of a distribution: narrow enough to see two humps as two. */
const BINS = 160;

/** What to ask for; `null` where somebody has to say first which events are meant. */
export function latencyOptions(source: Source, lens: Lens, top: number): Options | null {
  const plain: Options = { top, bins: BINS };
  if (source.kind === "periods") {
    const periods = lens.periods.split("\n").filter((line) => line.trim() !== "");
    return periods.length === 0 ? null : { ...plain, periods };
  }
  const [start = "", stop = "", keys = "", group = ""] = lens.pairs.map((part) => part.trim());
  if (source.kind === "pairs" && (start !== "" || stop !== "")) {
    const names = keys.split(/[\s,]+/).filter((key) => key !== "");
    return { ...plain, pairs: { start: start === "" ? [] : [start], stop: stop === "" ? [] : [stop], keys: names, ...(group === "" ? {} : { group }) } };
  }
  return plain;
}
