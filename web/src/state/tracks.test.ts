import { expect, test } from "vitest";
import type { Status } from "../model/catalogue.ts";
import { only } from "../model/choice.ts";
import { nanos } from "../units/time.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { refiltered } from "./filter.ts";
import { followed, withItem } from "./item.ts";
import { trackSeen, withIdle } from "./tracks.ts";
import { FIRST_STATE, resized, scrolledTo, toggleFold, toggleHide, togglePin, withCatalogue, withLayout, withStatus, type State } from "./viewer.ts";
import { trackLike } from "../testing/tracks.ts";

const STATUS: Status = {
  extent: { begin: nanos(0), end: nanos(1_000_000) },
  unix: true,
  levels: { min: level(0), max: level(62) },
  version: 1,
  doneBytes: 1,
  totalBytes: 1,
  etaMs: null,
  state: "complete",
  failure: null,
  events: null,
  lost: 0n,
};

const TRACKS = Array.from({ length: 20 }, (_, number) => trackLike(number, { cpu: number }));
const sized = resized(withStatus(FIRST_STATE, STATUS), { width: cssPx(1_000), height: cssPx(100), ratio: 1 });
const ready: State = withCatalogue(sized, { tracks: TRACKS, values: [] });
const far = { id: "t15" };

/** Where the track's row is on the screen, of its height. */
function placeOf(state: State, id: string): number | null {
  const row = state.rows.find((one) => one.track?.id === id);
  return row === undefined ? null : row.top - state.scroll;
}

test.each<[string, State]>([
  ["as it is", ready],
  ["hidden", toggleHide(ready, "t15")],
  ["in a folded group", toggleFold(ready, "G")],
  ["hidden with all of its group", withLayout(ready, { ...ready.layout, closed: ["G"] })],
  ["hidden because nothing happens there", withIdle(withLayout(ready, { ...ready.layout, active: true }), new Set([15, 16]))],
  ["hidden by the filter", refiltered(ready, { mode: "hide", cpus: only([1, 2, 3]) })],
  ["hidden by all of these", withIdle(refiltered(toggleFold(toggleHide(withLayout(ready, { ...ready.layout, active: true }), "t15"), "G"), { mode: "hide", cpus: only([1]) }), new Set([15]))],
])("a track that is %s is seen in the middle, and meant", (_, state) => {
  const there = trackSeen(state, far);
  expect(placeOf(there, "t15")).toSatisfy((place: number | null) => place !== null && place >= 0 && place <= 80);
  expect(there.cursor).toEqual({ time: 500_000n, row: "track t15" });
  // What is picked is seen in the same way, but the pointer stays where it was.
  const item = followed(withItem(state, { track: "t15", time: nanos(5) }));
  expect([item.scroll, item.rows.map((row) => row.key), item.cursor]).toEqual([there.scroll, there.rows.map((row) => row.key), null]);
});

test("no more is taken back than hides the track", () => {
  const state = withIdle(refiltered(withLayout(toggleHide(ready, "t15"), { ...ready.layout, hidden: ["t15"], active: true }), { mode: "hide", cpus: only([15]) }), new Set([3]));
  const there = trackSeen(state, far);
  expect([there.layout.hidden, there.layout.active, there.filter.mode]).toEqual([[], true, "hide"]);
});

test("what analyses are asked for does not change by that", () => {
  const state = refiltered(ready, { mode: "exclude", cpus: only([1]) });
  const there = trackSeen(state, far);
  expect([there.filter, placeOf(there, "t15"), there.cursor]).toEqual([state.filter, null, null]);
});

test("nothing moves while some row of the track is on the screen", () => {
  expect(trackSeen(ready, { id: "t2" }, false)).toBe(ready);
  const pinned = togglePin(ready, "t15");
  expect(trackSeen(pinned, far)).toMatchObject({ scroll: 0, cursor: { row: "pinned t15" } });
  // Pinned rows stay on the screen.
  const down = scrolledTo(pinned, 150);
  expect(trackSeen(down, far)).toMatchObject({ scroll: 150, cursor: { row: "pinned t15" } });
  expect(trackSeen(toggleFold(down, "G"), far).cursor?.row).toBe("pinned t15");
  expect(trackSeen(ready, { id: "elsewhere" })).toBe(ready);
});

test("the row below the pointer stays where it is, whatever comes and goes above it", () => {
  const row = "track t12";
  const state: State = { ...scrolledTo(ready, 150), cursor: { time: nanos(0), row } };
  const y = (one: State): number => (one.rows.find(({ key }) => key === row)?.top ?? NaN) - one.scroll;
  const active = withIdle(withLayout(state, { ...state.layout, active: true }), new Set([0, 1, 2, 3]));
  const more = withIdle(active, new Set([1, 11]));
  expect([y(active), active.scroll, y(more), more.scroll]).toEqual([y(state), 70, y(state), 110]);
  // Without a pointer, the first row that is seen of those that are still there.
  const alone = withIdle({ ...more, cursor: null }, new Set([1, 2, 3, 11]));
  expect(alone.scroll).toBe(70);
  const pinned = togglePin(state, "t3");
  expect([y(pinned), pinned.scroll, y(togglePin(pinned, "t3"))]).toEqual([y(state), 194, y(state)]);
  expect([y(toggleHide(state, "t3")), y(refiltered(state, { mode: "hide", cpus: only([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]) }))]).toEqual([y(state), y(state)]);
  // As far as there are rows above it.
  expect(withIdle(active, new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])).scroll).toBe(0);
});

test("while it is not known whether something happens in a track, it stays as it is", () => {
  const active = withLayout(ready, { ...ready.layout, active: true });
  const hidden = withIdle(active, new Set([0, 1, 2]), new Set([3]));
  const shown = (state: State): number[] => state.rows.flatMap(({ track }) => track?.number ?? []);
  expect([shown(hidden).slice(0, 2), hidden.unsure]).toEqual([[3, 4], []]);
  // Another window, of which nothing is known: nothing changes.
  const moved = withIdle(hidden, new Set(), new Set());
  expect([moved.rows, moved.unsure]).toEqual([hidden.rows, [0, 1, 2]]);
  const known = withIdle(moved, new Set([1, 4]), new Set([0]));
  expect([shown(known).slice(0, 3), known.unsure]).toEqual([[0, 3, 5], [2]]);
  expect(withIdle(known, new Set([1, 4]), new Set([0]))).toBe(known);
  expect(withIdle(known, null)).toMatchObject({ idle: null, unsure: [] });
});
