import { expect, test } from "vitest";
import { EMPTY_CATALOGUE, type Status } from "../model/catalogue.ts";
import { PLAIN_LISTED } from "../model/listed.ts";
import { decodeUrl, encode } from "../model/url.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { Store } from "./store.ts";
import {
  FIRST_STATE,
  clockOf,
  markShown,
  moved,
  opened,
  reopened,
  resized,
  scrolledTo,
  hasJumped,
  returned,
  seenIn,
  toggleFold,
  toggleHide,
  togglePin,
  wentBack,
  wentForward,
  wentTo,
  widthOf,
  withCatalogue,
  withFault,
  withStatus,
  withTiles,
  type State,
} from "./viewer.ts";
import { trackLike } from "../testing/tracks.ts";

function statusOf(begin: number, end: number, version = 1): Status {
  const extent = { begin: nanos(begin), end: nanos(end) };
  const levels = { min: level(0), max: level(62) };
  return { extent, unix: true, levels, version, doneBytes: 0, totalBytes: 1, etaMs: null, state: "building", failure: null, events: null, lost: 0n };
}


const ready: State = withStatus(FIRST_STATE, statusOf(0, 10_000));
const window = (begin: number, span: number): { begin: ReturnType<typeof nanos>; span: ReturnType<typeof nanos> } => ({ begin: nanos(begin), span: nanos(span) });

test("whoever listens hears of changes, and only of those", () => {
  const store = new Store(1);
  let heard = 0;
  const end = store.subscribe(() => heard++);
  store.update((count) => count + 1);
  store.update((count) => count);
  end();
  store.update((count) => count + 1);
  expect([store.state, heard]).toEqual([3, 1]);
});

test("the first window shows everything, and goes on doing so while the traces grow", () => {
  expect(ready.view).toEqual(window(0, 10_000));
  expect(withStatus(ready, statusOf(0, 20_000)).view).toEqual(window(0, 20_000));
  const near = moved(ready, window(5_000, 100));
  expect(near.view).toEqual(window(5_000, 100));
  // The same value, so that nothing is drawn again.
  expect(withStatus(near, statusOf(0, 20_000)).view).toBe(near.view);
});

test("a window of the URL is kept, as far as there are traces", () => {
  const state = opened(decodeUrl("#at=9990~100&pin=a&down=50"), "UTC", "dark");
  expect(withStatus(state, statusOf(0, 10_000)).view).toEqual(window(9_900, 100));
  expect([state.layout.pinned, state.scroll, state.theme]).toEqual([["a"], 50, "dark"]);
});

test("another URL is shown, and one can go back from it", () => {
  const state = withCatalogue(ready, { ...EMPTY_CATALOGUE, tracks: [trackLike(0), trackLike(1)] });
  const there = reopened(state, decodeUrl("#at=5~100&selected=7~3&hide=t0&time=absolute"));
  expect([there.view, there.selection, there.timeStyle]).toEqual([window(5, 100), window(7, 3), "absolute"]);
  expect(there.rows.map((row) => row.key)).toEqual(["group G", "track t1"]);
  expect(wentBack(there).view).toEqual(ready.view);
  expect(reopened(there, decodeUrl("")).view).toEqual(ready.view);
  expect(encode(seenIn(reopened(there, decodeUrl("")), PLAIN_LISTED))).toBe("");
  expect(reopened(FIRST_STATE, decodeUrl("#at=5~100")).view).toEqual(window(5, 100));
});

test("a place of the history is gone back to, and all else stays", () => {
  const state = withCatalogue(ready, { ...EMPTY_CATALOGUE, tracks: [trackLike(0), trackLike(1)] });
  const now = togglePin({ ...state, timeStyle: "absolute" }, "t1");
  const there = returned(now, decodeUrl("#at=5~100&selected=7~3&hide=t0&mark=6"));
  expect([there.view, there.selection, there.mark, there.layout, there.timeStyle]).toEqual([window(5, 100), window(7, 3), 6n, now.layout, "absolute"]);
  expect([returned(there, decodeUrl("")).view, returned(there, decodeUrl("")).selection]).toEqual([ready.view, null]);
  expect([hasJumped(now, there), hasJumped(now, moved(now, window(5, 100))), hasJumped(now, { ...now, past: [] })]).toEqual([true, false, false]);
});

test("the URL is empty when there is nothing special to see", () => {
  expect(encode(seenIn(ready, PLAIN_LISTED))).toBe("");
  expect(encode(seenIn(moved(ready, window(5, 100)), PLAIN_LISTED))).toBe("at=5~100");
});

test("windows stay on the traces, and the same window is the same state", () => {
  expect(moved(ready, window(-500, 100)).view).toEqual(window(0, 100));
  expect(moved(ready, window(0, 99_999))).toBe(ready);
  expect(moved(FIRST_STATE, window(0, 1))).toBe(FIRST_STATE);
});

test("one can go back to windows, and forward again, until one goes elsewhere", () => {
  const one = wentTo(ready, window(100, 1_000));
  const two = wentTo(one, window(200, 500));
  const back = wentBack(two);
  expect(back.view).toEqual(one.view);
  expect(wentForward(back).view).toEqual(two.view);
  expect(wentBack(wentBack(back))).toEqual(wentBack(back));
  const elsewhere = wentTo(back, window(7_000, 500));
  expect(wentForward(elsewhere)).toBe(elsewhere);
  expect(wentTo(one, window(100, 1_000))).toBe(one);
});

