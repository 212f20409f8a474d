// What the strip that shows all of the traces is made of: the tracks that count events, in as many buckets as fit.

import type { Px } from "../units/screen.ts";
import type { Catalogue, Status, Track } from "./catalogue.ts";
import { everything } from "./viewport.ts";
import { levelFor, tilesIn, type TileRange } from "./wanted.ts";

/** The track that counts all that is recorded, of traces of several streams. */
const ALL = "all/events";

/** Tracks that count what is recorded, each event once: one for all streams, or that of the only one. */
export function overviewTracks(catalogue: Catalogue): readonly Track[] {
  const all = catalogue.tracks.find((track) => track.id === ALL);
  return all === undefined ? catalogue.tracks.filter((track) => track.kind === "instants" && track.group === "Events") : [all];
}

export function overviewRange(status: Status, width: Px): TileRange {
  const view = everything(status.extent);
  return tilesIn(view, status.extent, levelFor(view.span, width, status.levels));
}
