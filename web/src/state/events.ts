// The state of the list of events, and how that changes. Every function takes a state and returns another one; `view/events/desk.ts`
// finds in the state which requests it has to send to the server.

import type { Rows } from "../model/arrow.ts";
import { ALL_EVENTS, type EventQuestion } from "../model/events.ts";
import type { Fault } from "../model/fault.ts";
import { NO_REEL, endOf, firstOf, type Reel } from "../model/reel.ts";

/** All fields of some rows, which come later than the rows themselves. */
export interface FieldBlock {
  readonly first: number;
  readonly rows: Rows;
}

/** The state of a search. */
export interface Find {
  readonly text: string;
  /** The fault of the text, and where it is. */
  readonly problem: { readonly message: string; readonly help: string | null; readonly begin: number; readonly end: number } | null;
  readonly state: "idle" | "searching" | "absent";
}

/** How many events there are, or about how many. */
export interface Count {
  readonly events: bigint;
  readonly isExact: boolean;
}

/** Rows on their way out of the page. */
export interface Leaving {
  readonly rows: number;
  /** How much of the way is done, of 1; `null` where that is unknown. */
  readonly part: number | null;
  readonly what: string;
}

export interface EventsState {
  readonly question: EventQuestion;
  /** The text in the box for names. */
  readonly names: string;
  /** The text in the box for columns. */
  readonly wanted: string;
  /** All columns of the events; empty until the server has said so. */
  readonly columns: readonly string[];
  readonly reel: Reel;
  readonly blocks: readonly FieldBlock[];
  /** The first row on the screen, and the one that the user wants there: rows on the way there may not have come yet. */
  readonly top: number;
  readonly wish: number;
  /** As many rows fit. */
  readonly room: number;
  /** The list stands at its end, and goes on standing there while there are more events. */
  readonly tails: boolean;
  readonly current: number | null;
  /** The other end of the rows that are chosen. */
  readonly anchor: number | null;
  readonly sync: boolean;
  readonly asking: boolean;
  readonly fault: Fault | null;
  readonly count: Count | null;
  readonly find: Find;
  readonly matches: Count | null;
  readonly leaving: Leaving | null;
  /** The result of the latest request. */
  readonly note: string;
}

/** Rows that may be wished for beyond those that are there. */
const AHEAD_MAX = 2_000;

export const FIRST_EVENTS: EventsState = {
  question: ALL_EVENTS,
  names: "",
  wanted: "",
  columns: [],
  reel: NO_REEL,
  blocks: [],
  top: 0,
  wish: 0,
  room: 1,
  tails: false,
  current: null,
  anchor: null,
  sync: true,
  asking: false,
  fault: null,
  count: null,
  find: { text: "", problem: null, state: "idle" },
  matches: null,
  leaving: null,
  note: "",
};

/** Other events are listed: nothing of the old ones is there any more. */
export function asked(state: EventsState, question: EventQuestion): EventsState {
  const { names, wanted, room, sync, find, leaving } = state;
  return { ...FIRST_EVENTS, question, names, wanted, room, sync, find: { ...find, state: "idle" }, leaving };
}

/** The list is at another place: on row `top`, of another reel if need be. */
export function placed(state: EventsState, reel: Reel, top: number): EventsState {
  const isSame = reel === state.reel;
  const there = isSame ? state : { ...state, reel, blocks: [], current: null, anchor: null };
  return toppedBy({ ...there, fault: null, tails: false }, top);
}

/** The list is at its end, and stays there. */
export function tailed(state: EventsState, reel: Reel): EventsState {
  return { ...placed(state, reel, endOf(reel)), tails: true };
}

function isAtEnd({ reel, top, room }: EventsState): boolean {
  return reel.isEnd && top + room >= endOf(reel);
}

/** The list is on a row that becomes the current one, and stands so many rows below the first one on the screen. */
export function placedBelow(state: EventsState, reel: Reel, row: number, below: number): EventsState {
  const there = placed(state, reel, row - below);
  return row < endOf(reel) ? { ...there, current: row, anchor: null } : there;
}

/** The reel has grown or was cut: rows stay the same. */
export function regrown(state: EventsState, reel: Reel): EventsState {
  const isThere = (row: number | null): boolean => row !== null && row >= firstOf(reel) && row < endOf(reel);
  const kept = isThere(state.current) && (state.anchor === null || isThere(state.anchor)) ? {} : { current: null, anchor: null };
  const next = toppedBy({ ...state, ...kept, reel, fault: null }, state.tails ? endOf(reel) : state.wish);
  return next.tails === (next.tails || isAtEnd(next)) ? next : { ...next, tails: true };
}

