// The state of a page, and how it changes. Every function takes a state and returns another one.

import { EMPTY_CATALOGUE, type Catalogue, type Status, type Track } from "../model/catalogue.ts";
import { dayText, type Clock, type TimeStyle } from "../model/clock.ts";
import { PLAIN_CURVES, lanesOf, toggledCurve, type Curves } from "../model/curves.ts";
import { PLAIN_FILTER, type Filter } from "../model/filter.ts";
import { NO_FINDINGS, type Findings } from "../model/findings.ts";
import type { Fault, FaultKind } from "../model/fault.ts";
import { FIRST_FOLLOW, FOLLOW_SPAN, followHeard, followMoved, leadsAlong, windowAt, type Follow } from "../model/follow.ts";
import { sameItem, type Item } from "../model/items.ts";
import { PLAIN_LENS, type Lens } from "../model/lens.ts";
import type { Listed } from "../model/listed.ts";
import { isRecording } from "../model/live.ts";
import type { Colouring, Theme } from "../model/palette.ts";
import { PLAIN_PANELS, openedPanel, type Panels } from "../model/panels.ts";
import { PLAIN_LAYOUT, shownTest, withShown, type Layout } from "../model/layout.ts";
import { pinnedTest, withPinned } from "../model/pins.ts";
import { heightOf, rowsOf, toggled, type Row } from "../model/rows.ts";
import type { Recording, Sample } from "../model/recording.ts";
import { fixedHeight, rowsOnScreen } from "../model/screen.ts";
import type { Selection } from "../model/selection.ts";
import type { TraceNote } from "../model/traces.ts";
import type { Seen } from "../model/url.ts";
import { clamp, everything, type Extent, type Viewport } from "../model/viewport.ts";
import { cssPx, devicePixels, type CssPx, type Px } from "../units/screen.ts";
import { nanos, type Nanos } from "../units/time.ts";

/** Where the pointer is. */
export interface Cursor {
  readonly time: Nanos;
  /** The key of the row below it, if there is one. */
  readonly row: string | null;
}

/** The edge to which a drag of a selection has snapped. */
export interface Snapped {
  /** `null`: to none. */
  readonly time: Nanos | null;
  /** The row that has it; `null`: all rows. */
  readonly row: string | null;
  /** The user does not want it to snap. */
  readonly isOff: boolean;
}

/** How large the timeline is. */
export interface Size {
  readonly width: CssPx;
  readonly height: CssPx;
  /** Device pixels of a CSS pixel. */
  readonly ratio: number;
}

