// Tracks in which nothing happens in the window, as far as the tiles say that are there.

import type { TileCache } from "./cache.ts";
import type { Catalogue } from "./catalogue.ts";
import { heightOf } from "./palette.ts";
import { NONE, lengthOf, type Tile } from "./tile.ts";
import { TILE_BUCKETS } from "../units/tiles.ts";
import type { TileRange } from "./wanted.ts";

/** Numbers of tracks all of whose tiles of the window are there and are empty. A thread that is blocked all along does nothing; one that runs does. */
export function idleTracks(tiles: TileCache, range: TileRange, catalogue: Catalogue): ReadonlySet<number> {
  const empty = new Map<number, number>();
  const busy = new Set<number>();
  tiles.each(range, (tile) => {
    if (isEmpty(tile, catalogue)) {
      empty.set(tile.track, (empty.get(tile.track) ?? 0) + 1);
    } else {
      busy.add(tile.track);
    }
  });
  const idle = new Set<number>();
  for (const [track, count] of empty) {
    if (count === range.count && !busy.has(track)) {
      idle.add(track);
    }
  }
  return idle;
}

function isEmpty(tile: Tile, catalogue: Catalogue): boolean {
  const { items, carry, spans } = tile;
  if (spans.some((span) => span.quality !== "exact" && span.quality !== "unknown")) {
    return false;
  }
  switch (items.form) {
    case "states":
      return items.bucket.length === 0 && isWaiting(carry, catalogue);
    case "runs": {
      const end = TILE_BUCKETS * 2 ** tile.level;
      return items.begin.every((begin, index) => begin <= 0 && (items.end[index] ?? 0) >= end && isWaiting(items.value[index] ?? NONE, catalogue));
    }
    case "counter":
      return items.bucket.length === 0 && (Number.isNaN(items.held) || items.held === 0);
    default:
      return lengthOf(items) === 0;
  }
}

/** Bars that are lower are of what only waits. */
const WAITS_BELOW = 0.5;

/** Whether a value that lasts for all of a window is nothing to look at: who is in a call all along does what his state says. */
function isWaiting(value: number, catalogue: Catalogue): boolean {
  if (value === NONE) {
    return true;
  }
  const known = catalogue.values[value];
  return known !== undefined && (known.kind === "call" || heightOf(known.kind, known.label) < WAITS_BELOW);
}
