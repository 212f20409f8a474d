// The state of the panel of filters, beside the state of the page: event counts, and where they were counted.

import type { Counts } from "../model/counts.ts";
import type { Failure } from "../model/jobs.ts";
import type { Viewport } from "../model/viewport.ts";
import type { Vocabulary } from "../model/completion.ts";
import { NO_VOCABULARY } from "../model/completion.ts";

export interface FacetsState {
  /** Events are counted in the window instead of in all of the traces. */
  readonly inWindow: boolean;
  /** The last counts; those of another window stay until there are others. */
  readonly counts: Counts | null;
  /** The counts of all of the traces. */
  readonly all: Counts | null;
  /** The count under way, and how far that is, of 1. */
  readonly counting: { readonly window: Viewport | null; readonly part: number } | null;
  readonly failure: Failure | null;
  /** The vocabulary of expressions, as far as that was asked for. */
  readonly vocabulary: Vocabulary;
}

export const FIRST_FACETS: FacetsState = { inWindow: false, counts: null, all: null, counting: null, failure: null, vocabulary: NO_VOCABULARY };

/** Counting begins. */
export function counting(state: FacetsState, window: Viewport | null): FacetsState {
  return { ...state, counting: { window, part: 0 }, failure: null };
}

/** How far it is. */
export function countedPart(state: FacetsState, part: number): FacetsState {
  return state.counting === null ? state : { ...state, counting: { ...state.counting, part } };
}

/** Takes counts; `isAll`: they are complete. */
export function counted(state: FacetsState, counts: Counts, window: Viewport | null, isAll: boolean): FacetsState {
  return { ...state, counts, all: window === null ? counts : state.all, counting: isAll ? null : state.counting };
}

/** Why it cannot be counted. */
export function uncounted(state: FacetsState, failure: Failure): FacetsState {
  return { ...state, counting: null, failure };
}
