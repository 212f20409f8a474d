// What the strip that shows all of the traces is made of: the tracks that count events, in as many buckets as fit.

import type { Px } from "../units/screen.ts";
import type { Catalogue, Status, Track } from "./catalogue.ts";
import { everything } from "./viewport.ts";
import { levelFor, tilesIn, type TileRange } from "./wanted.ts";

/** As many tracks are summed up; a trace of more streams shows those it began with. */
const TRACKS_MAX = 256;

/** Tracks that count what is recorded: of each CPU, or of each stream. */
export function overviewTracks(catalogue: Catalogue): readonly Track[] {
  return catalogue.tracks.filter((track) => track.kind === "instants" && track.group === "Events").slice(0, TRACKS_MAX);
}

export function overviewRange(status: Status, width: Px): TileRange {
  const view = everything(status.extent);
  return tilesIn(view, status.extent, levelFor(view.span, width, status.levels));
}
