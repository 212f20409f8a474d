// Drawing a selection, and moving its edges: they snap to edges of bars near the pointer, and can be moved by keys.

import type { JSX } from "preact";
import { askEdge } from "../api/items.ts";
import type { Track } from "../model/catalogue.ts";
import { timeText } from "../model/clock.ts";
import type { Row } from "../model/rows.ts";
import { fixedHeight, rowAt, topOnScreen } from "../model/screen.ts";
import { rowsSelected, type Selection } from "../model/selection.ts";
import { restOf, snapAt, snapFrom, type Snap } from "../model/snap.ts";
import { endOf, pixelOf, timeAt, windowBetween, type Extent } from "../model/viewport.ts";
import { pickedOf } from "../state/item.ts";
import { clockOf, widthOf, type State } from "../state/viewer.ts";
import { cssPx, px } from "../units/screen.ts";
import { between, nanos, type Nanos } from "../units/time.ts";
import { usePick } from "./hooks.ts";
import { pickAt } from "./item/point.ts";
import type { Drag, Edge, Page } from "./page.ts";
import { piecesOf } from "./words.ts";

/** An edge as near to the pointer, in CSS pixels, is meant. */
const REACH_CSS_PX = 6;
/** Steps of an edge that is moved by keys, in CSS pixels. */
const STEP_CSS_PX = 1;
const STEP_FAST_CSS_PX = 10;

interface Held {
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
}

/** An end of a selection that is at no bar. */
export function plainEdge(time: Nanos): Edge {
  return { time, snap: null, track: null };
}

/** The end of a selection at a time and row: at the edge of a bar near there, unless the user holds the key against that. */
export function edgeAt(page: Page, held: Held, rowKey: string | null, time: Nanos): Edge {
  const { state } = page.store;
  const { status } = state;
  if (status === null || isFree(held)) {
    return plainEdge(time);
  }
  const picked = pickedOf(state);
  const others = [...(picked === null ? [] : [picked.extent.begin, picked.extent.end]), ...(state.mark === null ? [] : [state.mark])];
  const track = state.rows.find(({ key }) => key === rowKey)?.track ?? null;
  const pieces = track === null ? [] : piecesOf(page, state, track);
  const snap = snapAt(pieces, status.extent.begin, time, nanosOf(state, REACH_CSS_PX), others);
  return snap === null ? plainEdge(time) : { time: snap.time, snap, track };
}

function isFree({ ctrlKey, metaKey }: Held): boolean {
  return ctrlKey || metaKey;
}

/** How long some CSS pixels are. */
function nanosOf({ view, size }: State, pixels: number): Nanos {
  return view === null || size.width <= 0 ? nanos(0) : nanos((view.span * BigInt(Math.round(pixels * 64))) / BigInt(Math.max(1, Math.round(size.width * 64))));
}

/** Shows to which edge a drag has snapped. */
export function snappedTo(page: Page, held: Held, rowKey: string | null, { snap, track }: Edge): void {
  const snapped = { time: snap?.time ?? null, row: track === null ? null : rowKey, isOff: isFree(held) };
  page.store.update((state) => ({ ...state, snapped }));
}

/** The drag is over. */
export function unsnapped(page: Page): void {
  page.store.update((state) => (state.snapped === null ? state : { ...state, snapped: null }));
}

/** Asks when exactly the bars begin to whose edges a selection has snapped, where tiles do not say so, and moves it there if it is still the same. */
export async function refineEdges(page: Page, { from, to }: Pick<Drag, "from" | "to">): Promise<void> {
  const drawn = page.store.state.selection;
  for (const edge of to === undefined ? [from] : [from, to]) {
    const exact = await exactOf(page, edge);
    page.store.update((state) => {
      const { selection } = state;
      const isThere = selection !== null && exact !== null && drawn !== null && (selection.begin === edge.time || endOf(selection) === edge.time);
      return isThere ? { ...state, selection: withEdge(selection, selection.begin === edge.time ? "begin" : "end", exact) } : state;
    });
  }
}

async function exactOf(page: Page, { snap, track }: Edge): Promise<Nanos | null> {
  return snap === null || snap.isExact || track === null ? null : edgeIn(page, track, { begin: snap.time, end: snap.until }, 1, new AbortController().signal);
}

