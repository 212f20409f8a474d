// A trace that was never recorded: runs and instants of a few tracks, and their tiles by the plainest reduction there is. For tests
// of pages that need a server that always says the same.

import { NONE, type Answer, type Items, type Quality, type Span, type TrackItems } from "../src/model/tile.ts";
import type { TestItem } from "../src/testing/items.ts";
import { arrowCounts, arrows, counter, counts, instants, runs as oneByOne, states } from "../src/testing/tiles.ts";
import type { Told } from "../src/testing/arrow.ts";
import { level, trackNumber } from "../src/units/tiles.ts";

/** 2026-11-21T00:02:52.253260578Z, beyond the digits of a double. */
export const BEGIN = 1_795_219_372_253_260_578n;
export const SPAN = 2_000_000_000;

interface Run {
  readonly begin: number;
  readonly end: number;
  readonly value: number;
}

interface Wakeup {
  readonly begin: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
  /** The woken thread. */
  readonly value: number;
}

interface Invented {
  readonly track: object;
  readonly runs?: readonly Run[];
  readonly times?: readonly { readonly at: number; readonly value: number }[];
  readonly numbers?: readonly { readonly at: number; readonly number: number }[];
  readonly wakeups?: readonly Wakeup[];
}

const THREADS = ["idle", "nginx (4711)", "postgres (4712)", "kworker/0:1 (77)", "chrome (900)", "make (1234)", "cc1 (1240)", "bash (801)"];
const DOINGS = ["running on CPU 0", "waiting for a CPU", "blocked", "uninterruptible"];
const EVENTS = ["sched_switch", "sched_wakeup", "irq_handler_entry", "syscall_entry_read"];

/** Values in the order of their numbers. */
export const VALUES: readonly object[] = [
  ...THREADS.map((label, index) => ({ label, kind: "thread", colour: index * 2_654_435, ...ownerOf(label) })),
  ...DOINGS.map((label, index) => ({ label, kind: "doing", colour: index })),
  ...EVENTS.map((label, index) => ({ label, kind: "event", colour: 77 + index * 40_503 })),
].map((value, number) => ({ number, ...value, track: null }));

/** Compilers are threads of `make` here, so that an application has several. */
function ownerOf(label: string): object {
  const [, name, tid] = /^(\S+) \((\d+)\)$/.exec(label) ?? [];
  const [application, process] = name === "cc1" ? ["make", 1234] : [name?.split("/")[0], Number(tid)];
  return application === undefined ? {} : { process, application, application_colour: [...application].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 4_294_967_295 };
}

const FIRST_DOING = THREADS.length;
const FIRST_EVENT = FIRST_DOING + DOINGS.length;

