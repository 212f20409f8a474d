// Requests events: pages of them, the list's columns, and the next event that an expression selects.

import { readRows, type Rows } from "../model/arrow.ts";
import { contentsOf, ranksOf } from "../model/eventfind.ts";
import { FIRST_PLACE, narrowed, pageOf, placeText, questionText, readPlace, type Direction, type EventPage, type EventQuestion, type Place } from "../model/events.ts";
import { nanos, type Nanos } from "../units/time.ts";
import { ApiFault, type Client } from "./client.ts";

/** Rows of one time that are told apart; of more, the first ones. */
const TIES_MAX = 10_000;

export interface PageAsked {
  readonly question: EventQuestion;
  readonly direction: Direction;
  readonly place: Place;
  readonly limit: number;
  /** `null`: all that there are. */
  readonly columns: readonly string[] | null;
  /** Only events before that. */
  readonly end?: Nanos;
}

export async function askPage(client: Client, asked: PageAsked, signal: AbortSignal): Promise<EventPage> {
  const parts = [questionText(asked.question), `${asked.direction}=${placeText(asked.place)}`, `limit=${asked.limit}`, columnsText(asked.columns)];
  parts.push(asked.end === undefined ? "" : `end=${asked.end}`);
  const { bytes, headers } = await client.whole(`events?${parts.filter((part) => part !== "").join("&")}`, signal);
  const [before, after] = [readPlace(headers.get("Kymo-Before")), readPlace(headers.get("Kymo-After"))];
  if (before === null || after === null) {
    throw new ApiFault("nonsense", "a page of events came without the places around it");
  }
  return pageOf(rowsOf(bytes), before, after, headers.get("Kymo-End") === "true");
}

function columnsText(columns: readonly string[] | null): string {
  return columns === null ? "" : `columns=${columns.map(encodeURIComponent).join(",")}`;
}

function rowsOf(bytes: ArrayBuffer): Rows {
  try {
    return readRows(bytes);
  } catch (error) {
    throw new ApiFault("nonsense", `the response is not an Arrow stream: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Which columns the events have, without reading one. */
export async function askColumns(client: Client, question: EventQuestion, signal: AbortSignal): Promise<readonly string[]> {
  const parts = [questionText(question), `begin=0&end=0&limit=1&from=${placeText(FIRST_PLACE)}`];
  const { bytes } = await client.whole(`events?${parts.filter((part) => part !== "").join("&")}`, signal);
  return rowsOf(bytes).columns.map((column) => column.name);
}

/** The next event of a list, or the one before, that an expression selects, as its place in the list; `null`: there is none. */
export async function findEvent(client: Client, question: EventQuestion, condition: string, at: Place, direction: Direction, signal: AbortSignal): Promise<Place | null> {
  const matching = narrowed(question, condition);
  const here = await ranksAt(client, question, matching, at.time, signal);
  const beside = direction === "from" ? here.find((rank) => rank > at.rank) : here.findLast((rank) => rank < at.rank);
  if (beside !== undefined) {
    return { time: at.time, rank: beside };
  }
  const place = { time: direction === "from" ? nanos(at.time + 1n) : at.time, rank: 0 };
  const page = await askPage(client, { question: matching, direction, place, limit: 1, columns: ["time"] }, signal);
  const [found] = page.times;
  if (found === undefined) {
    return null;
  }
  const time = nanos(found);
  const there = await ranksAt(client, question, matching, time, signal);
  return { time, rank: (direction === "from" ? there[0] : there.at(-1)) ?? 0 };
}

/** Which of the rows of a time an expression selects. */
async function ranksAt(client: Client, question: EventQuestion, matching: EventQuestion, time: Nanos, signal: AbortSignal): Promise<readonly number[]> {
  const some = await askTies(client, matching, time, ["time"], signal);
  if (some.count === 0) {
    return [];
  }
  const all = await askTies(client, question, time, ["time"], signal);
  if (all.count === some.count) {
    return Array.from({ length: all.count }, (_, rank) => rank);
  }
  const [whole, part] = await Promise.all([askTies(client, question, time, null, signal), askTies(client, matching, time, null, signal)]);
  return ranksOf(contentsOf(whole), contentsOf(part));
}

/** All rows of one time. */
async function askTies(client: Client, question: EventQuestion, time: Nanos, columns: readonly string[] | null, signal: AbortSignal): Promise<Rows> {
  const parts = [questionText(question), `begin=${time}&end=${time + 1n}&from=${time}&limit=${TIES_MAX}`, columnsText(columns)];
  const { bytes } = await client.whole(`events?${parts.filter((part) => part !== "").join("&")}`, signal);
  return rowsOf(bytes);
}
