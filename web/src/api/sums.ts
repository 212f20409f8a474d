// Asks for the content of tracks in a span of time, to be added up: buckets of it, in as few requests as there are filters and hundreds of tracks.

import { decode, TileFault } from "../model/decode.ts";
import { bucketsFor, sumsOf, type Sums } from "../model/sums.ts";
import type { Levels } from "../model/wanted.ts";
import type { Extent, Viewport } from "../model/viewport.ts";
import type { TrackNumber } from "../units/tiles.ts";
import { ApiFault, type Client } from "./client.ts";
import { pathOf } from "./tiles.ts";

/** Tracks of a question. */
const TRACKS_MAX = 256;

export interface SumsAsked {
  readonly window: Viewport;
  readonly extent: Extent;
  readonly levels: Levels;
  readonly tracks: readonly TrackNumber[];
  /** Which events of a track are meant, as a part of a URL; empty: all. */
  readonly queryOf: (track: TrackNumber) => string;
}

export async function askSums(client: Client, { window, extent, levels, tracks, queryOf }: SumsAsked, signal: AbortSignal): Promise<Sums> {
  const range = bucketsFor(window, extent, levels);
  const found: Sums[] = [];
  for (const query of new Set(tracks.map(queryOf))) {
    const some = tracks.filter((track) => queryOf(track) === query);
    for (let at = 0; at < some.length; at += TRACKS_MAX) {
      const question = { ...range, tracks: some.slice(at, at + TRACKS_MAX), etag: null, query };
      const answer = await client.bytes(pathOf(question), null, signal);
      if (answer === "unchanged") {
        throw new ApiFault("nonsense", "the server says that nothing has changed since it never answered");
      }
      found.push(sumsOf(decoded(answer.bytes), window, extent));
    }
  }
  return { tracks: found.flatMap((sums) => sums.tracks), isRead: found.every((sums) => sums.isRead) };
}

function decoded(bytes: ArrayBuffer): ReturnType<typeof decode> {
  try {
    return decode(bytes);
  } catch (error) {
    throw error instanceof TileFault ? new ApiFault("nonsense", error.message) : error;
  }
}
