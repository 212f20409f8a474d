// Tiles that were fetched, and the parts of them that may be drawn.
//
// Memory is bounded in bytes; the tiles that were not drawn for longest go first. A tile that is exact throughout is sealed and never
// asked for again; others are asked for again when the server says that something has changed since, and are drawn until then.

import { TILE_BUCKETS, level, tileIndex, type Level, type TileIndex, type TrackNumber } from "../units/tiles.ts";
import { bytesOf, isSealed, type Tile } from "./tile.ts";
import type { TileRange } from "./wanted.ts";

interface Entry {
  readonly tile: Tile;
  readonly bytes: number;
  readonly sealed: boolean;
  readonly etag: string | null;
  /** Which events it is of, as the server was asked; empty: all. */
  readonly query: string;
  /** The server's version that the tile was last known to be current in. */
  version: number;
}

/** A tile, and which of its buckets are to be drawn: those that no better tile covers. */
export interface Piece {
  readonly tile: Tile;
  readonly begin: number;
  readonly end: number;
  /** It stands in for a tile of the level that was asked for. */
  readonly standIn: boolean;
}

/** How many levels finer a tile may be that stands in: four tiles of two levels below take the place of one. */
const FINER_MAX = 2;

/** Tiles by level, index and track. Some may be of some events only: the filter is part of their key,
 * so that tiles of another filter are never taken for these, and are there when the user comes back to it. */
export class TileCache {
  private readonly bytesMax: number;
  private readonly entries = new Map<string, Entry>();
  private bytes = 0;
  /** No tile that is there is of a higher level. */
  private highest = 0;
  private query = "";
  private filtered: ReadonlySet<number> = new Set();
  /** Queries by numbers, which are shorter. */
  private readonly queries = new Map<string, number>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Bytes of all tiles, about. */
  get size(): number {
    return this.bytes;
  }

  /** From now on tiles of these tracks are those of some events. `query` is how the server is asked for them; empty: all events. */
  choose(query: string, tracks: ReadonlySet<number>): void {
    this.query = query;
    this.filtered = tracks;
  }

  /** The query of the latest choice. */
  get chosen(): string {
    return this.query;
  }

  /** How tiles of a track are requested, beside their level and index; empty: they are those of all events. */
  queryOf(track: TrackNumber): string {
    return this.query !== "" && this.filtered.has(track) ? this.query : "";
  }

  /** Keeps a tile instead of the one that was there. */
  put(tile: Tile, version: number, etag: string | null, query: string = this.queryOf(tile.track)): void {
    const name = this.nameOf(tile.level, tile.index, tile.track, query);
    this.drop(name);
    const entry = { tile, bytes: bytesOf(tile), sealed: isSealed(tile.spans), etag, query, version };
    this.entries.set(name, entry);
    this.bytes += entry.bytes;
    this.highest = Math.max(this.highest, tile.level);
    for (const oldest of this.entries.keys()) {
      if (this.bytes <= this.bytesMax || oldest === name) {
        break;
      }
      this.drop(oldest);
    }
  }

  /** The server says that a tile is unchanged. */
  confirm(of: Level, index: TileIndex, track: TrackNumber, version: number, query: string = this.queryOf(track)): void {
    const entry = this.entries.get(this.nameOf(of, index, track, query));
    if (entry !== undefined) {
      entry.version = Math.max(entry.version, version);
    }
  }

  /** Whether the page must request a tile: nothing is there, or it is not sealed and older than `version`. */
  isWanted(of: Level, index: TileIndex, track: TrackNumber, version: number): boolean {
    const entry = this.entries.get(this.nameOf(of, index, track));
    return entry === undefined || (!entry.sealed && entry.version < version);
  }

  /** Whether tiles of a range are there that do not tell all of the traces yet, which have so many buckets on that level. */
  isUnread({ level: of, first, count }: TileRange, track: TrackNumber, buckets: number): boolean {
    for (let index = first; index < first + count; index++) {
      const entry = this.entries.get(this.nameOf(of, tileIndex(index), track));
      const isBefore = (bucket: number): boolean => index * TILE_BUCKETS + bucket < buckets;
      if (entry?.sealed === false && entry.tile.spans.some(({ begin, quality }) => quality !== "exact" && isBefore(begin))) {
        return true;
      }
    }
    return false;
  }

