import { expect, test } from "vitest";
import { Client } from "../../api/client.ts";
import type { Catalogue } from "../../model/catalogue.ts";
import { allBut, only } from "../../model/choice.ts";
import { isActive, PLAIN_FILTER, type Filter } from "../../model/filter.ts";
import { Store } from "../../state/store.ts";
import { FIRST_STATE } from "../../state/viewer.ts";
import { trackLike } from "../../testing/tracks.ts";
import { Desk } from "./desk.ts";
import { followingOf, followingText, questionFor } from "./questions.ts";

const NONE = { cpu: [], thread: [], process: [], processName: [] };
const CATALOGUE: Catalogue = { tracks: [trackLike(0, { id: "cpu/0/0/thread", cpu: 0 }), trackLike(1, { id: "thread/0/7/state", tid: 7 })], values: [] };

/** The options of a question to an analysis of memory and to the one of CPUs, which both tell threads apart, and to one that does not, with the words about both. */
function told(change: Partial<Filter>): readonly (readonly [options: unknown, text: string])[] {
  const store = new Store({ ...FIRST_STATE, catalogue: CATALOGUE, filter: { ...PLAIN_FILTER, names: NONE, mode: "exclude" as const, ...change } });
  const desk = new Desk(new Client("api", null, () => Promise.reject(new Error("nothing is asked"))));
  const analysis = (kind: string, ofThreads: boolean, ofEvents: boolean): object => ({ kind, title: kind, description: "", tables: [], by: [], ofThreads, ofEvents });
  expect(questionFor({ store, desk }, "cpu", {}) === null).toBe(store.state.filter.mode === "exclude" && isActive(store.state.filter));
  desk.store.update((state) => ({ ...state, analyses: [analysis("memory", true, true), analysis("count", false, true), analysis("cpu", true, false)] as never }));
  return ["memory", "count", "cpu"].map((kind) => [questionFor({ store, desk }, kind, {})?.options, followingText(followingOf({ store, desk }, kind))]);
}

const ASIDE = " · of everything: only exclude applies the filter to analyses";
const SOME = " · without what the filter excludes";
const ALL_THREADS = " · of all threads: this analysis cannot tell them apart";
const ALL_EVENTS = " · of all events: this analysis needs every change of threads";

test("an analysis that cannot tell threads apart is about all of them, which excludes nothing", () => {
  expect(told({ threads: only([7]) })).toEqual([[{ tids: [7] }, SOME], [{}, ALL_THREADS], [{ tids: [7] }, SOME]]);
  // An expression excludes events beside that, but not the changes of threads that an analysis of CPUs needs.
  expect(told({ threads: only([7]), text: "id > 1" })).toEqual([[{ filter: "id > 1", tids: [7] }, SOME], [{ filter: "id > 1" }, SOME + ALL_THREADS], [{ tids: [7] }, SOME + ALL_EVENTS]]);
  expect(told({ text: "id > 1" })).toEqual([[{ filter: "id > 1" }, SOME], [{ filter: "id > 1" }, SOME], [{}, ALL_EVENTS]]);
  expect([told({ threads: only([7]), mode: "hide" }), told({})]).toEqual([[[{}, ASIDE], [{}, ASIDE], [{}, ASIDE]], [[{}, ""], [{}, ""], [{}, ""]]]);
});

test("an analysis of CPUs gets the chosen CPUs and threads as options, also where events name both", () => {
  const names = { cpu: [{ name: "perf_cpu", isEverywhere: true }], thread: [{ name: "perf_tid", isEverywhere: true }], process: [], processName: [] };
  const cpu = (change: Partial<Filter>): unknown => told({ names, ...change })[2];
  expect(cpu({ threads: only([7]) })).toEqual([{ tids: [7] }, SOME]);
  expect(cpu({ cpus: only([0]), events: only(["a"]) })).toEqual([{ cpus: [0] }, SOME + ALL_EVENTS]);
  expect(cpu({ cpus: allBut([0]) })).toEqual([{ cpus: [999_999_999] }, SOME]);
  expect(told({ names, threads: only([7]) })[0]).toEqual([{ filter: "perf_tid in (7)" }, SOME]);
});
