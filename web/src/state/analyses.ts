// What is known of analyses: which there are, and what became of questions. And what choosing a row of theirs does to the page.

import type { Analysis, Asked, Failure } from "../model/jobs.ts";
import type { Lens } from "../model/lens.ts";
import type { Track } from "../model/catalogue.ts";
import type { Span } from "../model/tables.ts";
import { minus, nanos, plus } from "../units/time.ts";
import { scrolledTo, withLayout, wentTo, type State } from "./viewer.ts";

export interface AnalysesState {
  /** Those that the server knows; `null`: it has not said so yet. */
  readonly analyses: readonly Analysis[] | null;
  /** Why it has not. */
  readonly failure: Failure | null;
  /** What became of questions, by what was asked. */
  readonly asked: ReadonlyMap<string, Asked>;
}

export const NO_ANALYSES: AnalysesState = { analyses: null, failure: null, asked: new Map() };

export function withAsked(state: AnalysesState, key: string, asked: Asked | null): AnalysesState {
  const next = new Map(state.asked);
  if (asked === null) {
    next.delete(key);
  } else {
    next.set(key, asked);
  }
  return { ...state, asked: next };
}

export function withLens(state: State, change: Partial<Lens>): State {
  return { ...state, lens: { ...state.lens, ...change } };
}

/** Windows around something are at least so long. */
const WINDOW_MIN = nanos(1_000);
/** Around an instant, so much of a window that shows everything. */
const INSTANT_PART = 50n;

/** Shows a span of time, with as much around it, and selects it; an instant in the middle of the window. One can go back. */
export function shownSpan(state: State, { begin, end }: Span): State {
  const { status, view } = state;
  if (status === null || view === null) {
    return state;
  }
  const span = minus(end, begin);
  if (span > 0n) {
    const around = span / 2n < WINDOW_MIN / 2n ? nanos((WINDOW_MIN - span) / 2n > 0n ? (WINDOW_MIN - span) / 2n : span / 2n) : nanos(span / 2n);
    const window = { begin: minus(begin, around), span: plus(span, nanos(2n * around)) };
    return { ...wentTo(state, window), selection: { begin, span } };
  }
  const all = minus(status.extent.end, status.extent.begin);
  const near = nanos(all / INSTANT_PART);
  const length = view.span > near ? (near > WINDOW_MIN ? near : WINDOW_MIN) : view.span;
  return wentTo(state, { begin: minus(begin, nanos(length / 2n)), span: length });
}

const tracksByThread = new WeakMap<readonly Track[], ReadonlyMap<number, Track>>();

/** X the first one about it. */
export function trackOfThread(state: State, tid: number | null): Track | null {
  const { tracks } = state.catalogue;
  let found = tracksByThread.get(tracks);
  if (found === undefined) {
    const byThread = new Map<number, Track>();
    for (const track of tracks) {
      const before = track.tid === null ? undefined : byThread.get(track.tid);
      if (track.tid !== null && (before === undefined || (before.kind !== "states" && track.kind === "states"))) {
        byThread.set(track.tid, track);
      }
    }
    found = byThread;
    tracksByThread.set(tracks, found);
  }
  return tid === null ? null : (found.get(tid) ?? null);
}

/** Scrolls to a track; its group is unfolded for that, and it is shown if it was hidden. */
export function shownTrack(state: State, track: Track): State {
  const { hidden, folded } = state.layout;
  const isCovered = hidden.includes(track.id) || folded.includes(track.group);
  const open = isCovered
    ? withLayout(state, { ...state.layout, hidden: hidden.filter((id) => id !== track.id), folded: folded.filter((group) => group !== track.group) })
    : state;
  const row = open.rows.find((one) => one.track?.id === track.id);
  if (row === undefined) {
    return open;
  }
  const time = open.view === null ? null : nanos(open.view.begin + open.view.span / 2n);
  const there = scrolledTo(open, row.top - Math.max(0, open.size.height / 3));
  return time === null ? there : { ...there, cursor: { time, row: row.key } };
}