/** There may be more events behind the last one, so that the count is a guess from now on; unless `all` of them are counted. */
export function grown(state: EventsState, all: Count | null = null): EventsState {
  const { reel, count, matches } = state;
  const guessed = (one: Count | null): Count | null => (one === null ? null : { ...one, isExact: false });
  return { ...state, reel: reel.isEnd ? { ...reel, isEnd: false } : reel, count: all ?? guessed(count), matches: guessed(matches) };
}

/** With that row at the top, as far as there are rows. */
export function toppedBy(state: EventsState, wish: number): EventsState {
  const { reel, room } = state;
  const [first, last] = [firstOf(reel), Math.max(firstOf(reel), endOf(reel) - room)];
  const top = Math.min(Math.max(wish, first), last);
  const low = reel.isBegin ? first : first - AHEAD_MAX;
  const high = reel.isEnd ? last : last + AHEAD_MAX;
  const kept = Math.min(Math.max(wish, low), high);
  return top === state.top && kept === state.wish && state.reel === reel ? state : { ...state, top, wish: kept };
}

export function scrolledRows(state: EventsState, by: number): EventsState {
  const next = toppedBy(state, state.wish + by);
  const tails = by < 0 ? state.tails && next.top === state.top : state.tails || isAtEnd(next);
  return tails === next.tails ? next : { ...next, tails };
}

/** More or fewer rows fit; the current one stays on the screen. */
export function roomed(state: EventsState, room: number): EventsState {
  if (room === state.room) {
    return state;
  }
  const { current, top } = state;
  const isSeen = current !== null && current >= top && current < top + state.room;
  const next = toppedBy({ ...state, room: Math.max(1, room) }, state.tails ? endOf(state.reel) : state.wish);
  return state.tails ? next : isSeen ? shown(next, current) : next;
}

/** So that a row is on the screen: as little as need be, or in the middle if it is far. */
export function shown(state: EventsState, row: number): EventsState {
  const { top, room } = state;
  if (row >= top && row < top + room) {
    return toppedBy(state, top);
  }
  const isNear = row >= top - room && row < top + 2 * room;
  return toppedBy(state, !isNear ? row - Math.floor(room / 2) : row < top ? row : row - room + 1);
}

/** The current row becomes another one, which is on the screen then; the rows from the one before to it are chosen if it `extends`. */
export function chosen(state: EventsState, row: number, extend: boolean): EventsState {
  const { reel, current, anchor } = state;
  if (endOf(reel) === firstOf(reel)) {
    return state;
  }
  const to = Math.min(Math.max(row, firstOf(reel)), endOf(reel) - 1);
  const tails = to === endOf(reel) - 1 && (reel.isEnd || state.tails);
  return shown({ ...state, current: to, anchor: extend ? (anchor ?? current ?? to) : null, tails }, to);
}

/** The current row moves; where there is none, the first one on the screen becomes it. */
export function stepped(state: EventsState, by: number, extend: boolean): EventsState {
  const { current, top } = state;
  return chosen(state, current === null ? top : current + by, extend);
}

/** From which row to before which one rows are chosen. */
export function chosenRows({ current, anchor }: EventsState): { readonly first: number; readonly end: number } | null {
  if (current === null) {
    return null;
  }
  const other = anchor ?? current;
  return { first: Math.min(current, other), end: Math.max(current, other) + 1 };
}

/** Fields of more rows; the oldest ones are forgotten. */
export function withBlock(state: EventsState, block: FieldBlock, most: number): EventsState {
  return { ...state, blocks: [...state.blocks, block].slice(-most) };
}

/** Where all fields of a row are. */
export function blockOf(state: EventsState, row: number): FieldBlock | null {
  return state.blocks.findLast(({ first, rows }) => first <= row && row < first + rows.count) ?? null;
}

/** Rows on the screen without their fields: from which one, and how many. */
export function lacking(state: EventsState): { readonly first: number; readonly count: number } | null {
  const { top, room, reel } = state;
  const end = Math.min(top + room, endOf(reel));
  let first = top;
  while (first < end && blockOf(state, first) !== null) {
    first++;
  }
  let last = end;
  while (last > first && blockOf(state, last - 1) !== null) {
    last--;
  }
  return first < last ? { first, count: last - first } : null;
}
