// What the strip that shows all of the traces is made of: the tracks that count events, in as many buckets as fit.

import { px, type Px } from "../units/screen.ts";
import type { Nanos } from "../units/time.ts";
import type { Catalogue, Status, Track } from "./catalogue.ts";
import { endOf, everything, pixelOf, type Viewport } from "./viewport.ts";
import { levelFor, tilesIn, type TileRange } from "./wanted.ts";

/** The track that counts all that is recorded, of traces of several streams. */
const ALL = "all/events";

const tracksKnown = new WeakMap<readonly Track[], readonly Track[]>();

/** Tracks that count what is recorded, each event once: one for all streams, or that of the only one. Kept, because they are asked for in each
 * picture. */
export function overviewTracks({ tracks }: Catalogue): readonly Track[] {
  let known = tracksKnown.get(tracks);
  if (known === undefined) {
    const all = tracks.find((track) => track.id === ALL);
    known = all === undefined ? tracks.filter((track) => track.kind === "instants" && track.group === "Events") : [all];
    tracksKnown.set(tracks, known);
  }
  return known;
}

export function overviewRange(status: Status, width: Px): TileRange {
  const view = everything(status.extent);
  return tilesIn(view, status.extent, levelFor(view.span, width, status.levels));
}

/** What the timeline shows of it, in times. */
export interface Shown {
  readonly view: Viewport;
  readonly selection: Viewport | null;
  /** When the list of events is. */
  readonly mark: Nanos | null;
}

/** The same on the strip, from pixel to pixel. */
export interface OverviewMarks {
  readonly view: readonly [Px, Px];
  readonly selection: readonly [Px, Px] | null;
  readonly mark: Px | null;
}

/** Where the window and what is in it lie on a strip that shows `all`; `wide` are the pixels of a line. */
export function overviewMarks({ view, selection, mark }: Shown, all: Viewport, width: Px, wide: number): OverviewMarks {
  const at = (shown: Viewport): [Px, Px] => {
    const from = px(Math.round(pixelOf(all, shown.begin, width)));
    // However short the window is, it can be seen.
    return [from, px(Math.max(from + 2 * wide, Math.round(pixelOf(all, endOf(shown), width))))];
  };
  return { view: at(view), selection: selection === null ? null : at(selection), mark: mark === null ? null : px(Math.floor(pixelOf(all, mark, width))) };
}
