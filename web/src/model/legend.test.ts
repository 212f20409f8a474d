import { expect, test } from "vitest";
import { counts, instants, runs, states } from "../testing/tiles.ts";
import { trackLike } from "../testing/tracks.ts";
import { TILE_BUCKETS, level, tileIndex, trackNumber, valueNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Piece } from "./cache.ts";
import type { Catalogue, TrackValue } from "./catalogue.ts";
import { allBut, only } from "./choice.ts";
import { stateKey, stateLabel, threadOf, valueTest } from "./filter-values.ts";
import { PLAIN_FILTER, type Filter } from "./filter.ts";
import { ENTRIES_MAX, chosenBy, isNamed, legendOf, outTest, type LegendAct, type LegendEntry, type LegendSection } from "./legend.ts";
import { NONE, type Items } from "./tile.ts";

const MAKE = { process: "7", application: "make", colour: 1 };
const VALUES: TrackValue[] = [
  { label: "idle", kind: "thread" },
  { label: "make (7)", kind: "thread", track: trackNumber(0), owner: MAKE },
  { label: "cc1 (9)", kind: "thread", owner: MAKE },
  { label: "bash (5)", kind: "thread", owner: { process: "5", application: "bash", colour: 2 } },
  { label: "running", kind: "doing" },
  { label: "blocked", kind: "doing" },
  { label: "a:b", kind: "slice" },
  { label: "sched_switch", kind: "event" },
].map((value, number) => ({ colour: number, number: valueNumber(number), ...value }));
const [IDLE, MAKE7, CC1, BASH, RUNNING, BLOCKED, SLICE, EVENT] = [0, 1, 2, 3, 4, 5, 6, 7] as const;
const CATALOGUE: Catalogue = { tracks: [trackLike(0, { tid: 7, process: "7" })], values: VALUES };
const all = (number: number): TrackValue => VALUES[number] ?? { number: valueNumber(number), label: "", kind: "", colour: 0 };

const piece = (items: Items, carry = NONE, begin = 0, end = TILE_BUCKETS): Piece => {
  return { tile: { level: level(2), index: tileIndex(0), track: trackNumber(0), carry, items, spans: [] }, begin, end, standIn: false };
};
const WINDOW = { begin: nanos(1_000), span: nanos(4 * TILE_BUCKETS) };
const shown = (pieces: readonly Piece[], view = WINDOW, by: "thread" | "application" = "thread"): readonly LegendSection[] => legendOf(pieces, view, nanos(1_000), CATALOGUE, by);
const told = (sections: readonly LegendSection[]): string[] => sections.map(({ title, entries }) => `${title}: ${entries.map(({ label }) => label).join(", ")}`);

test("the legend has what is seen in the window, in sections, in the order of names", () => {
  const pieces = [
    piece(states([10, RUNNING, BLOCKED, BLOCKED, 1, 40_000, 20_000]), RUNNING),
    piece(runs([0, 40, MAKE7, 0], [40, 60, IDLE, 0], [500, 600, BASH, 0])),
    piece(counts([3, EVENT, 5, 5])),
    piece(runs([900, 1_100, SLICE, 0])),
  ];
  expect(told(shown(pieces))).toEqual(["States: blocked, running", "Threads: bash (5), idle, make (7)", "Durations: a:b", "Events: sched_switch"]);
  // Of tiles that reach out of the window, only what is in it.
  expect(told(shown(pieces, { begin: nanos(1_000 + 50), span: nanos(100) }))).toEqual(["States: blocked", "Threads: idle"]);
  expect(told(shown([piece(instants([100, EVENT, 0]))], { begin: nanos(1_101), span: nanos(100) }))).toEqual([]);
});

test("the legend has durations that take no time where they begin", () => {
  const none = [piece(runs([40, 40, SLICE, 0], [60, 60, MAKE7, 0])), piece(states([20, BLOCKED, NONE, NONE, 1, 0, 0]))];
  expect(told(shown(none))).toEqual(["States: blocked", "Threads: make (7)", "Durations: a:b"]);
  expect(told(shown(none, { begin: nanos(1_000 + 40), span: nanos(20) }))).toEqual(["Durations: a:b"]);
});

test("threads of an application are one entry where these are colored", () => {
  expect(told(shown([piece(runs([0, 40, MAKE7, 0], [40, 60, CC1, 0], [60, 70, IDLE, 0]))], WINDOW, "application"))).toEqual(["Threads: idle", "Applications: make"]);
});

test("of many values the heaviest are there, and how many are not", () => {
  const values = Array.from({ length: 40 }, (_, number) => ({ ...all(EVENT), number: valueNumber(number), label: `e${number}` }));
  const [events] = legendOf([piece(counts(...values.map(({ number }) => [number, number, 1 + number, 1])))], WINDOW, nanos(1_000), { tracks: [], values }, "thread");
  expect([events?.entries.length, events?.more, events?.entries[0]?.label, events?.entries.at(-1)?.label]).toEqual([ENTRIES_MAX, 40 - ENTRIES_MAX, "e28", "e39"]);
});

const filtered = (more: Partial<Filter>): Filter => ({ ...PLAIN_FILTER, ...more });

const clicked = (entry: LegendEntry, act: LegendAct, filter: Filter): Partial<Filter> => chosenBy(entry, act, filter, CATALOGUE);

