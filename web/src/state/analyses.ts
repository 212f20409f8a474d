// The known state of analyses: which there are, and the answers to questions. And the effect on the page of choosing a row of theirs.

import type { Analysis, Asked, Failure } from "../model/jobs.ts";
import type { Lens } from "../model/lens.ts";
import type { Track } from "../model/catalogue.ts";
import type { Span } from "../model/tables.ts";
import type { Viewport } from "../model/viewport.ts";
import { minus, nanos, plus, type Nanos } from "../units/time.ts";
import { wentTo, type State } from "./viewer.ts";

export interface AnalysesState {
  /** Those that the server knows; `null`: it has not said so yet. */
  readonly analyses: readonly Analysis[] | null;
  /** Why it has not. */
  readonly failure: Failure | null;
  /** The state of questions, by their keys. */
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

/** Shows a span of time, with as much around it, marks its begin and selects it; an instant in the middle of the window. One can go back. Questions
 * about the window, or the selection, stay as they are: each step from row to row would else ask about another time. */
export function shownSpan(state: State, { begin, end }: Span): State {
  const { status, view, lens } = state;
  if (status === null || view === null) {
    return state;
  }
  const span = minus(end, begin);
  const isSelected = span > 0n && lens.scope !== "selection";
  const marked = { ...state, mark: begin, ...(isSelected ? { selection: { begin, span } } : {}) };
  return lens.scope === "window" ? marked : wentTo(marked, span > 0n ? around(begin, span) : nearer(state, view, begin));
}

function around(begin: Nanos, span: Nanos): Viewport {
  const margin = nanos(span < WINDOW_MIN ? (WINDOW_MIN - span) / 2n + 1n : span / 2n);
  return { begin: minus(begin, margin), span: plus(span, nanos(2n * margin)) };
}

function nearer({ status }: State, view: Viewport, time: Nanos): Viewport {
  const near = status === null ? view.span : nanos(minus(status.extent.end, status.extent.begin) / INSTANT_PART);
  const longest = near > WINDOW_MIN ? near : WINDOW_MIN;
  const span = view.span > longest ? longest : view.span;
  return { begin: minus(time, nanos(span / 2n)), span };
}

const tracksByThread = new WeakMap<readonly Track[], ReadonlyMap<number, Track>>();

/** The track of a thread: that of its states, else the first one about it. */
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