  /** The tag with which the server knows whether a tile has changed. */
  etagOf(of: Level, index: TileIndex, track: TrackNumber): string | null {
    return this.entries.get(this.nameOf(of, index, track))?.etag ?? null;
  }

  /** The pieces of a track that can be drawn without waiting: wanted tiles, else finer ones, else the next coarser one. */
  pieces(range: TileRange, track: TrackNumber): Piece[] {
    const found: Piece[] = [];
    for (let number = 0; number < range.count; number++) {
      const index = tileIndex(range.first + number);
      const tile = this.touch(range.level, index, track);
      if (tile !== null) {
        found.push({ tile, begin: 0, end: TILE_BUCKETS, standIn: false });
        continue;
      }
      const finer = this.finer(range.level, index, track, FINER_MAX);
      const coarser = finer.complete ? null : this.coarser(range.level, index, track);
      found.push(...(coarser === null ? finer.pieces : [coarser]));
    }
    return found;
  }

  /** Hands out all tiles of a range that are there, of any track, without saying that they are used. */
  each(range: TileRange, act: (tile: Tile) => void): void {
    for (const { tile, query } of this.entries.values()) {
      if (query === this.queryOf(tile.track) && tile.level === range.level && tile.index >= range.first && tile.index < range.first + range.count) {
        act(tile);
      }
    }
  }

  /** Hands out all coarser tiles that are there, of any track, in which a whole range lies. */
  eachOver(range: TileRange, act: (tile: Tile) => void): void {
    const last = range.first + range.count - 1;
    for (const { tile, query } of this.entries.values()) {
      const wide = 2 ** (tile.level - range.level);
      if (wide > 1 && query === this.queryOf(tile.track) && Math.floor(range.first / wide) === tile.index && Math.floor(last / wide) === tile.index) {
        act(tile);
      }
    }
  }

  /** Forgets everything: the set of traces has changed. */
  clear(): void {
    this.entries.clear();
    this.bytes = 0;
    this.highest = 0;
  }

  private finer(of: Level, index: TileIndex, track: TrackNumber, depth: number): { pieces: Piece[]; complete: boolean } {
    if (depth === 0 || of === 0) {
      return { pieces: [], complete: false };
    }
    const pieces: Piece[] = [];
    let complete = true;
    for (const half of [2 * index, 2 * index + 1]) {
      const tile = this.touch(level(of - 1), tileIndex(half), track);
      if (tile !== null) {
        pieces.push({ tile, begin: 0, end: TILE_BUCKETS, standIn: true });
        continue;
      }
      const below = this.finer(level(of - 1), tileIndex(half), track, depth - 1);
      pieces.push(...below.pieces);
      complete &&= below.complete;
    }
    return { pieces, complete };
  }

  /** The part of the nearest tile above; a bucket of it may be longer than the whole tile that it stands in for. */
  private coarser(of: Level, index: TileIndex, track: TrackNumber): Piece | null {
    for (let up = 1; of + up <= this.highest; up++) {
      const tile = this.touch(level(of + up), tileIndex(Math.floor(index / 2 ** up)), track);
      if (tile !== null) {
        const begin = ((index / 2 ** up) % 1) * TILE_BUCKETS;
        return { tile, begin, end: begin + TILE_BUCKETS / 2 ** up, standIn: true };
      }
    }
    return null;
  }

  /** The tile, which is now the one that was used last. */
  private touch(of: Level, index: TileIndex, track: TrackNumber): Tile | null {
    const name = this.nameOf(of, index, track);
    const entry = this.entries.get(name);
    if (entry === undefined) {
      return null;
    }
    this.entries.delete(name);
    this.entries.set(name, entry);
    return entry.tile;
  }

  private nameOf(of: Level, index: TileIndex, track: TrackNumber, query: string = this.queryOf(track)): string {
    const plain = `${of}/${index}/${track}`;
    if (query === "") {
      return plain;
    }
    const number = this.queries.get(query) ?? this.queries.size;
    this.queries.set(query, number);
    return `${plain}?${number}`;
  }

  private drop(name: string): void {
    const entry = this.entries.get(name);
    if (entry !== undefined) {
      this.entries.delete(name);
      this.bytes -= entry.bytes;
    }
  }
}