/** The first edge of a bar in a part of the time, or the last one. */
async function edgeIn(page: Page, track: Track, window: Extent, by: 1 | -1, signal: AbortSignal): Promise<Nanos | null> {
  try {
    return await askEdge(page.client, track.number, window, by, signal);
  } catch {
    // The selection stays as exact as the screen.
    return null;
  }
}

type End = "begin" | "end";

function timeOf(selection: Selection, which: End): Nanos {
  return which === "begin" ? selection.begin : endOf(selection);
}

/** The selection with an edge elsewhere; its rows stay. */
function withEdge(selection: Selection, which: End, time: Nanos): Selection {
  const other = which === "begin" ? endOf(selection) : selection.begin;
  const window = windowBetween(other, time);
  return window.span <= 0n ? selection : { ...selection, ...window };
}

/** A mark at the edge to which the drag has snapped. */
export function SnapMark({ page }: { readonly page: Page }): JSX.Element | null {
  const [snapped, view, rows, scroll, size] = usePick(page.store, (state) => [state.snapped, state.view, state.rows, state.scroll, state.size] as const);
  if (snapped === null || snapped.time === null || view === null) {
    return null;
  }
  const row: Row | undefined = rows.find(({ key }) => key === snapped.row);
  const x = pixelOf(view, snapped.time, widthOf(page.store.state)) / size.ratio;
  const place = row === undefined ? {} : { top: `${topOnScreen(row, fixedHeight({ rows, size }), scroll)}px`, height: `${row.height}px` };
  return <div class="snap-mark" style={{ ...place, transform: `translateX(${x}px)` }} />;
}