/** The same numbers each time: a multiplicative generator. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function runsFrom(seed: number, meanNs: number, pick: (random: number) => number): Run[] {
  const random = numbersFrom(seed);
  const found: Run[] = [];
  for (let at = Math.floor(random() * meanNs); at < SPAN; ) {
    const burst = Math.sin((at / SPAN) * 9 + seed) > 0.6 ? 0.05 : 1;
    const end = Math.min(SPAN, at + 1 + Math.floor(-Math.log(random()) * meanNs * burst));
    found.push({ begin: at, end, value: pick(random()) });
    at = end;
  }
  return found;
}

function timesFrom(seed: number, meanNs: number): { at: number; value: number }[] {
  return runsFrom(seed, meanNs, (random) => FIRST_EVENT + Math.floor(random * random * EVENTS.length)).map((run) => ({ at: run.begin, value: run.value }));
}

function invent(): Invented[] {
  const all: Invented[] = [];
  const track = (id: string, kind: string, name: string, group: string, more: object = {}): object => {
    const plain = { host: null, cpu: null, tid: null, process: null, parent: null };
    return { number: all.length, id, kind, name, group, ...plain, ...more };
  };
  for (let cpu = 0; cpu < 4; cpu++) {
    const pick = (random: number): number => (random < 0.35 ? 0 : 1 + Math.floor(random * (THREADS.length - 1)));
    all.push({ track: track(`cpu/0/${cpu}/thread`, "states", `CPU ${cpu}`, "CPUs", { cpu }), runs: runsFrom(11 + cpu, 3e6, pick) });
  }
  for (const [index, name] of THREADS.slice(1).entries()) {
    const number = all.length;
    const pick = (random: number): number => FIRST_DOING + Math.floor(random * DOINGS.length);
    all.push({ track: track(`thread/0/${index}/state`, "states", name, "Threads", { tid: Number(/\d+(?=\)$)/.exec(name)?.[0]) }), runs: runsFrom(101 + index, 9e6, pick) });
    if (index === 0) {
      all.push({ track: track(`thread/0/${index}/events`, "instants", "events", "Threads", { parent: number }), times: timesFrom(7, 5e6) });
    }
  }
  for (let cpu = 0; cpu < 4; cpu++) {
    all.push({ track: track(`events/0/${cpu}`, "instants", `events of CPU ${cpu}`, "Events", { cpu }), times: timesFrom(31 + cpu, 2e5) });
  }
  const numbers = runsFrom(5, 1e7, (random) => Math.floor(random * 100)).map((run) => ({ at: run.begin, number: run.value }));
  all.push({ track: track("counter/queue", "counter", "queue", "Counters"), numbers });
  all.push({ track: track("wakeups/0", "arrows", "wakeups", "Arrows"), wakeups: wakeupsOf(all) });
  return all;
}

/** Each time that a thread runs, a CPU has woken it a little before. */
function wakeupsOf(all: readonly Invented[]): Wakeup[] {
  const threads = all.flatMap(({ track, runs }, number) => ((track as { id: string }).id.startsWith("thread/") && runs !== undefined ? [{ number, runs }] : []));
  const found = threads.flatMap(({ number, runs }, thread) =>
    runs.filter(({ value, begin }) => value === FIRST_DOING && begin > 40_000).map(({ begin }) => ({ begin: begin - 40_000, end: begin, from: begin % 4, to: number, value: thread + 1 })),
  );
  return found.sort((one, other) => one.begin - other.begin);
}

export const INVENTED: readonly Invented[] = invent();

/** All that is on a track, one by one. */
export function itemsOf(number: number): readonly TestItem[] {
  const { runs = [], times = [], wakeups = [] } = INVENTED[number] ?? {};
  const valueAt = (value: number): object => ({ ...VALUES[value] });
  return [
    ...runs.map(({ begin, end, value }) => ({ begin, end, more: { kind: "run", begin_known: begin > 0, end_known: end < SPAN, in_doubt: false, value: valueAt(value) } })),
    ...times.map(({ at, value }) => ({ begin: at, end: at, more: { kind: "event", value: valueAt(value), event: eventAt(at), bases: [{ path: ["payload", "ip"], base: 16, bits: 64 }] } })),
    ...wakeups.map(({ begin, end, from, to, value }) => ({ begin, end, more: { kind: "arrow", end_known: true, received_first: false, from, to, value: { ...valueAt(value), track: to }, waker: null } })),
  ];
}

function eventAt(at: number): object {
  const payload = { next_tid: 4711, next_comm: "nginx", kind: { value: 5, labels: ["CUSTOM"] }, ratio: 0.5, pages: [1, 2, 3], ip: 0x4010a4 };
  return { time: at, trace: "invented", stream: 1, event: "sched_switch", id: 3, context: { vtid: 801, procname: "bash" }, payload };
}

/** Some of the events of the CPUs as a list, in the order of time: as many as a test saves within seconds. */
export const TOLD: readonly Told[] = INVENTED.flatMap(({ track, times }) => {
  const { cpu } = track as { readonly cpu: number | null };
  return cpu === null ? [] : (times ?? []).map(({ at, value }) => ({ at, cpu, name: (VALUES[value] as { readonly label: string }).label }));
})
  .sort((one, other) => one.at - other.at || one.cpu - other.cpu)
  .filter((_, index) => index % 10 === 0)
  .map(({ at, cpu, name }, index) => ({ time: BEGIN + BigInt(at), name, cpu, id: BigInt(index) }));

