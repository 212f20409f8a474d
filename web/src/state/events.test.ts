import { expect, test } from "vitest";
import { pageOf, type EventPage } from "../model/events.ts";
import { NO_REEL, joinedBy, type Reel } from "../model/reel.ts";
import { nanos } from "../units/time.ts";
import { FIRST_EVENTS, asked, blockOf, chosen, chosenRows, lacking, placed, regrown, roomed, scrolledRows, shown, stepped, withBlock, type EventsState } from "./events.ts";

function pageWith(count: number, isEnd: boolean): EventPage {
  const rows = { count, columns: [{ name: "time", isEmpty: false, bases: [], at: (row: number) => BigInt(row) }], bytes: 10 };
  return pageOf(rows, { time: nanos(0), rank: 0 }, { time: nanos(count), rank: 0 }, isEnd);
}

/** A hundred rows before 0 and a hundred from it on. */
function reelWith(isBegin: boolean, isEnd: boolean): Reel {
  return joinedBy(joinedBy(NO_REEL, pageWith(100, isEnd), "from"), pageWith(100, isBegin), "before");
}

const middle: EventsState = placed(roomed(FIRST_EVENTS, 10), reelWith(false, false), 0);
const whole: EventsState = placed(roomed(FIRST_EVENTS, 10), reelWith(true, true), 0);

test("the list scrolls by rows, and ends where there are no more", () => {
  expect(scrolledRows(whole, 7).top).toBe(7);
  expect(scrolledRows(scrolledRows(whole, 7), -7)).toEqual(whole);
  expect([scrolledRows(whole, 1e9).top, scrolledRows(whole, 1e9).wish]).toEqual([90, 90]);
  expect([scrolledRows(whole, -1e9).top, scrolledRows(whole, -1e9).wish]).toEqual([-100, -100]);
});

test("rows that have not come are waited for: where somebody wanted to be is not forgotten", () => {
  const far = scrolledRows(middle, 150);
  expect([far.top, far.wish]).toEqual([90, 150]);
  const more = regrown(far, joinedBy(far.reel, pageWith(100, false), "from"));
  expect([more.top, more.wish]).toEqual([150, 150]);
  const over = regrown(far, joinedBy(far.reel, pageWith(20, true), "from"));
  expect([over.top, over.wish]).toEqual([110, 110]);
});

test("the current row is on the screen: as near as it was, or in the middle", () => {
  expect([shown(middle, 9).top, shown(middle, 10).top, shown(middle, 15).top, shown(middle, 60).top]).toEqual([0, 1, 6, 55]);
  expect([shown(middle, -1).top, shown(middle, -8).top, shown(middle, -60).top]).toEqual([-1, -8, -65]);
  expect(stepped(middle, 1, false).current).toBe(0);
  expect(stepped(stepped(middle, 1, false), 1, false).current).toBe(1);
  expect(chosen(whole, 1e6, false).current).toBe(99);
  expect(chosen(whole, -1e6, false).current).toBe(-100);
  expect(chosen(FIRST_EVENTS, 3, false)).toBe(FIRST_EVENTS);
});

test("rows are chosen from one to another, in either direction", () => {
  const one = chosen(middle, 5, false);
  expect(chosenRows(one)).toEqual({ first: 5, end: 6 });
  expect(chosenRows(chosen(one, 8, true))).toEqual({ first: 5, end: 9 });
  expect(chosenRows(chosen(chosen(one, 8, true), 2, true))).toEqual({ first: 2, end: 6 });
  expect(chosenRows(chosen(chosen(one, 8, true), 2, false))).toEqual({ first: 2, end: 3 });
  expect(chosenRows(middle)).toBeNull();
});

test("a row that is not kept any more is not the current one", () => {
  const one = chosen(middle, -90, false);
  const cut: Reel = { ...one.reel, pages: one.reel.pages.slice(1) };
  expect(regrown(one, cut).current).toBeNull();
  expect(regrown(chosen(middle, 50, false), cut).current).toBe(50);
});

test("fields are missing of rows on the screen, until they come; the oldest are forgotten", () => {
  expect(lacking(middle)).toEqual({ first: 0, count: 10 });
  const rows = (count: number): EventPage["rows"] => pageWith(count, false).rows;
  const some = withBlock(middle, { first: 3, rows: rows(7) }, 2);
  expect(lacking(some)).toEqual({ first: 0, count: 3 });
  const all = withBlock(some, { first: 0, rows: rows(3) }, 2);
  expect(lacking(all)).toBeNull();
  expect([blockOf(all, 2)?.first, blockOf(all, 3)?.first, blockOf(all, 10)]).toEqual([0, 3, null]);
  expect(lacking(scrolledRows(all, 2))).toEqual({ first: 10, count: 2 });
  expect(blockOf(withBlock(all, { first: 20, rows: rows(1) }, 2), 3)).toBeNull();
});

test("another list begins anew, and keeps what is not about its rows", () => {
  const one = { ...chosen(middle, 5, false), sync: false, names: "a", find: { text: "x", problem: null, state: "searching" as const } };
  const next = asked(one, { filter: null, names: ["a"] });
  expect([next.reel, next.current, next.room, next.sync, next.names, next.find.text, next.find.state]).toEqual([NO_REEL, null, 10, false, "a", "x", "idle"]);
});
