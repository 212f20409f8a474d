// The server's units of time, and the numbers that it gives to tracks and values.

/** A bucket of level `n` is 2^n nanoseconds long. */
export type Level = number & { readonly unit: "level" };

/** A bucket of some level, counted from the begin of the traces; also: counted from the begin of a tile. */
export type Bucket = number & { readonly unit: "bucket" };

/** 256 neighboring buckets, counted from the begin of the traces. */
export type TileIndex = number & { readonly unit: "tile" };

/** A track, in the order in which the server met it. Its `id` is the stable name. */
export type TrackNumber = number & { readonly unit: "track" };

/** A value that a track can show: a thread, a state, a call. */
export type ValueNumber = number & { readonly unit: "value" };

/** How many buckets a tile has. */
export const TILE_BUCKETS = 256;

/** The largest level that the protocol has. */
export const LEVEL_MAX = 62 as Level;

export function level(number: number): Level {
  return number as Level;
}

export function tileIndex(number: number): TileIndex {
  return number as TileIndex;
}

export function trackNumber(number: number): TrackNumber {
  return number as TrackNumber;
}

export function valueNumber(number: number): ValueNumber {
  return number as ValueNumber;
}
