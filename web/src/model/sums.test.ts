import { expect, test } from "vitest";
import { arrowCounts, counter, counts, heat, heldCounter, instants, runs, states } from "../testing/tiles.ts";
import { trackLike } from "../testing/tracks.ts";
import { level, trackNumber, valueNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Catalogue } from "./catalogue.ts";
import { bucketsFor, sumsOf, valuesIn, type TrackSum } from "./sums.ts";
import { tablesOf } from "./sumtext.ts";
import { NONE, type Answer, type Items, type Span } from "./tile.ts";

/** Traces begin there. */
const ORIGIN = 1_000n;
const EXTENT = { begin: nanos(ORIGIN), end: nanos(ORIGIN + 4_090n) };
const FULL = 65_535;
const EXACT: readonly Span[] = [{ begin: 0, end: 256, quality: "exact" }];

/** Buckets of 16 ns from the begin of the traces on. */
function answerOf(all: readonly Items[], carry = NONE, spans = EXACT): Answer {
  return { level: level(4), first: 0n, count: 256, spans, tracks: all.map((items, number) => ({ track: trackNumber(number), carry, items })) };
}

function sumOf(items: Items, [begin, span]: readonly [number, number], carry = NONE): TrackSum | undefined {
  return sumsOf(answerOf([items], carry), { begin: nanos(ORIGIN + BigInt(begin)), span: nanos(span) }, EXTENT).tracks[0];
}

function timesOf(sum: TrackSum | undefined): Record<string, number> {
  return Object.fromEntries([...(sum?.values ?? [])].map(([value, { time }]) => [String(value), Math.round(time)]));
}

test("states count for what they cover of buckets, and what goes on between them", () => {
  const items = states([2, 7, 8, 8, 2, FULL / 3, (2 * FULL) / 3], [5, 9, NONE, NONE, 1, FULL / 2, 0]);
  // Before the first bucket what the carry says, between the buckets what is held, behind the last one nothing.
  expect(timesOf(sumOf(items, [0, 160], 3))).toEqual({ 3: 32, 7: 5, 8: 43, 9: 8 });
  expect(sumOf(items, [0, 160], 3)).toMatchObject({ form: "states", count: 3, isExact: false });
  // Half of a bucket is half of what is in it.
  expect(timesOf(sumOf(items, [40, 8], 3))).toEqual({ 7: 3, 8: 5 });
  expect(timesOf(sumOf(items, [96, 64], 3))).toEqual({});
});

test("runs are cut at the edges, and exact", () => {
  const items = runs([-50, 20, 1, 0], [20, 50, 2, 0], [60, 90, 1, 0], [200, 300, 3, 0]);
  const sum = sumOf(items, [10, 60]);
  expect(sum).toMatchObject({ form: "states", count: 2, isExact: true });
  expect([...(sum?.values ?? [])]).toEqual([
    [1, { time: 20, count: 2, longest: 10 }],
    [2, { time: 30, count: 1, longest: 30 }],
  ]);
});

test("durations that take no time are there, one by one and in buckets", () => {
  const catalogue: Catalogue = { tracks: [trackLike(0)], values: [{ number: valueNumber(0), label: "step", kind: "slice", colour: 0 }] };
  const told = (items: Items, begin = 0): string[][] =>
    tablesOf(sumsOf(answerOf([items]), { begin: nanos(ORIGIN + BigInt(begin)), span: nanos(160) }, EXTENT), catalogue, nanos(160)).flatMap(({ title, rows }) => rows.map(([name, cells]) => [title, name, ...cells]));
  expect(told(runs([10, 10, 0, 0], [20, 20, 0, 0], [30, 30, 0, 0]))).toEqual([["Durations", "step", "0 ns", "0.0 %", "3", "0 ns", "0 ns"]]);
  const bucketed = states([2, 0, NONE, NONE, 3, 0, 0]);
  expect([told(bucketed), told(bucketed, 48)]).toEqual([[["Durations", "step", "~0 ns", "0.0 %"]], []]);
});

test("events are counted, those of which is not known what they are as others", () => {
  const sum = sumOf(counts([1, 4, 10, 6], [2, 5, 3, 3], [50, 4, 99, 99]), [0, 48]);
  expect([sum?.count, [...(sum?.values ?? [])].map(([value, { count }]) => [value, count])]).toEqual([13, [[4, 6], [NONE, 4], [5, 3]]]);
  const exact = sumOf(instants([5, 4, 0], [6, 4, 0], [47, 5, 0], [48, 5, 0]), [6, 42]);
  expect([exact?.count, exact?.isExact, [...(exact?.values ?? [])].map(([value, { count }]) => [value, count])]).toEqual([2, true, [[4, 1], [5, 1]]]);
});