test("a marked time is in the window: in its middle, if it was not in it, and one can go back if that is far", () => {
  const near = moved(ready, window(5_000, 100));
  expect(markShown(near, nanos(5_099))).toEqual({ ...near, mark: 5_099n });
  expect(markShown(near, nanos(5_100))).toMatchObject({ mark: 5_100n, view: window(5_050, 100), past: [] });
  expect(markShown(near, nanos(9_000))).toMatchObject({ mark: 9_000n, view: window(8_950, 100), past: [near.view] });
  expect(markShown(markShown(near, nanos(5_099)), nanos(5_099)).view).toBe(near.view);
});

test("the list of windows to go back to does not grow for ever", () => {
  let state = ready;
  for (let step = 0; step < 300; step++) {
    state = wentTo(state, window(step, 100));
  }
  expect(state.past.length).toBe(100);
});

test("rows follow the catalogue and the layout", () => {
  const tracks = [trackLike(0), trackLike(1)];
  const state = withCatalogue(ready, { ...EMPTY_CATALOGUE, tracks });
  expect(state.rows.map((row) => row.key)).toEqual(["group G", "track t0", "track t1"]);
  expect(withCatalogue(state, state.catalogue)).toBe(state);
  expect(togglePin(state, "t1").rows.map((row) => row.key)).toEqual(["group Pinned", "pinned t1", ...state.rows.map((row) => row.key)]);
  expect(togglePin(togglePin(state, "t1"), "t1").rows).toEqual(state.rows);
  expect(toggleHide(state, "t0").rows.map((row) => row.key)).toEqual(["group G", "track t1"]);
  expect(toggleFold(state, "G").rows.length).toBe(1);
});

test("scrolling ends where the rows end; the URL's place waits for them", () => {
  const tracks = Array.from({ length: 10 }, (_, number) => trackLike(number));
  const early = resized({ ...ready, scroll: 120 }, { width: cssPx(100), height: cssPx(100), ratio: 2 });
  expect(early.scroll).toBe(120);
  const state = withCatalogue(early, { ...EMPTY_CATALOGUE, tracks });
  expect(scrolledTo(state, 1_000).scroll).toBe(24 + 200 - 100);
  expect(scrolledTo(state, -5).scroll).toBe(0);
  expect(scrolledTo(state, 120)).toBe(state);
  expect(widthOf(state)).toBe(200);
});

test("the URL's place is gone to as soon as there are so many rows, and stands in the URL until then", () => {
  const some = (count: number): State["catalogue"] => ({ ...EMPTY_CATALOGUE, tracks: Array.from({ length: count }, (_, number) => trackLike(number)) });
  const first = withStatus(opened(decodeUrl("#down=120"), "UTC", "dark"), statusOf(0, 10_000));
  const few = withCatalogue(resized(first, { width: cssPx(100), height: cssPx(100), ratio: 1 }), some(6));
  expect([few.scroll, seenIn(few, PLAIN_LISTED).scroll]).toEqual([24 + 120 - 100, 120]);
  expect(withCatalogue(few, some(20))).toMatchObject({ scroll: 120, scrollWish: null });
  // Who scrolls elsewhere meanwhile stays there; so does who waits for what never comes.
  expect(withCatalogue(scrolledTo(few, 10), some(20)).scroll).toBe(10);
  const complete = withStatus(few, { ...statusOf(0, 10_000, 2), state: "complete" });
  expect(seenIn(withCatalogue(complete, some(7)), PLAIN_LISTED).scroll).toBe(24 + 140 - 100);
});

test("a catalogue with fewer tracks leaves nothing empty below them", () => {
  const some = (count: number): State["catalogue"] => ({ ...EMPTY_CATALOGUE, tracks: Array.from({ length: count }, (_, number) => trackLike(number)) });
  const many = withCatalogue(resized(ready, { width: cssPx(100), height: cssPx(100), ratio: 1 }), some(20));
  expect(withCatalogue(scrolledTo(many, 300), some(8)).scroll).toBe(24 + 160 - 100);
});

test("a fault stays until the server answers", () => {
  const lost = withFault(ready, { kind: "unreachable", message: "the server does not answer" });
  expect(lost.connection).toBe("lost");
  expect(withTiles(lost, true)).toMatchObject({ arrivals: 1, complete: true, fault: lost.fault });
  expect(withFault(FIRST_STATE, { kind: "token", message: "the token is missing" }).connection).toBe("refused");
  const again = withStatus(lost, statusOf(0, 10_000, 2));
  expect([again.connection, again.fault]).toEqual(["heard", null]);
  const failed = withFault(ready, { kind: "server", message: "the disk is full" });
  expect(failed.connection).toBe("heard");
  expect(withTiles(failed, false).fault).toBeNull();
});

test("times count from the begin of the traces", () => {
  expect(clockOf(ready)).toEqual({ origin: 0n, unix: true, zone: "UTC", style: "relative" });
  expect(clockOf(FIRST_STATE).unix).toBe(false);
  const ofDays = withStatus(FIRST_STATE, statusOf(0, 86_400_000_000_000));
  expect([clockOf(ofDays).days, clockOf({ ...ofDays, timeStyle: "absolute" }).days, clockOf({ ...ready, timeStyle: "absolute" }).days]).toEqual([undefined, true, undefined]);
});
