import { expect, test } from "vitest";
import { EMPTY_CATALOGUE, type Status } from "../model/catalogue.ts";
import { FOLLOW_SPAN } from "../model/follow.ts";
import type { Live } from "../model/live.ts";
import { PLAIN_LISTED } from "../model/listed.ts";
import { decodeUrl, encode } from "../model/url.ts";
import { endOf, pan } from "../model/viewport.ts";
import { trackLike } from "../testing/tracks.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { SECOND, nanos } from "../units/time.ts";
import { arrived, goneAlong, paused, resumed, toggledFollow, zoomed } from "./live.ts";
import { FIRST_STATE, markShown, moved, opened, reopened, resized, seenIn, wentBack, wentTo, withCatalogue, withStatus, type State } from "./viewer.ts";

const seconds = (count: number): ReturnType<typeof nanos> => nanos(BigInt(Math.round(count * 1_000)) * 1_000_000n);
const window = (begin: number, span: number): { begin: ReturnType<typeof nanos>; span: ReturnType<typeof nanos> } => ({ begin: seconds(begin), span: seconds(span) });

/** What the server says while so many seconds are there. */
function statusAt(end: number, state: Live["state"] | null = "recording", begin = 0): Status {
  const extent = { begin: seconds(begin), end: seconds(end) };
  const levels = { min: level(0), max: level(40) };
  const live = state === null ? {} : { live: { state, watermark: seconds(end), behindMs: state === "recording" ? 300 : null, problem: null } };
  return { extent, unix: true, levels, version: Math.round(end * 10), doneBytes: 1, totalBytes: 1, etaMs: null, state: "complete", failure: null, events: BigInt(Math.round(end * 1_000)), lost: 0n, ...live };
}

const sized = resized(FIRST_STATE, { width: cssPx(1_000), height: cssPx(100), ratio: 1 });
/** A page of traces that grow, which follows. */
const following = withStatus(sized, statusAt(60));

test("who opens traces that grow follows their last ten seconds, or everything while there is less", () => {
  expect([following.view, following.follow]).toEqual([window(50, 10), { isOn: true, span: FOLLOW_SPAN, left: null }]);
  const early = withStatus(sized, statusAt(3));
  expect(early.view).toEqual(window(0, 3));
  expect(goneAlong(withStatus(early, statusAt(4)), seconds(4)).view).toEqual(window(0, 4));
  expect(goneAlong(withStatus(early, statusAt(25)), seconds(25)).view).toEqual(window(15, 10));
  // Traces that do not grow are seen as they were, also by a server that does not know of growing.
  expect(withStatus(sized, statusAt(60, null))).toMatchObject({ view: window(0, 60), follow: { isOn: false } });
  expect(withStatus(sized, statusAt(60, "ended"))).toMatchObject({ view: window(0, 60), follow: { isOn: false } });
});

test("the window does not move when the server tells more, but with the pictures of the screen", () => {
  const told = withStatus(following, statusAt(60.5));
  expect(told.view).toBe(following.view);
  expect(goneAlong(told, seconds(60.25)).view).toEqual(window(50.25, 10));
  // A pixel is 10 ms: what is less moves nothing.
  const there = goneAlong(told, seconds(60.25));
  expect(goneAlong(there, nanos(seconds(60.25) - 1_000n))).toBe(there);
  expect(goneAlong(sized, seconds(1))).toBe(sized);
});

test("what is below the pointer stays below it", () => {
  const pointed: State = { ...following, cursor: { time: seconds(52.5), row: "a" } };
  expect(goneAlong(withStatus(pointed, statusAt(61)), seconds(61)).cursor).toEqual({ time: seconds(53.5), row: "a" });
  const all = goneAlong({ ...resumedAll(), cursor: { time: seconds(30), row: null } }, seconds(120));
  expect(all.cursor?.time).toBe(seconds(60));
});

/** A page that sees everything of traces that have just become twice as long. */
function resumedAll(): State {
  return withStatus(wentTo(following, window(0, 60)), statusAt(120));
}

