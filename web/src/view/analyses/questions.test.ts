import { expect, test } from "vitest";
import { Client } from "../../api/client.ts";
import type { Catalogue } from "../../model/catalogue.ts";
import { only } from "../../model/choice.ts";
import { PLAIN_FILTER, type Filter } from "../../model/filter.ts";
import { Store } from "../../state/store.ts";
import { FIRST_STATE } from "../../state/viewer.ts";
import { trackLike } from "../../testing/tracks.ts";
import { Desk } from "./desk.ts";
import { excludedText, isExcluding, isOfAllThreads, questionFor } from "./questions.ts";

const NONE = { cpu: [], thread: [], process: [], processName: [] };
const CATALOGUE: Catalogue = { tracks: [trackLike(0, { id: "cpu/0/0/thread", cpu: 0 }), trackLike(1, { id: "thread/0/7/state", tid: 7 })], values: [] };

/** The options of a question to an analysis that tells threads apart, and to one that does not, with the words about both. */
function told(change: Partial<Filter>): readonly (readonly [options: unknown, isExcluding: boolean, isOfAllThreads: boolean])[] {
  const store = new Store({ ...FIRST_STATE, catalogue: CATALOGUE, filter: { ...PLAIN_FILTER, names: NONE, mode: "exclude" as const, ...change } });
  const desk = new Desk(new Client("api", null, () => Promise.reject(new Error("nothing is asked"))));
  const analysis = (kind: string, ofThreads: boolean): object => ({ kind, title: kind, description: "", tables: [], by: [], ofThreads });
  desk.store.update((state) => ({ ...state, analyses: [analysis("cpu", true), analysis("count", false)] as never }));
  return ["cpu", "count"].map((kind) => [questionFor({ store, desk }, kind, {}).options, isExcluding({ store, desk }, kind), isOfAllThreads({ store, desk }, kind)]);
}

test("an analysis that cannot tell threads apart is about all of them, which excludes nothing", () => {
  expect(told({ threads: only([7]) })).toEqual([[{ tids: [7] }, true, false], [{}, false, true]]);
  // An expression excludes events beside that.
  expect(told({ threads: only([7]), text: "id > 1" })).toEqual([[{ filter: "id > 1", tids: [7] }, true, false], [{ filter: "id > 1" }, true, true]]);
  expect(told({ text: "id > 1" })).toEqual([[{ filter: "id > 1" }, true, false], [{ filter: "id > 1" }, true, false]]);
  expect([told({ threads: only([7]), mode: "hide" }), told({})]).toEqual([[[{}, false, false], [{}, false, false]], [[{}, false, false], [{}, false, false]]]);
  expect([excludedText(false, false), excludedText(true, true)]).toEqual(["", " · without what the filter excludes · of all threads: this analysis cannot tell them apart"]);
});
