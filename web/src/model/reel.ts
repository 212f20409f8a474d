// Pages of a list that lie one behind the other, and which of them are kept: to a screen the list seems endless.
//
// Rows are counted from where the reel was begun, backwards with negative numbers. A row keeps its number as long as the reel grows
// and is cut at its ends; a reel that begins elsewhere counts anew.

import { nanos, type Nanos } from "../units/time.ts";
import type { Direction, EventPage, Place } from "./events.ts";

export interface Placed {
  readonly page: EventPage;
  /** The number of its first row. */
  readonly first: number;
}

export interface Reel {
  readonly pages: readonly Placed[];
  /** Nothing is before its first row; nothing is behind its last one. */
  readonly isBegin: boolean;
  readonly isEnd: boolean;
}

export const NO_REEL: Reel = { pages: [], isBegin: false, isEnd: false };

/** The number of the first row. */
export function firstOf(reel: Reel): number {
  return reel.pages[0]?.first ?? 0;
}

/** The number behind that of the last row. */
export function endOf(reel: Reel): number {
  const last = reel.pages.at(-1);
  return last === undefined ? 0 : last.first + last.page.rows.count;
}

/** The reel with a page at one of its ends. */
export function joinedBy(reel: Reel, page: EventPage, direction: Direction): Reel {
  const count = page.rows.count;
  const [isBegin, isEnd] = [reel.isBegin || (direction === "before" && page.isEnd), reel.isEnd || (direction === "from" && page.isEnd)];
  if (count === 0) {
    return { ...reel, isBegin, isEnd };
  }
  const pages =
    direction === "from" ? [...reel.pages, { page, first: endOf(reel) }] : [{ page, first: firstOf(reel) - count }, ...reel.pages];
  return { pages, isBegin, isEnd };
}

/**
 * The reel without pages that are far from a row, so that it takes no more than so many bytes, if it can. So many rows on each side
 * stay, at any size: the list that shows them would only ask for them again.
 */
export function trimmed(reel: Reel, around: number, near: number, bytesMax: number): Reel {
  let { pages, isBegin, isEnd } = reel;
  let bytes = pages.reduce((sum, { page }) => sum + page.rows.bytes, 0);
  while (bytes > bytesMax && pages.length > 1) {
    const [head, tail] = [pages[0], pages.at(-1)];
    if (head === undefined || tail === undefined) {
      break;
    }
    const [before, behind] = [around - (head.first + head.page.rows.count), tail.first - around];
    if (Math.max(before, behind) < near) {
      break;
    }
    const isHead = before > behind;
    bytes -= (isHead ? head : tail).page.rows.bytes;
    pages = isHead ? pages.slice(1) : pages.slice(0, -1);
    isBegin &&= !isHead;
    isEnd &&= isHead;
  }
  return pages === reel.pages ? reel : { pages, isBegin, isEnd };
}

/** The page of a row, and which row of the page it is. */
export function rowAt(reel: Reel, number: number): { readonly page: EventPage; readonly row: number } | null {
  const { pages } = reel;
  let [low, high] = [0, pages.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((pages[middle]?.first ?? 0) <= number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const placed = pages[low - 1];
  const row = number - (placed?.first ?? 0);
  return placed === undefined || row >= placed.page.rows.count ? null : { page: placed.page, row };
}

/** When a row was. */
export function timeOf(reel: Reel, number: number): Nanos | null {
  const found = rowAt(reel, number);
  return found === null ? null : nanos(found.page.times[found.row] ?? 0n);
}

/** The place before a row. */
export function placeOf(reel: Reel, number: number): Place | null {
  const found = rowAt(reel, number);
  if (found === null) {
    return null;
  }
  const { page, row } = found;
  const time = nanos(page.times[row] ?? 0n);
  let first = row;
  while (first > 0 && page.times[first - 1] === time) {
    first--;
  }
  const before = first === 0 && page.before.time === time ? page.before.rank : 0;
  return { time, rank: before + row - first };
}

/** The row behind a place: the first one that is not before it. `null` where the reel does not reach so far. */
export function rowOfPlace(reel: Reel, { time, rank }: Place): number | null {
  const [first, end] = [firstOf(reel), endOf(reel)];
  let [low, high] = [first, end];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((timeOf(reel, middle) ?? 0n) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // Of its first time a reel may have only the later rows.
  const at = placeOf(reel, low);
  const number = at !== null && at.time === time ? low + rank - at.rank : low;
  const isInside = number < first ? false : number > first || reel.isBegin || (at !== null && at.time === time && at.rank <= rank);
  return isInside && (number < end || (number === end && reel.isEnd)) ? number : null;
}