/** Both edges of the selection: the user moves them with the pointer, or with keys. */
export function SelectionEdges({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [selection, view, size] = usePick(store, (state) => [state.selection, state.view, state.size, state.timeStyle] as const);
  if (selection === null || view === null) {
    return null;
  }
  return (
    <>
      {(["begin", "end"] as const).map((which) => {
        const time = timeOf(selection, which);
        const x = pixelOf(view, time, widthOf(store.state)) / size.ratio;
        return x < 0 || x > size.width ? null : <Handle key={which} page={page} which={which} time={time} x={x} />;
      })}
    </>
  );
}

interface HandleOptions {
  readonly page: Page;
  readonly which: End;
  readonly time: Nanos;
  readonly x: number;
}

function Handle({ page, which, time, x }: HandleOptions): JSX.Element {
  const { store } = page;
  const letGo = (): void => {
    page.drag = null;
    unsnapped(page);
  };
  const areaOf = (element: EventTarget | null): DOMRect => ((element as HTMLElement).closest(".area") as HTMLElement).getBoundingClientRect();
  const placeOf = (event: PointerEvent): { time: Nanos; y: number } => {
    const [{ view, size }, box] = [store.state, areaOf(event.currentTarget)];
    const at = view === null ? time : timeAt(view, px((event.clientX - box.left) * size.ratio), widthOf(store.state));
    return { time: at, y: event.clientY - box.top };
  };
  const move = (to: Nanos): void => store.update((state) => (state.selection === null ? state : { ...state, selection: withEdge(state.selection, which, inTraces(state, to)) }));
  return (
    <div
      class="selection-edge"
      role="slider"
      tabIndex={0}
      aria-label={which === "begin" ? "Begin of the selection" : "End of the selection"}
      aria-orientation="horizontal"
      aria-valuenow={Math.round(x)}
      aria-valuemin={0}
      aria-valuemax={Math.round(store.state.size.width)}
      aria-valuetext={timeText(clockOf(store.state), time, 9)}
      title="Drag; arrow keys move it, with Shift further, with Ctrl to the next edge of a bar"
      style={{ transform: `translateX(${x}px)` }}
      onPointerDown={(event) => {
        const { selection, view } = store.state;
        if (selection === null || view === null || event.button !== 0) {
          return;
        }
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        const other = plainEdge(which === "begin" ? endOf(selection) : selection.begin);
        page.drag = { begin: time, from: other, x: event.clientX, row: null, window: view, moves: false, moved: false };
      }}
      onPointerMove={(event) => {
        const { drag } = page;
        if (drag === null || (!drag.moved && Math.abs(event.clientX - drag.x) < 2)) {
          return;
        }
        drag.moved = true;
        const place = placeOf(event);
        const row = rowKeyAt(store.state, place.y);
        const edge = edgeAt(page, event, row, place.time);
        drag.to = edge;
        snappedTo(page, event, row, edge);
        const window = windowBetween(drag.from.time, inTraces(store.state, edge.time));
        store.update((state) => (state.selection === null || window.span <= 0n ? state : { ...state, selection: { ...state.selection, ...window } }));
      }}
      onPointerUp={(event) => {
        const { drag } = page;
        letGo();
        if (drag !== null && drag.moved) {
          void refineEdges(page, { from: drag.to ?? drag.from });
        } else if (drag !== null) {
          // A click means the thing below.
          const box = areaOf(event.currentTarget);
          const place = placeOf(event);
          pickAt(page, rowKeyAt(store.state, place.y), place.time, { x: cssPx(event.clientX - box.left), y: cssPx(place.y) });
        }
      }}
      onPointerCancel={letGo}
      onLostPointerCapture={letGo}
      onWheel={(event) => {
        // The canvas below zooms and moves; rows scroll by themselves.
        if (event.ctrlKey || event.metaKey || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          event.preventDefault();
        }
        (event.currentTarget as HTMLElement).closest(".area")?.querySelector("canvas")?.dispatchEvent(new WheelEvent("wheel", event));
      }}
      onKeyDown={(event) => {
        const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
        if (by === 0) {
          return;
        }
        event.preventDefault();
        event.stopPropagation();
        if (event.ctrlKey || event.metaKey) {
          toNextEdge(page, which, by);
        } else {
          move(nanos(time + BigInt(by) * atLeastOne(nanosOf(store.state, event.shiftKey ? STEP_FAST_CSS_PX : STEP_CSS_PX))));
        }
      }}
    />
  );
}

function atLeastOne(time: Nanos): Nanos {
  return time < 1n ? nanos(1) : time;
}

function inTraces({ status }: State, time: Nanos): Nanos {
  return status === null ? time : between(time, status.extent.begin, status.extent.end);
}

function rowKeyAt(state: State, y: number): string | null {
  return rowAt(state, y)?.key ?? null;
}

/** The edge goes to the next edge of a bar on the first row that is selected, or on that of the picked item. */
function toNextEdge(page: Page, which: End, by: 1 | -1): void {
  const { state } = page.store;
  const { selection, status, item } = state;
  if (selection === null || status === null) {
    return;
  }
  const selected = selection.rows === undefined ? [] : rowsSelected(state.rows, selection);
  const track = selected.find((row) => row.track !== null)?.track ?? state.catalogue.tracks.find(({ id }) => id === item?.track) ?? null;
  if (track === null) {
    return;
  }
  const [from, pieces] = [timeOf(selection, which), piecesOf(page, state, track)];
  const next = snapFrom(pieces, status.extent.begin, from, by);
  // While the answer to the key before is on its way, as with a key that is held down, the edge goes on from bucket to bucket.
  const isHeld = page.stepping !== null;
  if (isHeld && next === null) {
    return;
  }
  page.stepping?.abort();
  const stepping = new AbortController();
  page.stepping = stepping;
  const rest = isHeld ? null : restOf(pieces, status.extent.begin, from, by);
  void step(page, { which, by, track, from, rest, next }, stepping.signal).finally(() => {
    page.stepping = page.stepping === stepping ? null : page.stepping;
  });
}

interface Step {
  readonly which: End;
  readonly by: 1 | -1;
  readonly track: Track;
  readonly from: Nanos;
  /** The part of a bucket that may have the next edge; else it is this one. */
  readonly rest: Extent | null;
  readonly next: Snap | null;
}

async function step(page: Page, { which, by, track, from, rest, next }: Step, signal: AbortSignal): Promise<void> {
  // The user may have moved it meanwhile.
  const move = (at: Nanos, to: Nanos): void =>
    page.store.update((now) => (now.selection === null || signal.aborted || timeOf(now.selection, which) !== at ? now : { ...now, selection: withEdge(now.selection, which, to) }));
  const near = rest === null ? null : await edgeIn(page, track, rest, by, signal);
  if (near !== null) {
    move(from, near);
  } else if (next !== null) {
    move(from, next.time);
    const exact = next.isExact ? null : await edgeIn(page, track, { begin: next.time, end: next.until }, by, signal);
    move(next.time, exact ?? next.time);
  }
}
