// Asks for the content of tracks in a span of time, to be added up: buckets of it, in as few requests as there are filters and hundreds of tracks. Then, for
// tracks of states with more runs than one answer holds, for their runs one by one, window after window.

import { decode, TileFault } from "../model/decode.ts";
import { RunSum, bucketedIn, partsOf, runsIn, RUNS_MAX } from "../model/runsums.ts";
import { bucketsFor, isReadIn, sumsOf, type Sums, type TrackSum } from "../model/sums.ts";
import type { Answer } from "../model/tile.ts";
import { bucketSpan, type Levels } from "../model/wanted.ts";
import { endOf, type Extent, type Viewport } from "../model/viewport.ts";
import { trackNumber, type TrackNumber } from "../units/tiles.ts";
import { ApiFault, type Client } from "./client.ts";
import { pathOf } from "./tiles.ts";

/** Tracks of a question. */
const TRACKS_MAX = 256;
/** Requests for runs one by one; sums that would need more stay rounded. */
const WINDOWS_MAX = 64;

export interface SumsAsked {
  readonly window: Viewport;
  readonly extent: Extent;
  readonly levels: Levels;
  readonly tracks: readonly TrackNumber[];
  /** Which events of a track are meant, as a part of a URL; empty: all. */
  readonly queryOf: (track: TrackNumber) => string;
}

/** Asks, and tells the sums: first rounded ones, then, where that is possible, exact ones. */
export async function askSums(client: Client, asked: SumsAsked, signal: AbortSignal, tell: (sums: Sums, isLast: boolean) => void): Promise<void> {
  const { window, extent, tracks, queryOf } = asked;
  const found: Sums[] = [];
  const bucketed: Answer[] = [];
  for (const query of new Set(tracks.map(queryOf))) {
    const some = tracks.filter((track) => queryOf(track) === query);
    for (let at = 0; at < some.length; at += TRACKS_MAX) {
      const answer = await ask(client, asked, window, some.slice(at, at + TRACKS_MAX), query, signal);
      found.push(sumsOf(answer, window, extent));
      if (bucketedIn(answer).length > 0 && isReadIn(answer, window, extent) && runsIn(answer) <= (WINDOWS_MAX / 2) * RUNS_MAX) {
        bucketed.push(answer);
      }
    }
  }
  const sums = { tracks: found.flatMap((some) => some.tracks), isRead: found.every((some) => some.isRead) };
  tell(sums, bucketed.length === 0);
  if (bucketed.length === 0) {
    return;
  }
  const exact = new Map<number, TrackSum>();
  const walk = new RunWalk(client, asked, signal);
  for (const answer of bucketed) {
    (await walk.sums(answer)).forEach((sum) => exact.set(sum.track, sum));
  }
  tell({ ...sums, tracks: sums.tracks.map((sum) => exact.get(sum.track) ?? sum) }, true);
}

/** Adds up runs one by one. */
class RunWalk {
  private readonly client: Client;
  private readonly asked: SumsAsked;
  private readonly signal: AbortSignal;
  private left = WINDOWS_MAX;

  constructor(client: Client, asked: SumsAsked, signal: AbortSignal) {
    this.client = client;
    this.asked = asked;
    this.signal = signal;
  }

  /** The exact sums of the tracks that an answer about the whole time has in buckets; none if that takes too many requests. */
  async sums(answer: Answer): Promise<readonly TrackSum[]> {
    const sums = new Map(bucketedIn(answer).map((track) => [track, new RunSum()]));
    const isDone = await this.within(answer, this.asked.window, sums);
    const plain = { form: "states", number: null, bins: null, untold: 0, isExact: true } as const;
    return isDone ? [...sums].map(([track, { values, count }]) => ({ ...plain, track, values, count })) : [];
  }

  /** Adds the part of a window that an answer has in buckets, part by part, in the order of time. */
  private async within(answer: Answer, window: Viewport, sums: ReadonlyMap<number, RunSum>): Promise<boolean> {
    const { extent } = this.asked;
    const tracks = bucketedIn(answer).filter((track) => sums.has(track));
    const parts = tracks.length === 0 ? [] : partsOf(answer, window, extent);
    if (tracks.length > 0 && parts.length < 2) {
      return false;
    }
    for (const part of parts) {
      if (this.left-- <= 0) {
        return false;
      }
      const found = await ask(this.client, this.asked, part, tracks.map(trackNumber), "", this.signal);
      if (!isReadIn(found, part, extent)) {
        return false;
      }
      this.add(found, part, sums);
      if (!(await this.within(found, part, sums))) {
        return false;
      }
    }
    return true;
  }

  private add(answer: Answer, part: Viewport, sums: ReadonlyMap<number, RunSum>): void {
    const { window, extent } = this.asked;
    const origin = Number(extent.begin + answer.first * bucketSpan(answer.level) - window.begin);
    const span = [Number(part.begin - window.begin), Number(endOf(part) - window.begin)] as const;
    answer.tracks.forEach(({ track, items }) => (items.form === "runs" ? sums.get(track)?.add(items, origin, span) : undefined));
  }
}

async function ask(client: Client, { extent, levels }: SumsAsked, window: Viewport, tracks: readonly TrackNumber[], query: string, signal: AbortSignal): Promise<Answer> {
  const answer = await client.bytes(pathOf({ ...bucketsFor(window, extent, levels), tracks, etag: null, query }), null, signal);
  if (answer === "unchanged") {
    throw new ApiFault("nonsense", "the server says that nothing has changed since it never answered");
  }
  return decoded(answer.bytes);
}

function decoded(bytes: ArrayBuffer): Answer {
  try {
    return decode(bytes);
  } catch (error) {
    throw error instanceof TileFault ? new ApiFault("nonsense", error.message) : error;
  }
}
