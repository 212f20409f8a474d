// The data of the strip that shows all of the traces: the tracks that count events, in as many buckets as fit.

import type { Px } from "../units/screen.ts";
import type { Catalogue, Status, Track } from "./catalogue.ts";
import { everything } from "./viewport.ts";
import { levelFor, tilesIn, type TileRange } from "./wanted.ts";

/** The track that counts all that is recorded, of traces of several streams. */
const ALL = "all/events";

const tracksKnown = new WeakMap<readonly Track[], readonly Track[]>();

/** Tracks that count the recorded events, each event once: one for all streams, or that of the only one. Kept, because they are asked for in each
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
