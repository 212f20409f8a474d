// Changes of the layout of a page's tracks: which are shown, where, how high.

import type { Track } from "../model/catalogue.ts";
import { groupsIn } from "../model/groups.ts";
import { movedBy, movedTo, withNamesWidth, withShown, withSize, withTrackSize, type RowSize } from "../model/layout.ts";
import { withPinned } from "../model/pins.ts";
import { PINNED_GROUP, rowsOf } from "../model/rows.ts";
import { fixedHeight, isSeenWholly } from "../model/screen.ts";
import { rowsSelected, type Selection } from "../model/selection.ts";
import { nanos } from "../units/time.ts";
import { withFilter } from "./filter.ts";
import { anchored, scrolledTo, withLayout, type State } from "./viewer.ts";

/** Shows some tracks, or hides them. */
export function tracksShown(state: State, tracks: readonly Track[], isShown: boolean): State {
  return withLayout(state, withShown(state.layout, tracks, isShown, state.catalogue.tracks));
}

/** Pins some tracks on top, or takes them from there. */
export function tracksPinned(state: State, tracks: readonly Track[], isPinned: boolean): State {
  return withLayout(state, withPinned(state.layout, tracks, isPinned, state.catalogue.tracks));
}

/** Rows of some tracks get another height than all. */
export function tracksSized(state: State, tracks: readonly Track[], size: RowSize): State {
  return withLayout(state, withTrackSize(state.layout, tracks.map((track) => track.id), size));
}

/** All rows a step higher, or lower; the middle of the screen stays about there. */
export function rowsSized(state: State, by: 1 | -1): State {
  const layout = withSize(state.layout, by);
  if (layout === state.layout) {
    return state;
  }
  const middle = state.scroll + state.size.height / 2;
  const row = state.rows.find((one) => one.top + one.height > middle);
  const next = withLayout(state, layout);
  const same = next.rows.find((one) => one.key === row?.key);
  return same === undefined || row === undefined ? next : scrolledTo(next, state.scroll + same.top - row.top);
}

/** The column of names is as wide as that. */
export function namesSized(state: State, width: number): State {
  const layout = withNamesWidth(state.layout, width);
  return layout === state.layout ? state : { ...state, layout };
}

/** The tracks of the rows that are selected, each once; the head of a folded group stands for its tracks. */
export function tracksSelected({ rows, catalogue, layout, filter, idle }: State, selection: Selection): readonly Track[] {
  const selected = rowsSelected(rows, selection);
  const folded = new Set(selected.filter((row) => row.track === null && row.folded).map((row) => row.group));
  const within = folded.size === 0 ? [] : rowsOf(catalogue, { ...layout, folded: [] }, filter, idle).filter((row) => folded.has(row.group));
  return [...new Set([...selected, ...within].flatMap(({ track }) => track ?? []))];
}

/** Groups from top to bottom, as they stand now. */
function groupOrder({ catalogue, layout }: State): readonly string[] {
  return groupsIn(catalogue.tracks, layout).map(([group]) => group);
}

/** A group stands so many places further down. Pinned tracks stay on top. */
export function groupMoved(state: State, group: string, by: number): State {
  return withGroups(state, movedBy(groupOrder(state), group, by));
}

/** A group stands where another one stood. */
export function groupMovedTo(state: State, group: string, to: string): State {
  return group === PINNED_GROUP || to === PINNED_GROUP ? state : withGroups(state, movedTo(groupOrder(state), group, to));
}

function withGroups(state: State, groups: readonly string[]): State {
  return withLayout(state, { ...state.layout, groups });
}

/** A pinned track stands so many places further down. */
export function pinMoved(state: State, id: string, by: number): State {
  return withLayout(state, { ...state.layout, pinned: movedBy(state.layout.pinned, id, by) });
}

/** A pinned track stands where another one stood. */
export function pinMovedTo(state: State, id: string, to: string): State {
  return withLayout(state, { ...state.layout, pinned: movedTo(state.layout.pinned, id, to) });
}

/** A track is seen: some row of it wholly, in the middle if none was; settings that hide it do so no longer. If `points`, it is as if the pointer were
 * there, so that the next key is about it. */
export function trackSeen(state: State, { id }: Pick<Track, "id">, points = true): State {
  const open = trackOpened(state, id);
  const rows = open.rows.filter((row) => row.track?.id === id);
  const row = rows.find((one) => isSeenWholly(open, one)) ?? rows.find(({ pinned }) => !pinned) ?? rows[0];
  if (row === undefined) {
    return open;
  }
  const there = isSeenWholly(open, row) ? open : scrolledTo(open, row.top - (open.size.height + fixedHeight(open) - row.height) / 2);
  return there.view === null || !points ? there : { ...there, cursor: { time: nanos(there.view.begin + there.view.span / 2n), row: row.key } };
}

/** A track has a row. Of the settings that hide it no more is undone than needed: first those that hide it alone, then that only active tracks are shown, then
 * that the filter hides rows. A filter that excludes them is also the one of the analyses, and stays. */
function trackOpened(state: State, id: string): State {
  const { layout, catalogue } = state;
  const track = catalogue.tracks.find((one) => one.id === id);
  const hasRow = (one: State): boolean => one.rows.some((row) => row.track?.id === id);
  if (track === undefined || hasRow(state)) {
    return state;
  }
  const shown = withShown(layout, [track], true, catalogue.tracks);
  const folded = layout.folded.filter((group) => group !== track.group);
  let next = withLayout(state, { ...shown, folded });
  if (!hasRow(next) && layout.active) {
    next = withLayout(next, { ...next.layout, active: false });
  }
  return hasRow(next) || next.filter.mode !== "hide" ? next : withFilter(next, { ...next.filter, mode: "dim" });
}

/** The known tracks without activity; `null`: the page does not ask any more. Tracks that are not known to be `busy` either stay as they are, hidden or
 * shown, until it is known: a window that moves makes no row flicker. `busy` is `null`: of all tracks it is known. */
export function withIdle(state: State, known: ReadonlySet<number> | null, busy: ReadonlySet<number> | null = null): State {
  const before = state.idle;
  const unsure = known === null || busy === null ? [] : [...(before ?? [])].filter((track) => !known.has(track) && !busy.has(track)).sort((one, other) => one - other);
  const idle = known === null || unsure.length === 0 ? known : new Set([...known, ...unsure]);
  const isSame = before === idle || (before !== null && idle !== null && before.size === idle.size && [...idle].every((track) => before.has(track)));
  const isSureSame = unsure.length === state.unsure.length && unsure.every((track, index) => track === state.unsure[index]);
  if (isSame) {
    return isSureSame ? state : { ...state, unsure };
  }
  const rows = state.layout.active ? rowsOf(state.catalogue, state.layout, state.filter, idle) : state.rows;
  return anchored(state, { ...state, idle, unsure, rows });
}
