import { expect, test } from "vitest";
import { EMPTY_CATALOGUE, type Status } from "../model/catalogue.ts";
import { PLAIN_LISTED } from "../model/listed.ts";
import { decodeUrl, encode } from "../model/url.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { followed, rowOf, shown, trackOf, withItem, withItemExtent, withItemSelected } from "./item.ts";
import { FIRST_STATE, reopened, resized, seenIn, wentBack, wentTo, withCatalogue, withStatus, type State } from "./viewer.ts";
import { trackLike } from "../testing/tracks.ts";

const STATUS: Status = {
  extent: { begin: nanos(0), end: nanos(10_000) },
  unix: true,
  levels: { min: level(0), max: level(62) },
  version: 1,
  doneBytes: 0,
  totalBytes: 1,
  etaMs: null,
  state: "complete",
  failure: null,
  events: null,
  lost: 0n,
};

const TRACKS = Array.from({ length: 10 }, (_, number) => trackLike(number));

/** A window of 1,000 ns from 4,000 on, five rows high. */
const small = resized(withCatalogue(withStatus(FIRST_STATE, STATUS), { ...EMPTY_CATALOGUE, tracks: TRACKS }), { width: cssPx(100), height: cssPx(100), ratio: 1 });
const ready: State = wentTo(small, { begin: nanos(4_000), span: nanos(1_000) });
const item = (track: string, time: number): { track: string; time: ReturnType<typeof nanos> } => ({ track, time: nanos(time) });
const picked = (track: string, begin: number, end: number): State =>
  withItemExtent(withItem(ready, item(track, begin)), item(track, begin), { begin: nanos(begin), end: nanos(end) });

test("something else is picked, whose ends are not known yet", () => {
  const one = picked("t0", 4_100, 4_200);
  expect(one.itemExtent).toEqual({ begin: 4_100n, end: 4_200n });
  expect(withItem(one, item("t0", 4_100))).toBe(one);
  expect(withItem(one, item("t0", 4_200)).itemExtent).toBeNull();
  expect(withItem(one, null)).toMatchObject({ item: null, itemExtent: null });
  // What is told of another one comes too late.
  expect(withItemExtent(one, item("t1", 4_100), { begin: nanos(0), end: nanos(1) })).toBe(one);
});

test("the URL says what is picked, and whether arrows are drawn", () => {
  const state = { ...picked("t3", 4_100, 4_200), arrows: false };
  expect(encode(seenIn(state, PLAIN_LISTED))).toBe("at=4000~1000&item=4100~t3&arrows=hidden");
  const again = reopened(state, decodeUrl("#at=4000~1000&item=4100~t3"));
  expect([again.item, again.itemExtent, again.arrows]).toEqual([item("t3", 4_100), state.itemExtent, true]);
  expect(reopened(state, decodeUrl("#item=5~t3")).itemExtent).toBeNull();
});

test("the window stays where what is picked is seen, and follows where it is not", () => {
  const seen = picked("t0", 3_900, 4_001);
  expect(followed(seen)).toBe(seen);
  const later = followed(picked("t0", 7_000, 7_100));
  expect(later.view).toEqual({ begin: 6_550n, span: 1_000n });
  expect(wentBack(later).view).toEqual(ready.view);
  // Without its ends, by its time.
  expect(followed(withItem(ready, item("t0", 500))).view).toEqual({ begin: 0n, span: 1_000n });
  expect(followed(ready)).toBe(ready);
});

test("its row is scrolled into sight", () => {
  expect(followed(picked("t9", 4_100, 4_200)).scroll).toBe(24 + 200 - 100);
  expect(followed(picked("t4", 4_100, 4_200)).scroll).toBe(24 + 4 * 20 + 10 - 50);
  expect(followed(picked("elsewhere", 4_100, 4_200)).scroll).toBe(0);
  // An arrow is drawn between rows that are seen already.
  const arrows = withCatalogue(picked("t9", 4_100, 4_200), { ...EMPTY_CATALOGUE, tracks: TRACKS.map((track) => ({ ...track, kind: "arrows" as const })) });
  expect(followed(arrows).scroll).toBe(0);
});

test("what is picked is shown with some room around it; what does not last is shown nearer each time", () => {
  expect(shown(picked("t0", 6_000, 6_200)).view).toEqual({ begin: 5_950n, span: 300n });
  const event = shown(picked("t0", 6_000, 6_000));
  expect(event.view).toEqual({ begin: 5_938n, span: 125n });
  expect(shown(event).view?.span).toBe(20n);
  expect(shown(ready)).toBe(ready);
});

test("the time of what is picked is selected, if it lasts", () => {
  expect(withItemSelected(picked("t0", 6_000, 6_200)).selection).toEqual({ begin: 6_000n, span: 200n });
  const event = picked("t0", 6_000, 6_000);
  expect(withItemSelected(event)).toBe(event);
  expect(withItemSelected(ready)).toBe(ready);
});

test("tracks and rows are found by id", () => {
  expect(trackOf(ready, "t7")?.number).toBe(7);
  expect(trackOf(ready, "t77")).toBeNull();
  expect(rowOf(ready, "t7")?.key).toBe("track t7");
});