export interface State {
  /** Whether the server is heard. */
  readonly connection: "asking" | "heard" | "lost" | "refused";
  readonly fault: Fault | null;
  readonly traces: readonly TraceNote[];
  readonly status: Status | null;
  /** The session that records the traces, and how many events it had when; `null`: there is none. */
  readonly recording: Recording | null;
  readonly rates: readonly Sample[];
  /** The problems of the traces, as far as they are known. */
  readonly findings: Findings;
  readonly catalogue: Catalogue;
  /** The server has said which tracks there are. */
  readonly isCatalogued: boolean;
  /** Values with lower numbers are shown somewhere: the catalog is asked for those that it lacks. */
  readonly namesWanted: number;
  /** Rows of the catalog in the layout. */
  readonly rows: readonly Row[];
  /** `null` until the server says from when to when the traces go. */
  readonly view: Viewport | null;
  /** Whether it goes along with the end of traces that grow. */
  readonly follow: Follow;
  /** Until when there are tiles for a window that goes along: no further does it go by itself. `null`: not known yet. */
  readonly drawn: Nanos | null;
  /** Windows that were seen before, the latest last, and those that were gone back from. */
  readonly past: readonly Viewport[];
  readonly future: readonly Viewport[];
  readonly selection: Selection | null;
  /** The picked item, and from when to when it is, once that is known. */
  readonly item: Item | null;
  readonly itemExtent: Extent | null;
  /** Whether arrows are drawn between rows. */
  readonly arrows: boolean;
  /** The things that have colors of their own where CPUs run threads. */
  readonly colouring: Colouring;
  /** Whether the legend of colors is shown. */
  readonly legend: boolean;
  readonly cursor: Cursor | null;
  /** While a selection is drawn. */
  readonly snapped: Snapped | null;
  /** When the list of events is: a line on the timeline. */
  readonly mark: Nanos | null;
  readonly layout: Layout;
  /** The filter of the traces; `questionOf` makes the server's parameters of it. */
  readonly filter: Filter;
  /** Tracks in which nothing happens in the window, as far as that is known; `null` while the page does not ask. */
  readonly idle: ReadonlySet<number> | null;
  /** Those of them of which it is not known for this window: they are not shown because they were not. */
  readonly unsure: readonly number[];
  readonly panels: Panels;
  /** The choices of Statistics and Latency. */
  readonly lens: Lens;
  /** Which counters are drawn as curves. */
  readonly curves: Curves;
  readonly scroll: number;
  /** As far down the URL wants the rows to be, until there are so many. */
  readonly scrollWish: number | null;
  readonly size: Size;
  readonly timeStyle: TimeStyle;
  readonly zone: string;
  readonly theme: Theme;
  readonly help: boolean;
  /** Goes up whenever there are tiles that were not there before. */
  readonly arrivals: number;
  /** Whether all tiles of the window are there. */
  readonly complete: boolean;
  /** Of some events that the filter means it is not read yet where they are. */
  readonly isFiltering: boolean;
}

/** The tab of the lower panel that draws counters as curves. */
export const CURVES_TAB = "counters";
/** As many windows one can go back. */
export const PAST_MAX = 100;

export const FIRST_STATE: State = {
  connection: "asking",
  fault: null,
  traces: [],
  status: null,
  recording: null,
  rates: [],
  findings: NO_FINDINGS,
  catalogue: EMPTY_CATALOGUE,
  isCatalogued: false,
  namesWanted: 0,
  rows: [],
  view: null,
  follow: FIRST_FOLLOW,
  drawn: null,
  past: [],
  future: [],
  selection: null,
  item: null,
  itemExtent: null,
  arrows: true,
  colouring: "thread",
  legend: false,
  cursor: null,
  snapped: null,
  mark: null,
  layout: PLAIN_LAYOUT,
  filter: PLAIN_FILTER,
  idle: null,
  unsure: [],
  panels: PLAIN_PANELS,
  lens: PLAIN_LENS,
  curves: PLAIN_CURVES,
  scroll: 0,
  scrollWish: null,
  size: { width: cssPx(0), height: cssPx(0), ratio: 1 },
  timeStyle: "relative",
  zone: "UTC",
  theme: "light",
  help: false,
  arrivals: 0,
  complete: false,
  isFiltering: false,
};

/** The state of a page that a URL leads to. */
export function opened({ listed: _, follow: span, ...seen }: Seen, zone: string, theme: Theme): State {
  return { ...FIRST_STATE, ...seen, follow: { ...FIRST_FOLLOW, span }, scrollWish: seen.scroll > 0 ? seen.scroll : null, zone, theme };
}

/** The page shows the view of another URL, as if it were opened there. */
export function reopened(state: State, seen: Seen): State {
  const { selection, item, mark, arrows, colouring, legend, panels, lens, curves, timeStyle } = seen;
  const itemExtent = sameItem(item, state.item) ? state.itemExtent : null;
  const filter = { ...seen.filter, names: state.filter.names };
  const next = { ...withLayout({ ...state, filter }, seen.layout), selection, item, itemExtent, mark, arrows, colouring, legend, panels, lens, curves, timeStyle, scrollWish: null };
  return placed(scrolledTo(next, seen.scroll), seen);
}