test("counters have an average over time, durations the shortest and the longest, arrows a count", () => {
  expect(sumOf(heldCounter(4, [2, 1, 4, 8, 8, 6]), [0, 64])).toMatchObject({ form: "counter", count: 1, number: { min: 4, max: 8, mean: (4 * 2 + 6 + 8) / 4 } });
  expect(sumOf(counter(), [0, 64])?.number).toBe(null);
  expect(sumOf(heat([0, 9, 2], [1, 17, 3], [80, 200, 9]), [0, 64])).toMatchObject({ form: "durations", count: 5, bins: [9, 17] });
  expect(sumOf(arrowCounts([0, 1, 2, 5, 10], [3, 1, 2, 7, 10]), [0, 56])).toMatchObject({ form: "arrows", count: 9 });
});

test("counts are exact where no event is in a bucket at an edge, and the end of the traces is none", () => {
  const items = counts([1, 4, 10, 6], [255, 5, 3, 3]);
  const whole = (span: number): unknown => [sumOf(items, [0, span])?.count, sumOf(items, [0, span])?.isExact];
  expect([whole(4_090), whole(4_084), whole(64), whole(24)]).toEqual([[13, true], [11, false], [10, true], [5, false]]);
});

test("events are counted for themselves on rows of threads, of streams and of all", () => {
  const tracks = ["thread/0/1/events", "thread/0/2/events", "events/0/0", "all/events"].map((id, number) => trackLike(number, { id, name: id, kind: "instants" }));
  const sums = sumsOf(answerOf([instants([1, 2, 0]), instants([2, 2, 0]), instants([1, 2, 0], [2, 2, 0]), instants([1, 2, 0], [2, 2, 0])]), { begin: nanos(ORIGIN), span: nanos(100) }, EXTENT);
  expect(tablesOf(sums, { ...catalogue, tracks }, nanos(100)).map(({ title }) => title)).toEqual(["Events of threads: 2", "Events of streams: 2", "All events: 2", "Events, row by row"]);
});

test("what is not read yet counts for nothing, and that is said", () => {
  const answer = answerOf([states([0, 7, NONE, 7, 1, FULL, 0])], NONE, [{ begin: 0, end: 2, quality: "exact" }, { begin: 2, end: 256, quality: "estimated" }]);
  const sums = sumsOf(answer, { begin: nanos(ORIGIN), span: nanos(64) }, EXTENT);
  expect([sums.isRead, timesOf(sums.tracks[0])]).toEqual([false, { 7: 32 }]);
});

test("so many buckets are asked for that the edges hardly matter", () => {
  const extent = { begin: nanos(ORIGIN), end: nanos(ORIGIN + 1_000_000_000_000n) };
  for (const span of [100n, 1_000_000n, 999_999_999_999n]) {
    const { count, level: found } = bucketsFor({ begin: nanos(ORIGIN), span: nanos(span) }, extent, { min: level(0), max: level(62) });
    expect(count).toBeLessThanOrEqual(16);
    expect(found === 0 || span >> BigInt(found) >= 950n).toBe(true);
  }
});

const value = (number: number, kind: string, label: string): Catalogue["values"][number] => ({ number: valueNumber(number), kind, label, colour: 0 });
const catalogue: Catalogue = {
  tracks: ["states", "states", "instants", "counter", "heat"].map((kind, number) => trackLike(number, { id: `t${number}`, name: `track ${number}`, kind: kind as "states", ...(kind === "counter" ? { unit: "B" } : {}) })),
  values: [value(0, "doing", "running"), value(1, "doing", "blocked"), value(2, "event", "tick"), value(3, "event", "tock")],
};

test("tables tell states over all rows and row by row, events, counters and durations", () => {
  const all = [runs([0, 40, 0, 0], [40, 100, 1, 0]), runs([50, 100, 0, 0]), instants([1, 2, 0], [2, 2, 0], [3, 3, 0]), heldCounter(2_048), heat([0, 80, 1], [1, 88, 2])];
  const sums = sumsOf(answerOf(all), { begin: nanos(ORIGIN), span: nanos(100) }, EXTENT);
  const told = tablesOf(sums, catalogue, nanos(100)).map(({ title, columns, rows }) => [title, columns.join(), ...rows.map(([name, cells]) => `${name}: ${cells.join(", ")}`)]);
  expect(told).toEqual([
    ["States of threads", "time,part,count,average,longest", "running: 90 ns, 45.0 %, 2, 45 ns, 50 ns", "blocked: 60 ns, 30.0 %, 1, 60 ns, 60 ns"],
    ["Events of streams: 3", "count", "tick: 2", "tock: 1"],
    ["Durations", "count,shortest,longest", "track 4: ~3, ~4.096 µs, ~8.192 µs"],
    ["Counters", "least,average,most", "track 3: 2\u202f048 B, 2\u202f048 B, 2\u202f048 B"],
    ["Row by row", "most of the time", "track 0: blocked 60.0 %, running 40.0 %", "track 1: running 50.0 %"],
  ]);
});