/** The part that is read so far: from the begin to here everything is exact, behind it packets say how many events there are. */
export interface Progress {
  readonly readNs: number;
  /** Names of events that are told of; none: all are. */
  readonly events?: readonly string[];
  /** The trace grows, and ends here so far. */
  readonly endNs?: number;
  /** From when to when events were lost. */
  readonly holes?: readonly (readonly [number, number])[];
}

/** The answer to a question. */
export function answer(of: number, first: bigint, count: number, tracks: readonly number[], progress: Progress): Answer {
  const width = 2 ** of;
  const begin = Number(first) * width;
  const spans = spansOf(begin, width, count, progress);
  return { level: level(of), first, count, spans, tracks: tracks.map((number) => reduced(number, begin, width, count, progress)) };
}

/** Runs of buckets of one quality. A trace that grows has no bucket before all of it is there. */
function spansOf(begin: number, width: number, count: number, { readNs, endNs, holes = [] }: Progress): Span[] {
  const at = (time: number): number => Math.min(count, Math.max(0, Math.ceil((time - begin) / width)));
  const all = endNs === undefined ? at(SPAN) : Math.min(count, Math.max(0, Math.floor((endNs - begin) / width)));
  const exact = endNs === undefined ? (readNs >= SPAN ? all : at(readNs)) : all;
  const isLost = (bucket: number): boolean => holes.some(([from, to]) => from < begin + (bucket + 1) * width && to > begin + bucket * width);
  const found: Span[] = [];
  for (let bucket = 0; bucket < count; bucket++) {
    const quality: Quality = bucket >= all || isLost(bucket) ? "unknown" : bucket < exact ? "exact" : "estimated";
    const before = found.at(-1);
    if (before?.quality === quality) {
      found[found.length - 1] = { ...before, end: bucket + 1 };
    } else {
      found.push({ begin: bucket, end: bucket + 1, quality });
    }
  }
  return found;
}

/** The tracks that were told already: tests ask for the same tiles again and again. */
const KNOWN = new Map<string, TrackItems>();

function reduced(number: number, begin: number, width: number, count: number, progress: Progress): TrackItems {
  const question = JSON.stringify([number, begin, width, count, progress.readNs, progress.events]);
  const known = KNOWN.get(question) ?? reduce(number, begin, width, count, progress);
  KNOWN.set(question, known);
  return known;
}

function reduce(number: number, begin: number, width: number, count: number, { readNs, events = [] }: Progress): TrackItems {
  const { runs, times, numbers, wakeups } = INVENTED[number] ?? {};
  const end = Math.min(begin + width * count, readNs);
  const track = trackNumber(number);
  if (runs !== undefined) {
    return { track, ...reducedRuns(runs, begin, end, width) };
  }
  if (numbers !== undefined) {
    const inside = numbers.filter(({ at }) => at >= begin && at < end);
    const rows = grouped(inside, begin, width).map(([bucket, group]) => {
      const values = group.map((one) => one.number);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      return [bucket, values.length, Math.min(...values), Math.max(...values), values.at(-1) ?? 0, mean];
    });
    return { track, carry: NONE, items: counter(...rows) };
  }
  if (wakeups !== undefined) {
    const isTold = events.length === 0 || events.includes("sched_wakeup");
    return { track, carry: NONE, items: reducedWakeups(isTold ? wakeups : [], begin, end, width) };
  }
  const isTold = (value: number): boolean => events.length === 0 || events.includes(String((VALUES[value] as { readonly label: string }).label));
  const inside = (times ?? []).filter(({ at, value }) => at >= begin && at < end && isTold(value));
  if (inside.length < 50 && width < 65_536) {
    return { track, carry: NONE, items: instants(...inside.map(({ at, value }) => [at - begin, value, 0])) };
  }
  return { track, carry: NONE, items: reducedTimes(inside, begin, width) };
}

