// How the filter of a page changes.

import { isActive, PLAIN_FILTER, type FieldNames, type Filter } from "../model/filter.ts";
import { rowsOf } from "../model/rows.ts";
import { scrolledTo, type State } from "./viewer.ts";

/** The page shows what another filter means. */
export function withFilter(state: State, filter: Filter): State {
  if (filter === state.filter) {
    return state;
  }
  const { cpus, processes, threads, mode } = state.filter;
  const isSame = filter.cpus === cpus && filter.processes === processes && filter.threads === threads && filter.mode === mode;
  const next = { ...state, filter };
  return isSame ? next : scrolledTo({ ...next, rows: rowsOf(state.catalogue, state.layout, filter, state.idle) }, state.scroll);
}

/** A part of the filter becomes another one. */
export function refiltered(state: State, change: Partial<Filter>): State {
  return withFilter(state, { ...state.filter, ...change });
}

/** The server has said what the traces' events have. */
export function withNames(state: State, names: FieldNames): State {
  return withFilter(state, { ...state.filter, names });
}

/** Everything is meant again; how the rest is shown stays. */
export function unfiltered(state: State): State {
  const { mode, names } = state.filter;
  return isActive(state.filter) ? withFilter(state, { ...PLAIN_FILTER, mode, names }) : state;
}
