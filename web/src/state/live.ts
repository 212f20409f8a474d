// The window while traces grow: it goes along with their end, is held back, and follows again.

import { windowAt } from "../model/follow.ts";
import { isRecording, leftAt } from "../model/live.ts";
import { endOf, zoom, type Viewport } from "../model/viewport.ts";
import { minus, nanos, type Nanos } from "../units/time.ts";
import { PAST_MAX, moved, sameWindow, widthOf, type State } from "./viewer.ts";

/** The window has gone along so far. The time under the pointer goes along, too; a window that moves by less than a pixel stays. */
export function goneAlong(state: State, edge: Nanos): State {
  const { status, view, follow } = state;
  if (!follow.isOn || status === null || view === null) {
    return state;
  }
  const next = windowAt(status.extent, edge, follow.span, widthOf(state));
  const pixels = ((next.span - view.span) * BigInt(Math.round(widthOf(state)))) / view.span;
  const isTiny = next.begin === view.begin && next.span > view.span && pixels < 1n && edge < status.extent.end;
  if (sameWindow(next, view) || isTiny) {
    return state;
  }
  return { ...state, view: next, cursor: state.cursor === null ? null : { ...state.cursor, time: carried(state.cursor.time, view, next) } };
}

/** The time that is where another one was on the screen. */
function carried(time: Nanos, before: Viewport, next: Viewport): Nanos {
  return nanos(next.begin + ((time - before.begin) * next.span) / before.span);
}

/** The window is where the traces have ended: there is nothing to go along with any more. */
export function arrived(state: State): State {
  return state.follow.isOn && !isRecording(state.status) ? { ...state, follow: { ...state.follow, isOn: false } } : state;
}

/** The window is held back. */
export function paused(state: State): State {
  const { status, follow } = state;
  return !follow.isOn || status === null || !isRecording(status) ? state : { ...state, follow: { ...follow, isOn: false, left: leftAt(status) } };
}

/** The window goes along with the end from now on; one can go back to where it was. */
export function resumed(state: State): State {
  const { status, view, follow, past } = state;
  if (follow.isOn || view === null || !isRecording(status)) {
    return state;
  }
  return { ...state, follow: { ...follow, isOn: true, left: null }, drawn: null, past: [...past, view].slice(-PAST_MAX), future: [] };
}

export function toggledFollow(state: State): State {
  return state.follow.isOn ? paused(state) : resumed(state);
}

/** The window has `factor` times its span. While it goes along, its end stays in its place, else the time `at`. */
export function zoomed(state: State, at: Nanos, factor: number): State {
  const { status, view, follow } = state;
  if (view === null || status === null || !follow.isOn) {
    return view === null ? state : moved(state, zoom(view, at, factor));
  }
  const next = zoom(view, endOf(view), factor);
  const isAll = next.span >= minus(endOf(view), status.extent.begin);
  const there = windowAt(status.extent, endOf(view), isAll ? null : next.span, widthOf(state));
  return { ...state, view: there, follow: { ...follow, span: isAll ? null : there.span } };
}
