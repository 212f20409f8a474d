// Whether the window goes along with the end of traces that grow, and which window that is.

import { SECOND, minus, nanos, plus, type Nanos } from "../units/time.ts";
import type { Px } from "../units/screen.ts";
import type { Status } from "./catalogue.ts";
import { leftAt, isRecording, type Left } from "./live.ts";
import { clamp, endOf, everything, type Extent, type Viewport } from "./viewport.ts";

export interface Follow {
  /** The window goes along with the end. */
  readonly isOn: boolean;
  /** How much is seen then, as far as there is so much; `null`: everything. */
  readonly span: Nanos | null;
  /** The state of the traces when the window was held back; `null` where it is not, and where nothing comes. */
  readonly left: Left | null;
}

/** The default span of the window on traces that grow. */
export const FOLLOW_SPAN = nanos(10n * SECOND);

export const FIRST_FOLLOW: Follow = { isOn: false, span: FOLLOW_SPAN, left: null };

/** The window that ends at `edge`. It begins at whole pixels, so that its content keeps its shape from one picture to the next. */
export function windowAt(extent: Extent, edge: Nanos, span: Nanos | null, width: Px): Viewport {
  const there = minus(edge, extent.begin);
  if (span === null || span >= there) {
    return clamp({ begin: extent.begin, span: there }, extent);
  }
  const wide = BigInt(Math.max(1, Math.round(width)));
  const pixels = ((there - span) * wide + span - 1n) / span;
  return clamp({ begin: nanos(extent.begin + (pixels * span) / wide), span }, extent);
}

/** The server's first or renewed answer on whether traces grow. `chosen` is the window, unless the user has chosen none, or it shows everything. */
export function followHeard(follow: Follow, before: Status | null, now: Status, chosen: Viewport | null): Follow {
  if (!isRecording(now)) {
    // The window still goes to where they ended.
    return follow.isOn && (now.live ?? null) === null ? { ...follow, isOn: false } : follow;
  }
  if (isRecording(before)) {
    return follow;
  }
  // A window that showed everything goes on showing everything.
  const span = before === null ? follow.span : null;
  return chosen === null ? { isOn: true, span, left: null } : { isOn: false, span: chosen.span, left: leftAt(now) };
}

/** The user has moved the window: that holds it back, unless everything is seen. */
export function followMoved(follow: Follow, status: Status, next: Viewport): Follow {
  if (!isRecording(status)) {
    return follow.isOn ? { ...follow, isOn: false } : follow;
  }
  const all = everything(status.extent);
  if (next.begin === all.begin && next.span === all.span) {
    return { isOn: true, span: null, left: null };
  }
  return { isOn: false, span: next.span, left: follow.left ?? leftAt(status) };
}

/** Whether a move leads no earlier than where the window goes by itself. */
export function leadsAlong(follow: Follow, { extent }: Status, before: Viewport, next: Viewport): boolean {
  const isLater = next.span === before.span && endOf(next) >= endOf(before);
  return follow.isOn && (isLater || (follow.span === null && next.span >= everything(extent).span));
}

/** How far a window's end is behind the end of the traces. */
export function lagOf(extent: Extent, view: Viewport): Nanos {
  return minus(extent.end, plus(view.begin, view.span));
}
