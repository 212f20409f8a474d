// Tracks without activity in the window, as far as the fetched tiles tell.

import type { TileCache } from "./cache.ts";
import type { Catalogue } from "./catalogue.ts";
import { heightOf } from "./palette.ts";
import { lowerBound } from "./split.ts";
import { NONE, type Tile } from "./tile.ts";
import type { Viewport } from "./viewport.ts";
import type { TileRange } from "./wanted.ts";
import { TILE_BUCKETS, type Level } from "../units/tiles.ts";
import type { Nanos } from "../units/time.ts";

/** A window in buckets: from the first one of the traces, or of a tile. Its ends may lie inside of buckets. */
export interface Buckets {
  readonly from: number;
  readonly to: number;
}

/** A window in buckets of a level. */
export function bucketsOf(view: Viewport, origin: Nanos, of: Level): Buckets {
  const width = 2 ** of;
  return { from: Number(view.begin - origin) / width, to: Number(view.begin + view.span - origin) / width };
}

/** The known activity of tracks, by their numbers. Of all others nothing is known. */
export interface Activity {
  readonly idle: ReadonlySet<number>;
  readonly busy: ReadonlySet<number>;
}

/** Tracks with all tiles of the window there and empty are idle: a thread that is blocked all along does nothing; one that runs does. A coarser tile
 * that is empty there says so, too, so that zooming in makes no track unknown. */
export function activityOf(tiles: TileCache, range: TileRange, seen: Buckets, catalogue: Catalogue): Activity {
  const empty = new Map<number, number>();
  const busy = new Set<number>();
  const within = ({ level, index }: Tile): Buckets => {
    const wide = 2 ** (level - range.level);
    return { from: seen.from / wide - index * TILE_BUCKETS, to: seen.to / wide - index * TILE_BUCKETS };
  };
  tiles.each(range, (tile) => {
    if (isEmpty(tile, within(tile), catalogue)) {
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
  tiles.eachOver(range, (tile) => {
    if (!busy.has(tile.track) && !idle.has(tile.track) && isEmpty(tile, within(tile), catalogue)) {
      idle.add(tile.track);
    }
  });
  return { idle, busy };
}

function isEmpty({ items, carry, spans, level }: Tile, { from, to }: Buckets, catalogue: Catalogue): boolean {
  const first = Math.max(0, Math.floor(from));
  if (spans.some((span) => span.begin < to && span.end > first && span.quality !== "exact" && span.quality !== "unknown")) {
    return false;
  }
  switch (items.form) {
    case "states": {
      const at = lowerBound(items.bucket, first);
      const held = at === 0 ? carry : (items.last[at - 1] ?? NONE);
      return !((items.bucket[at] ?? Infinity) < to) && isWaiting(held, catalogue);
    }
    case "runs": {
      const width = 2 ** level;
      const [left, right] = [Math.max(0, from) * width, Math.min(TILE_BUCKETS, to) * width];
      return items.begin.every((begin, index) => {
        const end = items.end[index] ?? 0;
        return end <= left || begin >= right || (begin <= left && end >= right && isWaiting(items.value[index] ?? NONE, catalogue));
      });
    }
    case "counter": {
      const at = lowerBound(items.bucket, first);
      const held = at === 0 ? items.held : (items.last[at - 1] ?? 0);
      return !((items.bucket[at] ?? Infinity) < to) && (Number.isNaN(held) || held === 0);
    }
    case "instants":
    case "arrows": {
      const width = 2 ** level;
      const times = items.form === "instants" ? items.time : items.begin;
      return !((times[lowerBound(times, from * width)] ?? Infinity) < to * width);
    }
    default:
      return !((items.bucket[lowerBound(items.bucket, first)] ?? Infinity) < to);
  }
}

/** Lower bars are of states that only wait. */
const WAITS_BELOW = 0.5;

/** Whether a value that lasts for all of a window is nothing to look at: a thread in a call all along has the activity that its state says. */
function isWaiting(value: number, catalogue: Catalogue): boolean {
  if (value === NONE) {
    return true;
  }
  const known = catalogue.values[value];
  return known !== undefined && (known.kind === "call" || heightOf(known.kind, known.label) < WAITS_BELOW);
}
