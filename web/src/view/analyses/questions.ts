// Questions to analyses, with the filter of the whole page.

import { analysisOf } from "../../model/filter.ts";
import type { Options, Question } from "../../model/jobs.ts";
import type { State } from "../../state/viewer.ts";

/** Where rows are only paler or hidden, an analysis is about all of the traces. */
export function questionFor(state: State, kind: string, options: Options): Question {
  return { kind, options: { ...options, ...analysisOf(state.filter) } };
}
