// Asks for the items of a track: at a time, and the next or the previous one.
//
// The server reads a few chunks for an answer and says where to go on, always forwards. Items before a time are searched in windows
// that grow as they go back; where a window has more than an answer holds, its later half is looked into first.

import { readItems, type ItemsFound, type TrackItem, edgesOf, extentOf } from "../model/items.ts";
import { ShapeFault } from "../model/json.ts";
import type { Extent } from "../model/viewport.ts";
import type { TrackNumber } from "../units/tiles.ts";
import { minus, nanos, type Nanos } from "../units/time.ts";
import { ApiFault, type Client } from "./client.ts";

/** Items of an answer, where several may be at the same time. */
const LIMIT = 64;
/** A user waits for the next item, or the one before: after as many answers without it the user is told so. */
const ANSWERS_MAX = 96;
const GROWTH = 8n;

/** The items of a track from a time to before another one. */
export async function askItems(client: Client, track: TrackNumber, window: Extent, signal: AbortSignal, limit = LIMIT): Promise<ItemsFound> {
  const path = `items?track=${track}&begin=${window.begin}&end=${window.end}&limit=${limit}`;
  const answer = await client.bytes(path, null, signal);
  if (answer === "unchanged") {
    throw new ApiFault("nonsense", "the server says that nothing has changed since it never answered");
  }
  try {
    return readItems(new TextDecoder().decode(answer.bytes));
  } catch (error) {
    if (error instanceof ShapeFault || error instanceof SyntaxError) {
      throw new ApiFault("nonsense", error.message);
    }
    throw error;
  }
}

export interface SearchOptions {
  readonly wanted?: (item: TrackItem) => boolean;
  readonly limit?: number;
}

/** Looks along a track for a matching item. One is made for each search. */
export class Search {
  private readonly client: Client;
  private readonly track: TrackNumber;
  private readonly signal: AbortSignal;
  private readonly wanted: (item: TrackItem) => boolean;
  /** Items of an answer that looks forwards: more than one where most are not wanted. */
  private readonly limit: number;
  private answersLeft = ANSWERS_MAX;

  constructor(client: Client, track: TrackNumber, signal: AbortSignal, { wanted = () => true, limit = 1 }: SearchOptions = {}) {
    this.client = client;
    this.track = track;
    this.signal = signal;
    this.wanted = wanted;
    this.limit = limit;
  }

  /** It was given up before all was looked at. */
  get gaveUp(): boolean {
    return this.answersLeft <= 0;
  }

  /** The first one that begins in a window. */
  async first(window: Extent): Promise<TrackItem | null> {
    for (let begin = window.begin; begin < window.end; ) {
      const answer = await this.ask({ begin, end: window.end }, this.limit);
      const found = answer?.items.find((item) => extentOf(item).begin >= window.begin && this.wanted(item));
      if (found !== undefined || answer === null || answer.next === null || answer.next <= begin) {
        return found ?? null;
      }
      begin = answer.next;
    }
    return null;
  }

  /** The last one that begins before a time, and reaches behind another one; `step` is how far the first look goes back. */
  async last(window: Extent, step: Nanos): Promise<TrackItem | null> {
    let [end, back] = [window.end as bigint, step < 1n ? 1n : (step as bigint)];
    while (end > window.begin && !this.gaveUp) {
      const begin = end - back > window.begin ? end - back : window.begin;
      const found = await this.lastIn({ begin: nanos(begin), end: nanos(end) });
      if (found !== null) {
        return found;
      }
      [end, back] = [begin, back * GROWTH];
    }
    return null;
  }

  private async lastIn(window: Extent): Promise<TrackItem | null> {
    const answer = await this.ask(window, LIMIT);
    if (answer === null) {
      return null;
    }
    const { items, next } = answer;
    if (next !== null && next > window.begin && next < window.end) {
      const middle = nanos(next + (window.end - next) / 2n);
      const later = middle > next ? await this.lastIn({ begin: middle, end: window.end }) : null;
      const found = later ?? (await this.lastIn({ begin: next, end: middle > next ? middle : window.end }));
      if (found !== null) {
        return found;
      }
    }
    return items.findLast((item) => extentOf(item).begin < window.end && this.wanted(item)) ?? null;
  }

  private async ask(window: Extent, limit: number): Promise<ItemsFound | null> {
    return this.answersLeft-- > 0 ? askItems(this.client, this.track, window, this.signal, limit) : null;
  }
}

/** The first edge of an item in a window, or the last one; `null`: there is none. Items of the track are one behind the other. */
export async function askEdge(client: Client, track: TrackNumber, window: Extent, by: 1 | -1, signal: AbortSignal): Promise<Nanos | null> {
  const inside = (item: TrackItem): readonly Nanos[] => edgesOf(item).filter((time) => time >= window.begin && time < window.end);
  // An item that ends when the window begins is in answers about a time before that.
  const asked = { begin: nanos(window.begin > 0n ? window.begin - 1n : 0n), end: window.end };
  if (by > 0) {
    const { items } = await askItems(client, track, asked, signal);
    return items.flatMap(inside).reduce<Nanos | null>((least, time) => (least === null || time < least ? time : least), null);
  }
  const last = await new Search(client, track, signal, { wanted: (item) => inside(item).length > 0 }).last(asked, minus(asked.end, asked.begin));
  return last === null ? null : (inside(last).at(-1) ?? null);
}