test("whoever sees everything goes on seeing everything, in steps of a pixel", () => {
  const all = wentTo(following, window(0, 60));
  expect(all.follow).toEqual({ isOn: true, span: null, left: null });
  const told = withStatus(all, statusAt(61));
  expect(goneAlong(told, seconds(60.5)).view).toEqual(window(0, 60.5));
  expect(goneAlong(told, seconds(60.03)).view).toBe(told.view);
  expect(goneAlong(told, seconds(61)).view).toEqual(window(0, 61));
  // To say so again is no move.
  expect(wentTo(goneAlong(told, seconds(60.5)), window(0, 61)).past).toEqual(all.past);
});

test.each<[string, (state: State) => State]>([
  ["panning", (state) => moved(state, pan(state.view ?? window(0, 1), seconds(-2)))],
  ["another window", (state) => wentTo(state, window(5, 1))],
  ["a row of a list", (state) => markShown(state, seconds(20))],
  ["a URL", (state) => reopened(state, decodeUrl("#at=5000000000~1000000000"))],
  ["going back", (state) => wentBack({ ...state, past: [window(5, 1)] })],
])("%s holds the window back, where it stays while more comes", (_, act) => {
  const there = act(following);
  expect(there.follow).toEqual({ isOn: false, span: there.view?.span, left: { end: seconds(60), events: 60_000n } });
  const later = withStatus(there, statusAt(75));
  expect([later.view, later.follow]).toEqual([there.view, there.follow]);
  expect(goneAlong(later, seconds(75))).toBe(later);
  // What has come is counted from when it was held back, not from the last move.
  expect(moved(later, window(1, 1)).follow.left).toEqual(there.follow.left);
});

test("what leads no earlier than where the window goes by itself is nothing to stop for", () => {
  const told = withStatus(following, statusAt(60.3));
  expect(moved(told, pan(told.view ?? window(0, 1), seconds(2)))).toBe(told);
  expect(markShown(told, seconds(59))).toEqual({ ...told, mark: seconds(59) });
});

test("zooming keeps the end, and everything once there is no more", () => {
  const near = zoomed(following, seconds(51), 0.5);
  expect([near.view, near.follow]).toEqual([window(55, 5), { isOn: true, span: seconds(5), left: null }]);
  const all = zoomed(following, seconds(51), 100);
  expect([all.view, all.follow.span]).toEqual([window(0, 60), null]);
  const back = zoomed(all, seconds(1), 0.5);
  expect([back.view, back.follow]).toEqual([window(30, 30), { isOn: true, span: seconds(30), left: null }]);
  // Held back, it keeps what is below the pointer.
  expect(zoomed(paused(following), seconds(50), 0.5)).toMatchObject({ view: window(50, 5), follow: { isOn: false, span: seconds(5) } });
  expect(zoomed(sized, seconds(1), 0.5)).toBe(sized);
});

test("it is held back and goes on, with as much in sight as then; one can go back", () => {
  const held = toggledFollow(following);
  expect([held.view, held.follow]).toEqual([following.view, { isOn: false, span: FOLLOW_SPAN, left: { end: seconds(60), events: 60_000n } }]);
  const again = toggledFollow(withStatus(held, statusAt(70)));
  expect(again.follow).toEqual({ isOn: true, span: FOLLOW_SPAN, left: null });
  expect(goneAlong(again, seconds(70)).view).toEqual(window(60, 10));
  expect(wentBack(goneAlong(again, seconds(70)))).toMatchObject({ view: window(50, 10), follow: { isOn: false } });
  const near = resumed(wentTo(following, window(5, 1)));
  expect(goneAlong(near, seconds(60)).view).toEqual(window(59, 1));
  expect(resumed(following)).toBe(following);
  // Who saw everything sees everything again, which is more by then.
  const all = toggledFollow(withStatus(paused(wentTo(following, window(0, 60))), statusAt(70)));
  expect(goneAlong(all, seconds(70)).view).toEqual(window(0, 70));
});

test("traces that do not grow are not followed", () => {
  for (const status of [statusAt(60, null), statusAt(60, "ended")]) {
    const still = withStatus(sized, status);
    expect([toggledFollow(still), paused(still), resumed(still), arrived(still)]).toEqual([still, still, still, still]);
    expect(moved(still, window(1, 1)).follow.left).toBeNull();
  }
});