test("what is rounded is marked, and what has less is counted", () => {
  const many = counts(...Array.from({ length: 20 }, (_, at) => [at, at, 20 - at, 20 - at]));
  const [table] = tablesOf(sumsOf(answerOf([many, states()], NONE), { begin: nanos(ORIGIN + 2n), span: nanos(320) }, EXTENT), catalogue, nanos(320));
  expect([table?.title, table?.rows.length, table?.more, table?.rows[0]]).toEqual(["Events of streams: ~208", 20, 0, ["blocked", ["~19"]]]);
});

test("the time of values that a bucket does not name is not told apart, and is no value's", () => {
  const third = states([0, 7, 8, 8, 3, FULL / 2, FULL / 4], [2, 7, 8, 8, 2, FULL / 2, FULL / 2]);
  const sum = sumOf(third, [0, 48]);
  expect([Math.round(sum?.untold ?? 0), timesOf(sum)]).toEqual([4, { 7: 16, 8: 28 }]);
  // A bucket without a second value has nothing in the rest.
  expect(sumOf(states([0, 7, NONE, NONE, 1, FULL / 2, 0]), [0, 16])?.untold).toBe(0);
});

const owned = (number: number, label: string, process: string | null, application = label.replace(/ .*/, "")): Catalogue["values"][number] => ({
  ...value(number, "thread", label),
  ...(process === null ? {} : { owner: { process, application, colour: null } }),
});
const cpus: Catalogue = {
  tracks: [0, 1].map((number) => trackLike(number, { id: `cpu/0/${number}/thread`, name: `CPU ${number}`, cpu: number })),
  values: [owned(0, "idle", null), owned(1, "make (10)", "10"), owned(2, "cc1 (12)", "10", "make"), { ...value(3, "others", "others") }],
};

function told(all: readonly Items[], known = cpus): unknown[] {
  const tables = tablesOf(sumsOf(answerOf(all), { begin: nanos(ORIGIN), span: nanos(100) }, EXTENT), known, nanos(100));
  return tables.map(({ title, rows }) => [title, ...rows.map(([name, cells]) => `${name}: ${cells.join(", ")}`)]);
}

test("threads on CPUs are told by process, by thread and by CPU", () => {
  expect(told([runs([0, 40, 1, 0], [40, 70, 2, 0], [70, 100, 0, 0]), runs([0, 50, 0, 0], [50, 100, 1, 0])])).toEqual([
    ["Processes on CPUs", "make (10): 120 ns, 60.0 %, 3, 40 ns, 50 ns", "idle: 80 ns, 40.0 %, 2, 40 ns, 50 ns"],
    ["Threads on CPUs", "make (10): 90 ns, 45.0 %, 2, 45 ns, 50 ns", "idle: 80 ns, 40.0 %, 2, 40 ns, 50 ns", "cc1 (12): 30 ns, 15.0 %, 1, 30 ns, 30 ns"],
    ["CPUs", "CPU 0: 70 ns, 70.0 %, 30 ns, make (10)", "CPU 1: 50 ns, 50.0 %, 50 ns, make (10)"],
  ]);
});

test("what is not told apart is said with each of these, and never as a thread", () => {
  const bucketed = states([0, 1, 3, 1, 9, FULL / 2, FULL / 4], [1, 1, NONE, 1, 1, FULL, 0]);
  expect(told([bucketed])).toEqual([
    ["Processes on CPUs", "not told apart: ≤ ~8 ns, 8.0 %", "make (10): ~92 ns, 92.0 %"],
    ["Threads on CPUs", "not told apart: ≤ ~8 ns, 8.0 %", "make (10): ~92 ns, 92.0 %"],
    ["CPUs", "CPU 0: ~92 ns..100 ns, 92.0 %, ~0 ns..8 ns, make (10)"],
  ]);
});

test("a value that the catalog does not name yet is of the kind of the others on its track", () => {
  const tables = told([runs([0, 40, 1, 0], [40, 100, 77, 0])]);
  expect(tables.map((table) => (table as string[])[0])).toEqual(["Processes on CPUs", "Threads on CPUs", "CPUs"]);
  expect(tables[1]).toEqual(["Threads on CPUs", "(not named yet): 60 ns, 60.0 %, 1, 60 ns, 60 ns", "make (10): 40 ns, 40.0 %, 1, 40 ns, 40 ns"]);
});

test("sums say which values they speak of", () => {
  expect(valuesIn(sumsOf(answerOf([runs([0, 40, 1, 0], [40, 100, 77, 0]), counts([1, 4, 10, 6])]), { begin: nanos(ORIGIN), span: nanos(100) }, EXTENT))).toBe(78);
});
