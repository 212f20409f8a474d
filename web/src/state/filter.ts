// Changes of a page's filter.

import { isActive, PLAIN_FILTER, type FieldNames, type Filter } from "../model/filter.ts";
import { rowsOf } from "../model/rows.ts";
import { anchored, type State } from "./viewer.ts";

/** The parts of a filter that rows depend on. */
const ROW_PARTS = ["cpus", "applications", "owners", "processes", "threads", "mode"] as const;

/** The page shows the result of another filter. */
export function withFilter(state: State, filter: Filter): State {
  if (filter === state.filter) {
    return state;
  }
  const before = state.filter;
  const isSame = ROW_PARTS.every((part) => filter[part] === before[part]);
  const next = { ...state, filter };
  return isSame ? next : anchored(state, { ...next, rows: rowsOf(state.catalogue, state.layout, filter, state.idle) });
}

/** A part of the filter becomes another one. */
export function refiltered(state: State, change: Partial<Filter>): State {
  return withFilter(state, { ...state.filter, ...change });
}

/** The server has sent the fields of the traces' events. */
export function withNames(state: State, names: FieldNames): State {
  return withFilter(state, { ...state.filter, names });
}

/** Everything is meant again; how the rest is shown stays. */
export function unfiltered(state: State): State {
  const { mode, names, owners } = state.filter;
  return isActive(state.filter) ? withFilter(state, { ...PLAIN_FILTER, mode, names, owners }) : state;
}