test("when the recorder ends the window goes to the end, and stays there", () => {
  const ended = withStatus(following, statusAt(60.4, "ended"));
  expect([ended.view, ended.follow.isOn]).toEqual([following.view, true]);
  const there = arrived(goneAlong(ended, seconds(60.4)));
  expect([there.view === null ? null : endOf(there.view), there.follow.isOn]).toEqual([seconds(60.4), false]);
  expect(encode(seenIn(there, PLAIN_LISTED))).toBe(`at=${50_400_000_000}~${10n * SECOND}`);
  // Whoever has held it back stays there.
  const held = withStatus(paused(following), statusAt(60.4, "ended"));
  expect(held.view).toBe(following.view);
  expect(withStatus(paused(wentTo(following, window(0, 60))), statusAt(70, "ended")).view).toEqual(window(0, 60));
});

test("traces that begin to grow while everything is seen are followed", () => {
  const still = withStatus(sized, statusAt(60, null));
  expect(withStatus(still, statusAt(61)).follow).toEqual({ isOn: true, span: null, left: null });
  expect(withStatus(moved(still, window(1, 1)), statusAt(61)).follow).toEqual({ isOn: false, span: seconds(1), left: { end: seconds(61), events: 61_000n } });
  // Another server, whose traces do not grow.
  expect(withStatus(following, statusAt(60, null)).follow.isOn).toBe(false);
});

test("the URL says how much is seen while the window goes along, else where it is", () => {
  const hashOf = (state: State): string => encode(seenIn(state, PLAIN_LISTED));
  expect(hashOf(following)).toBe("");
  expect(hashOf(zoomed(following, seconds(51), 0.5))).toBe("follow=5000000000");
  expect(hashOf(wentTo(following, window(0, 60)))).toBe("follow=all");
  expect(hashOf(paused(following))).toBe("at=50000000000~10000000000");
  // All that there is now is not all that will be.
  expect(hashOf(paused(wentTo(following, window(0, 60))))).toBe("at=0~60000000000");

  const open = (hash: string): State => withStatus(resized(opened(decodeUrl(hash), "UTC", "dark"), sized.size), statusAt(60));
  expect(open("#follow=5000000000")).toMatchObject({ view: window(55, 5), follow: { isOn: true, span: seconds(5), left: null } });
  expect(open("#follow=all")).toMatchObject({ view: window(0, 60), follow: { isOn: true, span: null } });
  expect(open("#at=5000000000~1000000000")).toMatchObject({ view: window(5, 1), follow: { isOn: false, left: { end: seconds(60) } } });
  expect(reopened(paused(following), decodeUrl("#follow=5000000000"))).toMatchObject({ view: window(55, 5), follow: { isOn: true, span: seconds(5), left: null } });
  expect(reopened(opened(decodeUrl(""), "UTC", "dark"), decodeUrl("#follow=all")).follow.span).toBeNull();
  expect(reopened(withStatus(sized, statusAt(60, null)), decodeUrl("#follow=5000000000"))).toMatchObject({ view: window(0, 60), follow: { isOn: false } });
});

test("events that nobody has counted yet are at least those that were counted before", () => {
  const building = { ...statusAt(61), events: null };
  expect(withStatus(following, building).status?.events).toBe(60_000n);
  expect(withStatus(following, { ...building, instance: "another" }).status?.events).toBeNull();
  expect(withStatus(following, { ...statusAt(61, "ended"), events: null }).status?.events).toBeNull();
  expect(withStatus(following, statusAt(61)).status?.events).toBe(61_000n);
});

test("rows that appear above the screen move none that are on it", () => {
  const some = (groups: readonly string[]): State["catalogue"] => ({ ...EMPTY_CATALOGUE, tracks: groups.map((group, number) => trackLike(number, { id: `t${number}`, group })) });
  const first = Array.from({ length: 20 }, (_, index) => (index < 10 ? "A" : "B"));
  const there = { ...withCatalogue(following, some(first)), scroll: 300, item: { track: "t15", time: seconds(59) } };
  const topOf = (state: State): number => (state.rows.find((row) => row.key === "track t15")?.top ?? NaN) - state.scroll;
  const more = withCatalogue(there, some([...first, "A", "A", "A"]));
  expect(more.rows.length).toBe(there.rows.length + 3);
  expect(topOf(more)).toBe(topOf(there));
  expect(more.item).toBe(there.item);
  // At the top, what is new there is seen.
  expect(withCatalogue({ ...there, scroll: 0 }, some([...first, "A"])).scroll).toBe(0);
});
