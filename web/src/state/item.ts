// The picked item, and where it is on the screen.

import type { Track } from "../model/catalogue.ts";
import { sameItem, type Item } from "../model/items.ts";
import type { Row } from "../model/rows.ts";
import { endOf, type Extent, type Viewport } from "../model/viewport.ts";
import type { TrackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { trackSeen } from "./tracks.ts";
import { wentTo, type State } from "./viewer.ts";

/** The part of the window that a shown item has, if it lasts. */
const SHOWN_PART = { of: 2n, whole: 3n };
/** An item without a duration is shown in the middle of a window that is shorter by as much. */
const NEARER = 8n;

/** Something else is picked, or nothing. */
export function withItem(state: State, item: Item | null): State {
  return sameItem(state.item, item) ? state : { ...state, item, itemExtent: null };
}

/** The extent of the picked item is known. */
export function withItemExtent(state: State, item: Item, extent: Extent): State {
  return sameItem(state.item, item) ? { ...state, itemExtent: extent } : state;
}

/** The track with an id. */
export function trackOf(state: State, id: string): Track | null {
  return state.catalogue.tracks.find((track) => track.id === id) ?? null;
}

/** The track that the server calls by a number. */
export function trackNumbered({ catalogue }: State, number: TrackNumber): Track | null {
  const likely = catalogue.tracks[number];
  return likely?.number === number ? likely : (catalogue.tracks.find((track) => track.number === number) ?? null);
}

/** The row of a track: pinned ones come first. */
export function rowOf(state: State, id: string): Row | null {
  return state.rows.find((row) => row.track?.id === id) ?? null;
}

/** The window and the rows move as far as the picked item needs it to be seen. */
export function followed(state: State): State {
  const { view, item } = state;
  const extent = extentOfItem(state);
  if (view === null || item === null || extent === null) {
    return state;
  }
  const isSeen = extent.begin < endOf(view) && view.begin <= extent.end;
  return inSight(isSeen ? state : wentTo(state, aroundTime(nanos((extent.begin + extent.end) / 2n), view)), item);
}

/** The window that shows the picked item, and not much more. */
export function shown(state: State): State {
  const { view, item, status } = state;
  const extent = extentOfItem(state);
  if (view === null || item === null || extent === null || status === null) {
    return state;
  }
  const length = extent.end - extent.begin;
  const span = length > 0n ? (length * SHOWN_PART.whole) / SHOWN_PART.of : view.span / NEARER;
  const middle = nanos((extent.begin + extent.end) / 2n);
  return inSight(wentTo(state, aroundTime(middle, { begin: view.begin, span: nanos(span) })), item);
}

/** The picked item, as it is drawn. */
export function pickedOf(state: State): { readonly track: string; readonly extent: Extent } | null {
  const extent = extentOfItem(state);
  return state.item === null || extent === null ? null : { track: state.item.track, extent };
}

/** The time of the picked item is selected, if it lasts. */
export function withItemSelected(state: State): State {
  const extent = extentOfItem(state);
  return extent === null || extent.end <= extent.begin ? state : { ...state, selection: { begin: extent.begin, span: nanos(extent.end - extent.begin) } };
}

function extentOfItem({ item, itemExtent }: State): Extent | null {
  return itemExtent ?? (item === null ? null : { begin: item.time, end: item.time });
}

function aroundTime(middle: Viewport["begin"], { span }: Viewport): Viewport {
  return { begin: nanos(middle - span / 2n), span };
}

/** The row of the picked item is on the screen. Arrows are seen between other rows. */
function inSight(state: State, { track }: Item): State {
  return trackOf(state, track)?.kind === "arrows" ? state : trackSeen(state, { id: track }, false);
}
