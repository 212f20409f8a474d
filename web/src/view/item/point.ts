// From a place on the screen to the item to pick there.

import { spotAt, type Spot } from "../../model/spot.ts";
import type { Track } from "../../model/catalogue.ts";
import { sameItem } from "../../model/items.ts";
import { withItem } from "../../state/item.ts";
import { widthOf, type State } from "../../state/viewer.ts";
import type { CssPx } from "../../units/screen.ts";
import { nanos, type Nanos } from "../../units/time.ts";
import type { Page } from "../page.ts";
import { piecesOf } from "../words.ts";
import { arrowAt } from "./arrows.ts";

/** An item as near to the pointer, in CSS pixels, is meant. */
const REACH_CSS_PX = 5n;

/** The item on a track at a time, or beside it; `null` if there is nothing. */
export function spotOf(page: Page, state: State, track: Track, time: Nanos): Spot | null {
  const { status, view, size } = state;
  if (status === null || view === null) {
    return null;
  }
  const reach = (view.span * REACH_CSS_PX * BigInt(Math.round(size.ratio * 4))) / (4n * BigInt(Math.max(1, widthOf(state))));
  return spotAt(piecesOf(page, state, track), status.extent.begin, time, nanos(reach));
}

/** A place on the rows, in CSS pixels. */
export interface Place {
  readonly x: CssPx;
  readonly y: CssPx;
}

/** Picks the arrow at a place, or the item on a row at a time. Where there is nothing, nothing is picked any more. */
export function pickAt(page: Page, rowKey: string | null, time: Nanos, place: Place | null = null): void {
  const { state } = page.store;
  const arrow = place === null ? null : arrowAt(page, state, place);
  // Another click on an arrow means the item below it.
  if (arrow !== null && !sameItem(state.item, { track: arrow.track.id, time: arrow.spot.time })) {
    page.picker.pick(arrow.track, arrow.spot);
    return;
  }
  const track = state.rows.find((row) => row.key === rowKey)?.track ?? null;
  const spot = track === null ? null : spotOf(page, state, track, time);
  if (track === null || spot === null) {
    page.store.update((now) => withItem(now, null));
  } else {
    page.picker.pick(track, spot);
  }
}

/** Picks the item on a row without a pointer at a place of it. */
export function pickAtMeant(page: Page, rowKey: string): void {
  const time = timeMeant(page.store.state);
  if (time !== null) {
    pickAt(page, rowKey, time);
  }
}

/** The time that is meant by a row without a pointer on it: that of the pointer elsewhere, of the picked item, or the middle. */
export function timeMeant({ cursor, item, view }: State): Nanos | null {
  return cursor?.time ?? item?.time ?? (view === null ? null : nanos(view.begin + view.span / 2n));
}