test("a click means only this, or all again; with keys also this, or all but this", () => {
  const entries = new Map(shown([piece(runs([0, 40, MAKE7, 0], [40, 60, IDLE, 0], [60, 61, RUNNING, 0]), NONE), piece(counts([1, EVENT, 1, 1]))]).flatMap((section) => section.entries).map((entry) => [entry.label, entry]));
  const make = entries.get("make (7)") as LegendEntry;
  const chosen = filtered(clicked(make, "only", PLAIN_FILTER));
  expect(chosen.threads).toEqual(only([7]));
  expect([isNamed(make, chosen), outTest(chosen, CATALOGUE)(make), outTest(filtered({ threads: only([9]) }), CATALOGUE)(make)]).toEqual([true, false, true]);
  expect(clicked(make, "only", chosen)).toEqual({ threads: null });
  expect(clicked(make, "also", filtered({ threads: only([9]) }))).toEqual({ threads: only([9, 7]) });
  expect(clicked(make, "also", filtered({ threads: only([9, 7]) }))).toEqual({ threads: only([9]) });
  expect([clicked(make, "but", PLAIN_FILTER), clicked(make, "but", filtered({ threads: allBut([7]) }))]).toEqual([{ threads: allBut([7]) }, { threads: null }]);
  expect(clicked(entries.get("running") as LegendEntry, "only", PLAIN_FILTER)).toEqual({ states: only(["doing:running"]) });
  expect(clicked(entries.get("sched_switch") as LegendEntry, "only", PLAIN_FILTER)).toEqual({ events: only(["sched_switch"]) });
  // There is no thread that is idle.
  expect(clicked(entries.get("idle") as LegendEntry, "only", PLAIN_FILTER)).toEqual({});
});

test("only entries whose bars are paler are struck out, and events that are not selected", () => {
  const pieces = [piece(runs([0, 40, MAKE7, 0], [40, 60, BASH, 0], [60, 70, RUNNING, 0], [70, 80, BLOCKED, 0], [80, 90, SLICE, 0])), piece(counts([1, EVENT, 1, 1]))];
  const out = (more: Partial<Filter>, by: "thread" | "application" = "thread"): string[] =>
    shown(pieces, WINDOW, by).flatMap(({ entries }) => entries.filter(outTest(filtered(more), CATALOGUE)).map(({ label }) => label));
  expect(out({ states: only(["doing:blocked"]) })).toEqual(["running"]);
  expect(out({ states: only(["call:select"]) })).toEqual([]);
  expect(out({ states: allBut(["slice:a:b"]) })).toEqual(["a:b"]);
  expect([out({ processes: only(["7"]) }), out({ applications: only(["make"]) }), out({ applications: only(["make"]) }, "application")]).toEqual([["bash (5)"], ["bash (5)"], ["bash"]]);
  // A chosen name may be a pattern.
  expect([out({ events: only(["sched_*"]) }), out({ events: only(["irq_*"]) })]).toEqual([[], ["sched_switch"]]);
  const event = shown(pieces).flatMap(({ entries }) => entries).find(({ facet }) => facet === "events") as LegendEntry;
  expect([clicked(event, "also", filtered({ events: only(["sched_*"]) })), clicked(event, "also", filtered({ events: only(["irq_*"]) }))]).toEqual([{ events: { only: ["sched_*"], but: ["sched_switch"] } }, { events: only(["irq_*", "sched_switch"]) }]);
});

test("values that stand for several can be looked up, and not chosen", () => {
  const values = [...VALUES, ...["others", "estimate"].map((kind, index): TrackValue => ({ number: valueNumber(8 + index), label: kind, kind, colour: 0 }))];
  const [section] = legendOf([piece(runs([0, 40, 8, 0], [40, 60, 9, 0]))], WINDOW, nanos(1_000), { tracks: [], values }, "thread");
  expect(section?.entries.map((entry) => [entry.label, entry.facet, chosenBy(entry, "only", PLAIN_FILTER, { values })])).toEqual([
    ["estimate", null, {}],
    ["others", null, {}],
  ]);
});

test("values are meant by what they are", () => {
  const meant = (more: Partial<Filter>): number[] => VALUES.filter(valueTest(filtered(more), CATALOGUE) ?? (() => true)).map(({ number }) => number);
  const others = [RUNNING, BLOCKED, SLICE, EVENT];
  expect(valueTest(filtered({ events: only(["x"]), cpus: only([1]) }), CATALOGUE)).toBe(null);
  expect(meant({ threads: only([7]) })).toEqual([IDLE, MAKE7, ...others]);
  expect(meant({ threads: allBut([9]) })).toEqual([IDLE, MAKE7, BASH, ...others]);
  expect(meant({ applications: only(["make"]) })).toEqual([IDLE, MAKE7, CC1, ...others]);
  expect(meant({ processes: allBut(["7"]) })).toEqual([IDLE, BASH, ...others]);
  // A state leaves durations as they are.
  expect(meant({ states: only(["doing:running"]) })).toEqual([IDLE, MAKE7, CC1, BASH, RUNNING, SLICE, EVENT]);
  expect(meant({ states: allBut(["slice:a:b"]) })).toEqual([IDLE, MAKE7, CC1, BASH, RUNNING, BLOCKED, EVENT]);
  expect([stateKey(all(SLICE)), stateLabel("slice:a:b"), threadOf(all(CC1), []), threadOf(all(IDLE), [])]).toEqual(["slice:a:b", "a:b", 9, null]);
});
