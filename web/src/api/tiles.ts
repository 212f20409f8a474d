// Fetches tiles: those of the window first, then their neighbors, never more than two requests at once, and none that the page does not want
// any more.

import { decode, TileFault } from "../model/decode.ts";
import type { TileCache } from "../model/cache.ts";
import { passes } from "../model/fault.ts";
import { questions, type Question } from "../model/questions.ts";
import { split } from "../model/split.ts";
import type { Answer, Tile } from "../model/tile.ts";
import type { TileRange } from "../model/wanted.ts";
import { TILE_BUCKETS, tileIndex, type Level, type TileIndex, type TrackNumber } from "../units/tiles.ts";
import { pauseMs } from "./changes.ts";
import { ApiFault, type Client } from "./client.ts";

/** Tiles of some tracks. */
export interface Part {
  readonly range: TileRange;
  readonly tracks: readonly TrackNumber[];
}

/** The parts on the screen, most important first, and the parts that may be there soon. */
export interface Wish {
  readonly seen: readonly Part[];
  readonly soon: readonly Part[];
  /** The server's version that the page knows of. */
  readonly version: number;
}

/** Hears of arriving tiles. */
export interface Audience {
  /** There are tiles that were not there before; none if those that were there are still right. */
  arrived(tiles: readonly Tile[]): void;
  /** A question was not answered; it is asked again if that may help. */
  failed(fault: ApiFault): void;
}

interface Flight {
  readonly question: Question;
  readonly version: number;
  readonly controller: AbortController;
}

const FLIGHTS_MAX = 2;
/** A wish is asked for in at most as many questions, so that no answer, however strange, makes the page ask for ever. */
const QUESTIONS_MAX = 64;

export class TileFetcher {
  private readonly client: Client;
  private readonly cache: TileCache;
  private readonly audience: Audience;
  private flights: Flight[] = [];
  private wish: Wish | null = null;
  private questionsLeft = 0;
  private failures = 0;
  /** Some events that the server does not tell of, as it cannot make anything of the filter: asking again would not help. */
  private refused: string | null = null;
  private waiting: ReturnType<typeof setTimeout> | null = null;

  constructor(client: Client, cache: TileCache, audience: Audience) {
    this.client = client;
    this.cache = cache;
    this.audience = audience;
  }

  /** Asks for the missing tiles of a wish, which takes the place of the one before. */
  want(wish: Wish): void {
    this.wish = wish;
    this.questionsLeft = QUESTIONS_MAX;
    for (const flight of this.flights) {
      if (![...wish.seen, ...wish.soon].some((part) => this.serves(flight.question, part))) {
        flight.controller.abort();
      }
    }
    this.flights = this.flights.filter((flight) => !flight.controller.signal.aborted);
    this.pump();
  }

  /** Asks nothing any more. */
  stop(): void {
    this.wish = null;
    this.refused = null;
    this.failures = 0;
    this.flights.forEach((flight) => flight.controller.abort());
    this.flights = [];
    if (this.waiting !== null) {
      clearTimeout(this.waiting);
      this.waiting = null;
    }
  }

  /** Whether all that is on the screen is there. */
  get complete(): boolean {
    const { wish } = this;
    return (
      wish !== null &&
      wish.seen.every((part) => this.missing(part, wish.version).length === 0) &&
      !this.flights.some((flight) => wish.seen.some((part) => this.serves(flight.question, part)))
    );
  }

  /** Whether answers about the parts on the screen are still to come. After a request that failed, none is until it is tried again. */
  get isAsking(): boolean {
    const { wish } = this;
    if (wish === null || this.waiting !== null) {
      return false;
    }
    const isOnTheWay = this.flights.some((flight) => wish.seen.some((part) => this.serves(flight.question, part)));
    return isOnTheWay || (this.questionsLeft > 0 && wish.seen.some((part) => this.missing(part, wish.version).length > 0));
  }

  private pump(): void {
    while (this.wish !== null && this.waiting === null && this.flights.length < FLIGHTS_MAX && this.questionsLeft > 0) {
      const next = this.next(this.wish);
      if (next === undefined) {
        return;
      }
      this.questionsLeft--;
      void this.fly(next, this.wish.version);
    }
  }

