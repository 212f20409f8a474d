// The requests that fetch missing tiles: as few as possible, the middle of the window first.
//
// A question names a run of neighboring tiles and some tracks. Tiles that lack the same tracks are asked for together.

import { TILE_BUCKETS, tileIndex, type Level, type TileIndex, type TrackNumber } from "../units/tiles.ts";
import type { TileCache } from "./cache.ts";
import type { TileRange } from "./wanted.ts";

/** Tiles of some tracks. */
export interface Question {
  readonly level: Level;
  readonly first: TileIndex;
  readonly count: number;
  readonly tracks: readonly TrackNumber[];
  /** The entity tag of their previous answer, if it is the same for all of them. */
  readonly etag: string | null;
  /** Which events of these tracks are asked for, as a part of a URL; empty: all. */
  readonly query: string;
}

/** A question has at most as many tiles; the server takes 4096 buckets. */
const TILES_MAX = 4096 / TILE_BUCKETS;
/** And at most as many tracks. */
const TRACKS_MAX = 256;

/** Whether a tile of a track has to be asked for. */
export type IsMissing = (of: Level, index: TileIndex, track: TrackNumber) => boolean;

/** The requests that leave nothing of `range` missing. */
export function questions(cache: TileCache, range: TileRange, tracks: readonly TrackNumber[], isMissing: IsMissing): Question[] {
  const found: Question[] = [];
  for (const [query, some] of byQuery(cache, tracks)) {
    for (let at = 0; at < some.length; at += TRACKS_MAX) {
      found.push(...ofSome(cache, range, some.slice(at, at + TRACKS_MAX), query, isMissing));
    }
  }
  const middle = range.first + range.count / 2;
  const distance = (question: Question): number => Math.abs(question.first + question.count / 2 - middle);
  return found.sort((one, other) => distance(one) - distance(other));
}

/** Tracks of all events and those of some are asked for apart. */
function byQuery(cache: TileCache, tracks: readonly TrackNumber[]): Map<string, TrackNumber[]> {
  const groups = new Map<string, TrackNumber[]>();
  for (const track of tracks) {
    const query = cache.queryOf(track);
    const group = groups.get(query);
    if (group === undefined) {
      groups.set(query, [track]);
    } else {
      group.push(track);
    }
  }
  return groups;
}

function ofSome(cache: TileCache, range: TileRange, tracks: readonly TrackNumber[], query: string, isMissing: IsMissing): Question[] {
  const found: Question[] = [];
  for (let number = 0; number < range.count; number++) {
    const index = tileIndex(range.first + number);
    const missing = tracks.filter((track) => isMissing(range.level, index, track));
    if (missing.length === 0) {
      continue;
    }
    const next = { level: range.level, first: index, count: 1, tracks: missing, etag: commonTag(cache, range.level, index, missing), query };
    const before = found.at(-1);
    if (before !== undefined && fits(before, next)) {
      found[found.length - 1] = { ...before, count: before.count + 1 };
    } else {
      found.push(next);
    }
  }
  return found;
}

function fits(before: Question, next: Question): boolean {
  return (
    before.first + before.count === next.first &&
    before.count < TILES_MAX &&
    before.etag === next.etag &&
    before.tracks.length === next.tracks.length &&
    before.tracks.every((track, index) => track === next.tracks[index])
  );
}

function commonTag(cache: TileCache, of: Level, index: TileIndex, tracks: readonly TrackNumber[]): string | null {
  const tags = new Set(tracks.map((track) => cache.etagOf(of, index, track)));
  const [tag] = tags;
  return tags.size === 1 && tag !== undefined ? tag : null;
}