/** The page shows the place of a URL that it has shown before: when, and which rows. All else stays as it is. */
export function returned(state: State, seen: Seen): State {
  const { selection, item, mark } = seen;
  const itemExtent = sameItem(item, state.item) ? state.itemExtent : null;
  return placed(scrolledTo({ ...state, selection, item, itemExtent, mark, scrollWish: null }, seen.scroll), seen);
}

/** The window is that of a URL. */
function placed(state: State, { view, follow }: Seen): State {
  const { status } = state;
  if (status === null) {
    return { ...state, view, follow: { ...FIRST_FOLLOW, span: follow } };
  }
  const plain = isRecording(status) ? windowAt(status.extent, status.extent.end, follow, widthOf(state)) : everything(status.extent);
  const gone = wentTo(state, view ?? plain);
  return view === null && isRecording(status) ? { ...gone, follow: { isOn: true, span: follow, left: null } } : gone;
}

/** Whether the window has become another one by a jump, from which one can go back. */
export function hasJumped(before: State, now: State): boolean {
  return before.past !== now.past && before.view !== null && now.view !== null && !sameWindow(before.view, now.view);
}

/** The view for the URL; the caller gives the state of the list of events. */
export function seenIn(state: State, listed: Listed): Seen {
  const { status, view, follow, selection, item, mark, arrows, colouring, legend, layout, filter, panels, lens, curves, timeStyle } = state;
  const scroll = state.scrollWish ?? state.scroll;
  // A window that goes along, or that shows all of traces that do not grow, is not one that the user has chosen.
  const all = status !== null && view !== null && !isRecording(status) && sameWindow(view, everything(status.extent));
  return { view: all || follow.isOn ? null : view, follow: follow.isOn ? follow.span : FOLLOW_SPAN, selection, item, mark, arrows, colouring, legend, layout, filter, panels, lens, listed, curves, scroll, timeStyle };
}

/** The server has said how far it is. */
export function withStatus(state: State, status: Status): State {
  const before = state.status;
  const seesAll = before !== null && state.view !== null && sameWindow(state.view, everything(before.extent));
  const follow = followHeard(state.follow, before, status, seesAll ? null : state.view);
  const heard: State = { ...state, status: counted(before, status), follow, connection: "heard", fault: null };
  if (state.view === null) {
    return { ...heard, view: follow.isOn ? windowAt(status.extent, status.extent.end, follow.span, widthOf(state)) : everything(status.extent) };
  }
  // A window that shows everything goes on showing everything while the traces grow; while they are recorded, the window goes there in small steps.
  const isLive = (status.live ?? before?.live ?? null) !== null;
  const view = seesAll && !isLive ? everything(status.extent) : clamp(state.view, status.extent);
  return { ...heard, view: sameWindow(view, state.view) ? state.view : view };
}

/** While traces are recorded, the events of the last moments are not counted: those that were counted before are some of them. */
function counted(before: Status | null, status: Status): Status {
  const isCounted = status.events !== null || !isRecording(status) || before?.instance !== status.instance;
  return isCounted ? status : { ...status, events: before?.events ?? null };
}

/** All tiles are there that a window needs which ends so late. */
export function drawnTo(state: State, end: Nanos): State {
  return state.drawn !== null && state.drawn >= end ? state : { ...state, drawn: end };
}

export function withCatalogue(state: State, catalogue: Catalogue): State {
  const isSame = catalogue.tracks === state.catalogue.tracks;
  if (isSame && catalogue.values === state.catalogue.values && state.isCatalogued) {
    return state;
  }
  const next = { ...state, catalogue, isCatalogued: true };
  return isSame ? next : wishReached(anchoredAnywhere(state, { ...next, rows: rowsOf(catalogue, state.layout, state.filter, state.idle) }));
}

/** Values with numbers below one are shown. */
export function withNamesWanted(state: State, below: number): State {
  return below <= state.namesWanted ? state : { ...state, namesWanted: below };
}