  private next(wish: Wish): Question | undefined {
    for (const part of [...wish.seen, ...wish.soon]) {
      const [first] = this.missing(part, wish.version);
      if (first !== undefined) {
        return first;
      }
    }
    return undefined;
  }

  private missing(part: Part, version: number): Question[] {
    const isMissing = (of: Level, index: TileIndex, track: TrackNumber): boolean => {
      const query = this.cache.queryOf(track);
      const isAsked = query !== "" && query === this.refused;
      return !isAsked && this.cache.isWanted(of, index, track, version) && !this.flights.some(({ question }) => question.query === query && covers(question, of, index, track));
    };
    return questions(this.cache, part.range, part.tracks, isMissing);
  }

  private async fly(question: Question, version: number): Promise<void> {
    const flight = { question, version, controller: new AbortController() };
    this.flights.push(flight);
    try {
      const tiles = await this.fetch(flight);
      this.failures = 0;
      // The flight has landed: the listener for its tiles may ask for the tiles still missing.
      this.flights = this.flights.filter((other) => other !== flight);
      this.audience.arrived(tiles);
    } catch (error) {
      this.flights = this.flights.filter((other) => other !== flight);
      this.fail(error, question.query);
    }
    this.pump();
  }

  /** Puts the answer of a request into the cache. */
  private async fetch({ question, version, controller }: Flight): Promise<readonly Tile[]> {
    const answer = await this.client.bytes(pathOf(question), question.etag, controller.signal);
    if (answer === "unchanged") {
      eachTile(question, (index, track) => this.cache.confirm(question.level, index, track, version, question.query));
      return [];
    }
    const tiles = split(matching(decode(answer.bytes), question));
    tiles.forEach((tile) => this.cache.put(tile, version, answer.etag, question.query));
    return tiles;
  }

  private fail(error: unknown, query: string): void {
    const fault = error instanceof ApiFault ? error : new ApiFault("nonsense", error instanceof TileFault ? error.message : String(error));
    if (fault.kind === "aborted" || this.wish === null) {
      return;
    }
    this.failures++;
    // A request that will not go better is sent again all the same, but only when the window has moved or the server has something new.
    if (passes(fault.kind)) {
      this.waiting = setTimeout(() => {
        this.waiting = null;
        this.pump();
      }, pauseMs(this.failures));
    } else if (query !== "") {
      this.refused = query;
    } else {
      this.wish = null;
    }
    this.audience.failed(fault);
  }

  /** Whether something that a question asks for is in a part, as it is wanted now. */
  private serves(question: Question, { range, tracks }: Part): boolean {
    const overlaps = question.first < range.first + range.count && range.first < question.first + question.count;
    const wanted = new Set(tracks);
    return question.level === range.level && overlaps && question.tracks.some((track) => wanted.has(track) && this.cache.queryOf(track) === question.query);
  }
}

/** Where to ask. */
export function pathOf(question: Question): string {
  const first = BigInt(question.first) * BigInt(TILE_BUCKETS);
  return `tiles?level=${question.level}&first=${first}&count=${question.count * TILE_BUCKETS}&tracks=${question.tracks.join(",")}${question.query === "" ? "" : `&${question.query}`}`;
}

function eachTile(question: Question, act: (index: TileIndex, track: TrackNumber) => void): void {
  for (let number = 0; number < question.count; number++) {
    for (const track of question.tracks) {
      act(tileIndex(question.first + number), track);
    }
  }
}

function covers(question: Question, of: Level, index: TileIndex, track: TrackNumber): boolean {
  return question.level === of && question.first <= index && index < question.first + question.count && question.tracks.includes(track);
}

/** An answer, if it is one to the question. */
function matching(answer: Answer, question: Question): Answer {
  const first = BigInt(question.first) * BigInt(TILE_BUCKETS);
  if (answer.level !== question.level || answer.first !== first || answer.count !== question.count * TILE_BUCKETS) {
    throw new ApiFault(
      "nonsense",
      `asked for ${question.count * TILE_BUCKETS} buckets of level ${question.level} from ${first} on, ` +
        `got ${answer.count} of level ${answer.level} from ${answer.first} on`,
    );
  }
  const told = new Set(answer.tracks.map((track) => track.track));
  const untold = question.tracks.find((track) => !told.has(track));
  if (untold !== undefined) {
    throw new ApiFault("nonsense", `asked for track ${untold}, got nothing of it`);
  }
  return answer;
}