function reducedTimes(inside: ReadonlyArray<{ readonly at: number; readonly value: number }>, begin: number, width: number): Items {
  const rows = grouped(inside, begin, width).map(([bucket, group]) => {
    const sums = new Map<number, number>();
    group.forEach(({ value }) => sums.set(value, (sums.get(value) ?? 0) + 1));
    const [value, most] = [...sums].sort((one, other) => other[1] - one[1])[0] ?? [0, 0];
    return [bucket, value, group.length, most];
  });
  return counts(...rows);
}

function reducedWakeups(wakeups: readonly Wakeup[], begin: number, end: number, width: number): Items {
  const inside = wakeups.filter((one) => one.begin < end && one.end > begin);
  if (inside.length < 256 && width < 65_536) {
    return arrows(...inside.map((one) => [one.begin - begin, one.end - begin, one.from, one.to, one.value, 0]));
  }
  const starting = inside.filter((one) => one.begin >= begin).map((one) => ({ ...one, at: one.begin }));
  return arrowCounts(...grouped(starting, begin, width).flatMap(([bucket, group]) => group.map(({ from, to }) => [bucket, from, to, 1])));
}

function grouped<T extends { readonly at: number }>(items: readonly T[], begin: number, width: number): [number, T[]][] {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const bucket = Math.floor((item.at - begin) / width);
    const group = groups.get(bucket);
    if (group === undefined) {
      groups.set(bucket, [item]);
    } else {
      group.push(item);
    }
  }
  return [...groups];
}

/** Wider buckets are stored; finer ones are read, so that few runs come one by one. */
const STORED_WIDTH = 2 ** 19;

function reducedRuns(runs: readonly Run[], begin: number, end: number, width: number): { carry: number; items: Items } {
  const inside = runs.filter((run) => run.begin < end && run.end > begin);
  if (width < STORED_WIDTH && inside.length <= Math.max(256, (end - begin) / width)) {
    return { carry: NONE, items: oneByOne(...inside.map((run) => [run.begin - begin, run.end - begin, run.value, 0])) };
  }
  const carry = runs.find((run) => run.begin < begin && run.end > begin)?.value ?? NONE;
  const buckets = new Map<number, { covered: Map<number, number>; begins: number; last: number }>();
  const begun = runs.filter((run) => run.begin >= begin && run.begin < end);
  // Runs are in the order of time, so that these rise.
  const changed = [...new Set(begun.map((run) => Math.floor((run.begin - begin) / width)))];
  for (const run of runs) {
    if (run.end <= begin || run.begin >= end) {
      continue;
    }
    const [low, high] = [Math.max(0, Math.floor((run.begin - begin) / width)), Math.floor((Math.min(run.end, end) - 1 - begin) / width)];
    // Only buckets in which something changes are told.
    for (const number of changed.slice(firstFrom(changed, low), firstFrom(changed, high + 1))) {
      const bucket = buckets.get(number) ?? { covered: new Map<number, number>(), begins: 0, last: NONE };
      const covers = Math.min(run.end, begin + (number + 1) * width) - Math.max(run.begin, begin + number * width);
      bucket.covered.set(run.value, (bucket.covered.get(run.value) ?? 0) + covers);
      bucket.begins += run.begin >= begin + number * width ? 1 : 0;
      bucket.last = run.value;
      buckets.set(number, bucket);
    }
  }
  const rows = [...buckets].sort(([one], [other]) => one - other).map(([number, { covered, begins, last }]) => {
    const [first, second] = [...covered].sort((one, other) => other[1] - one[1]);
    const share = (part: number | undefined): number => Math.round((65_535 * (part ?? 0)) / width);
    return [number, first?.[0] ?? NONE, second?.[0] ?? NONE, last, begins, share(first?.[1]), share(second?.[1])];
  });
  return { carry, items: states(...rows) };
}

/** Where the first of rising numbers stands that is not less than one. */
function firstFrom(rising: readonly number[], least: number): number {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    [low, high] = (rising[middle] ?? least) < least ? [middle + 1, high] : [low, middle];
  }
  return low;
}