/** The row below the pointer stays where it is on the screen, though there are other rows above it; without one, the first row that scrolls, if any is
 * scrolled away. As far as there are rows enough. */
export function anchored(before: State, next: State): State {
  const there = anchoredAnywhere(before, next);
  return scrolledTo(there, there.scroll);
}

/** The same, though there may be no such place yet. */
function anchoredAnywhere(before: State, next: State): State {
  const same = before.scrollWish === null ? anchorOf(before, next) : null;
  return same === null ? next : { ...next, scroll: before.scroll + same.now.top - same.was.top };
}

function anchorOf(before: State, next: State): { readonly was: Row; readonly now: Row } | null {
  const [fixedBefore, fixed] = [fixedHeight(before), fixedHeight(next)];
  const inBoth = (was: Row | undefined): { was: Row; now: Row } | null => {
    const now = was === undefined || was.top < fixedBefore ? undefined : next.rows.find((row) => row.key === was.key);
    return was === undefined || now === undefined || now.top < fixed ? null : { was, now };
  };
  const pointed = before.cursor?.row ?? null;
  const found = pointed === null ? null : inBoth(before.rows.find((row) => row.key === pointed));
  if (found !== null || before.scroll <= 0) {
    return found;
  }
  for (const row of rowsOnScreen(before).rolled) {
    const kept = inBoth(row);
    if (kept !== null) {
      return kept;
    }
  }
  return null;
}

/** The rows are as far down as they were, or as the URL wants them to be, as far as they reach. While traces are read, there may be more. */
function wishReached(state: State): State {
  const { scrollWish: wish, rows, status } = state;
  const there = scrolledTo(state, wish ?? state.scroll);
  const isOver = rows.length > 0 && (there.scroll === wish || status?.state === "complete");
  return { ...there, scrollWish: isOver ? null : wish };
}

export function withLayout(state: State, layout: Layout): State {
  return anchored(state, { ...state, layout, rows: rowsOf(state.catalogue, layout, state.filter, state.idle) });
}

export function withPanels(state: State, panels: Panels): State {
  return panels === state.panels ? state : { ...state, panels };
}

/** Pins a track with its parts on top, or takes it from there. */
export function togglePin(state: State, id: string): State {
  const { layout, catalogue } = state;
  const track = catalogue.tracks.find((one) => one.id === id);
  return track === undefined ? state : withLayout(state, withPinned(layout, [track], !pinnedTest(layout, catalogue.tracks)(track), catalogue.tracks));
}

export function toggleHide(state: State, id: string): State {
  const track = state.catalogue.tracks.find((one) => one.id === id);
  const { layout, catalogue } = state;
  return track === undefined ? state : withLayout(state, withShown(layout, [track], !shownTest(layout)(track), catalogue.tracks));
}

export function toggleFold(state: State, group: string): State {
  return withLayout(state, { ...state.layout, folded: toggled(state.layout.folded, group) });
}

export function withCurves(state: State, curves: Curves): State {
  return { ...state, curves };
}

/** Draws a counter as a curve, and shows that; or draws it so no more. */
export function toggleCurve(state: State, id: string): State {
  const curves = toggledCurve(state.curves, id);
  return { ...state, curves, panels: curves.tracks.includes(id) ? openedPanel(state.panels, "drawer", CURVES_TAB) : state.panels };
}

/** The counters that are on the screen as curves. */
export function curvesSeen({ panels, curves, catalogue }: State): readonly Track[] {
  const { isOpen, tab } = panels.drawer;
  return isOpen && tab === CURVES_TAB ? lanesOf(curves, catalogue.tracks).flatMap((lane) => lane.curves.map(({ track }) => track)) : [];
}

/** The other things have colors of their own. */
export function recoloured(state: State): State {
  return { ...state, colouring: state.colouring === "thread" ? "application" : "thread" };
}

