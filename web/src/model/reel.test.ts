import { expect, test } from "vitest";
import { nanos } from "../units/time.ts";
import { pageOf, type Direction, type EventPage, type Place } from "./events.ts";
import { NO_REEL, endOf, firstOf, joinedBy, placeOf, rowAt, rowOfPlace, timeOf, trimmed, type Reel } from "./reel.ts";

/** A list of events with these times, and a server that hands out pages of it, as the true one does. */
class Listing {
  readonly times: readonly number[];

  constructor(times: readonly number[]) {
    this.times = times;
  }

  /** The place before the row with a number, of all rows. */
  place(number: number): Place {
    const time = this.times[number] ?? (this.times.at(-1) ?? 0) + 1;
    return { time: nanos(time), rank: number - (this.times.includes(time) ? this.times.indexOf(time) : number) };
  }

  page(direction: Direction, place: Place, limit: number): EventPage {
    const later = this.times.findIndex((time) => time >= place.time);
    const at = later < 0 ? this.times.length : Math.min(later + place.rank, this.times.length);
    const [first, end] = direction === "from" ? [at, Math.min(at + limit, this.times.length)] : [Math.max(0, at - limit), at];
    const times = this.times.slice(first, end);
    const column = { name: "time", isEmpty: false, bases: [], at: (row: number) => BigInt(times[row] ?? 0) };
    const rows = { count: times.length, columns: [column], bytes: 100 };
    const after = end > first ? { time: nanos(times.at(-1) ?? 0), rank: this.place(end - 1).rank + 1 } : place;
    return pageOf(rows, times.length === 0 ? place : this.place(first), after, direction === "from" ? end === this.times.length : first === 0);
  }

  around(place: Place, limit: number): Reel {
    return joinedBy(joinedBy(NO_REEL, this.page("from", place, limit), "from"), this.page("before", place, limit), "before");
  }
}

const TIES = new Listing([1, 5, 5, 5, 5, 8, 9, 9, 20]);
const at = (time: number, rank = 0): Place => ({ time: nanos(time), rank });

function timesOf(reel: Reel): number[] {
  return Array.from({ length: endOf(reel) - firstOf(reel) }, (_, index) => Number(timeOf(reel, firstOf(reel) + index)));
}

test("pages lie one behind the other, wherever the list was begun and however small they are", () => {
  for (const limit of [1, 2, 3, 5]) {
    for (let begin = 0; begin <= TIES.times.length; begin++) {
      let reel = TIES.around(TIES.place(begin), limit);
      expect([firstOf(reel), endOf(reel)]).toEqual([0 - Math.min(limit, begin), Math.min(limit, TIES.times.length - begin)]);
      while (!reel.isEnd) {
        reel = joinedBy(reel, TIES.page("from", reel.pages.at(-1)?.page.after ?? at(0), limit), "from");
      }
      while (!reel.isBegin) {
        reel = joinedBy(reel, TIES.page("before", reel.pages[0]?.page.before ?? at(0), limit), "before");
      }
      expect(timesOf(reel)).toEqual(TIES.times);
      expect(firstOf(reel)).toBe(0 - begin);
    }
  }
});

test("the place of a row is the one that the server knows, also where pages cut rows of one time", () => {
  for (const begin of [2, 3, 4, 7]) {
    const reel = TIES.around(TIES.place(begin), 2);
    for (let number = firstOf(reel); number < endOf(reel); number++) {
      const place = placeOf(reel, number);
      expect(place).toEqual(TIES.place(begin + number));
      expect(rowOfPlace(reel, place ?? at(0))).toBe(number);
    }
  }
});

test("a place where the reel has no rows is not guessed", () => {
  const reel = TIES.around(at(5, 2), 2);
  expect(timesOf(reel)).toEqual([5, 5, 5, 5]);
  expect([rowOfPlace(reel, at(5)), rowOfPlace(reel, at(5, 3))]).toEqual([-2, 1]);
  // Nobody knows what is between the first row and times before it, nor behind the last one.
  expect([rowOfPlace(reel, at(4)), rowOfPlace(reel, at(8)), rowOfPlace(reel, at(0)), rowOfPlace(reel, at(30))]).toEqual([null, null, null, null]);
  const all = TIES.around(at(5), 20);
  expect([rowOfPlace(all, at(-1)), rowOfPlace(all, at(6)), rowOfPlace(all, at(30))]).toEqual([-1, 4, 8]);
  const inside = TIES.around(at(5, 3), 1);
  expect([rowOfPlace(inside, at(5)), rowOfPlace(inside, at(5, 2)), rowOfPlace(inside, at(5, 3))]).toEqual([null, -1, 0]);
});

test("no row is there where none is", () => {
  const reel = TIES.around(at(8), 2);
  expect([rowAt(reel, -3), rowAt(reel, 2), timeOf(reel, 99), placeOf(reel, -99)]).toEqual([null, null, null, null]);
  expect([firstOf(NO_REEL), endOf(NO_REEL), rowAt(NO_REEL, 0), rowOfPlace(NO_REEL, at(1))]).toEqual([0, 0, null, null]);
  const empty = new Listing([]).around(at(0), 5);
  expect([empty.isBegin, empty.isEnd, empty.pages.length, rowOfPlace(empty, at(0))]).toEqual([true, true, 0, 0]);
});

test("memory is bounded: pages far from the screen go, and what is left keeps its numbers", () => {
  let reel = TIES.around(at(0), 1);
  while (!reel.isEnd) {
    reel = joinedBy(reel, TIES.page("from", reel.pages.at(-1)?.page.after ?? at(0), 1), "from");
  }
  expect([reel.pages.length, reel.isBegin]).toEqual([9, true]);
  const cut = trimmed(reel, 8, 0, 300);
  expect([cut.pages.length, firstOf(cut), endOf(cut), cut.isBegin, cut.isEnd]).toEqual([3, 6, 9, false, true]);
  expect(timesOf(cut)).toEqual([9, 9, 20]);
  const other = trimmed(reel, 1, 0, 300);
  expect([firstOf(other), endOf(other), other.isBegin, other.isEnd]).toEqual([0, 3, true, false]);
  expect(trimmed(cut, 8, 0, 300)).toBe(cut);
  expect(trimmed(reel, 4, 0, 1).pages.length).toBe(1);
});

test("what is near the screen stays, however much it is, so that it need not be asked for again", () => {
  const grown = (reel: Reel): Reel => joinedBy(reel, TIES.page("from", reel.pages.at(-1)?.page.after ?? at(0), 1), "from");
  let reel = TIES.around(at(0), 1);
  for (let turn = 0; turn < 20 && endOf(reel) - 2 < 3; turn++) {
    reel = trimmed(grown(reel), 2, 3, 100);
  }
  expect([firstOf(reel), endOf(reel)]).toEqual([0, 5]);
  reel = trimmed(grown(grown(reel)), 2, 3, 100);
  expect([firstOf(reel), endOf(reel)]).toEqual([0, 5]);
  reel = trimmed(reel, 4, 3, 100);
  expect([firstOf(reel), endOf(reel)]).toEqual([1, 5]);
});