/** Tiles have come, so the server answers again. */
export function withTiles(state: State, complete: boolean, isFiltering = false): State {
  return { ...state, arrivals: state.arrivals + 1, complete, isFiltering, fault: state.connection === "heard" ? null : state.fault };
}

/** A fault has happened; the screen keeps its content. */
export function withFault(state: State, fault: Fault): State {
  return { ...state, fault, connection: CONNECTIONS[fault.kind] ?? state.connection };
}

/** The server answers again, before it has said anything of traces. */
export function unfaulted(state: State): State {
  return state.fault === null ? state : { ...state, fault: null, connection: "asking" };
}

/** The state of the connection that a fault implies. */
const CONNECTIONS: Partial<Record<FaultKind, State["connection"]>> = { unreachable: "lost", token: "refused" };

/** The window moves a little, as part of a longer move. */
export function moved(state: State, view: Viewport): State {
  if (state.status === null) {
    return state;
  }
  const next = clamp(view, state.status.extent);
  if (state.view !== null && (sameWindow(next, state.view) || leadsAlong(state.follow, state.status, state.view, next))) {
    return state;
  }
  return { ...state, view: next, follow: followMoved(state.follow, state.status, next) };
}

/** The window becomes another one, from which one can go back. */
export function wentTo(state: State, view: Viewport): State {
  const next = moved(state, view);
  if (next === state || state.view === null) {
    return next;
  }
  return { ...next, past: [...state.past, state.view].slice(-PAST_MAX), future: [] };
}

/** A time is marked, and in the window: in its middle if it was not in it before. */
export function markShown(state: State, mark: Nanos): State {
  const { view } = state;
  const marked = state.mark === mark ? state : { ...state, mark };
  if (view === null || (mark >= view.begin && mark < view.begin + view.span)) {
    return marked;
  }
  const there: Viewport = { begin: nanos(mark - view.span / 2n), span: view.span };
  const isNear = mark >= view.begin - view.span && mark < view.begin + 2n * view.span;
  return isNear ? moved(marked, there) : wentTo(marked, there);
}

export function wentBack(state: State): State {
  const back = state.past.at(-1);
  if (back === undefined || state.view === null) {
    return state;
  }
  return { ...moved(state, back), past: state.past.slice(0, -1), future: [...state.future, state.view] };
}

export function wentForward(state: State): State {
  const next = state.future.at(-1);
  if (next === undefined || state.view === null) {
    return state;
  }
  return { ...moved(state, next), past: [...state.past, state.view], future: state.future.slice(0, -1) };
}

export function scrolledTo(state: State, scroll: number): State {
  const most = Math.max(0, heightOf(state.rows) - state.size.height);
  // Rows that the URL speaks of may not be there yet.
  const next = state.rows.length === 0 ? scroll : Math.min(Math.max(0, scroll), most);
  return next === state.scroll ? state : { ...state, scroll: next, scrollWish: null };
}

/** The rows move by so many CSS pixels, if there are any. */
export function scrolledBy(state: State, by: number): State {
  return state.rows.length === 0 ? state : scrolledTo(state, state.scroll + by);
}

export function resized(state: State, size: Size): State {
  return scrolledTo({ ...state, size }, state.scroll);
}

/** How wide the timeline is. */
export function widthOf(state: Pick<State, "size">): Px {
  return devicePixels(state.size.width, state.size.ratio);
}

/** The clock for writing times. */
export function clockOf(state: State): Clock {
  const { status, timeStyle, zone } = state;
  const clock: Clock = { origin: status?.extent.begin ?? nanos(0), unix: status?.unix ?? false, zone, style: timeStyle };
  return status !== null && timeStyle === "absolute" && dayText(clock, status.extent.begin) !== dayText(clock, status.extent.end) ? { ...clock, days: true } : clock;
}

export function sameWindow(one: Viewport, other: Viewport): boolean {
  return one.begin === other.begin && one.span === other.span;
}
