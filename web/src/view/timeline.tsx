// The rows of tracks: names on the left, their content on the right, a ruler above.

import type { CanvasHTMLAttributes, JSX, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { drawRuler } from "../draw/ruler.ts";
import { drawTimeline, type Picture } from "../draw/timeline.ts";
import { Looks } from "../draw/looks.ts";
import { valueTest } from "../model/filter-values.ts";
import { isRecording } from "../model/live.ts";
import { heightOf, type Row } from "../model/rows.ts";
import { fixedHeight, rowAt, rowsOnScreen } from "../model/screen.ts";
import { ticks, type Tick } from "../model/ruler.ts";
import { rowsSelected } from "../model/selection.ts";
import { pan, pixelOf, timeAt, windowBetween, zoom, type Viewport } from "../model/viewport.ts";
import { levelFor, tilesIn } from "../model/wanted.ts";
import { pickedOf } from "../state/item.ts";
import { zoomed } from "../state/live.ts";
import { clockOf, moved, resized, scrolledTo, wentTo, widthOf, type State } from "../state/viewer.ts";
import { rowsSized } from "../state/tracks.ts";
import { cssPx, px } from "../units/screen.ts";
import { nanos, type Nanos } from "../units/time.ts";
import { BoardMaker, useDrawing, useSize, type CanvasSize } from "./canvas.ts";
import { usePick } from "./hooks.ts";
import { Labels, NamesEdge } from "./labels.tsx";
import { Legend, LegendSwitch } from "./legend.tsx";
import { RulerNotes } from "./notes/flags.tsx";
import { Notice } from "./notice.tsx";
import { arrowsShown, pickedArrow } from "./item/arrows.ts";
import { ColourSwitch } from "./colour-switch.tsx";
import { ArrowSwitch } from "./item/arrow-switch.tsx";
import { Tooltip } from "./item/tooltip.tsx";
import { pickAt, type Place } from "./item/point.ts";
import type { Page } from "./page.ts";
import { SelectionEdges, SnapMark, edgeAt, refineEdges, snappedTo, unsnapped } from "./selecting.tsx";
import { wheelFactor, wheelPixels } from "./wheel.ts";

const RULER_HEIGHT = cssPx(26);
export const TICKS_APART = 130;
/** A drag that is shorter is a click. */
export const DRAG_MIN_PX = 4;

export function Timeline({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const root = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  painter.current ??= new Painter(page);
  useSize(area, (size) => store.update((state) => resized(state, size)));
  useDrawing(store, drawnParts, (state) => painter.current?.draw(state, canvas.current, ruler.current));
  useScroll(page, scroller, spacer);

  const [names] = usePick(store, (state) => [state.layout.names] as const);
  return (
    <div class="timeline" ref={root} style={names === null ? undefined : { "--labels": `min(${names}px, 60vw)` }}>
      <div class="corner">
        <Corner page={page} />
        <ColourSwitch page={page} />
        <ArrowSwitch page={page} />
        <LegendSwitch page={page} />
      </div>
      <canvas class="ruler" ref={ruler} aria-hidden="true" {...gestures(page)} />
      <RulerNotes page={page} />
      <div class="scroller" ref={scroller}>
        <div class="stage">
          <div class="sticky">
            <Labels page={page} />
            <PinnedEdge page={page} />
            <NamesEdge page={page} timeline={root} />
            <div class="area" ref={area}>
              <canvas ref={canvas} role="img" aria-label="Timeline: the tracks in the window" {...gestures(page)} />
              <CursorLine page={page} />
              <SnapMark page={page} />
              <SelectionEdges page={page} />
              <Notice page={page} />
            </div>
          </div>
          <div class="spacer" ref={spacer} />
        </div>
      </div>
      <Legend page={page} />
      <Tooltip page={page} timeline={root} />
    </div>
  );
}

/** The content of the canvases: when none of it changes, they are not drawn again. */
function drawnParts(state: State): readonly unknown[] {
  const { status, view, rows, scroll, size, theme, arrivals, catalogue, selection, mark, item, itemExtent, arrows, colouring, filter, timeStyle, findings } = state;
  return [filter, findings, status, view, rows, scroll, size, theme, arrivals, catalogue, selection, mark, item, itemExtent, arrows, colouring, timeStyle];
}

/** A line below the pointer: an element, so that moving it draws nothing again. */
export function CursorLine({ page }: { readonly page: Page }): JSX.Element | null {
  const [cursor, view, size] = usePick(page.store, (state) => [state.cursor, state.view, state.size] as const);
  if (cursor === null || view === null) {
    return null;
  }
  const x = pixelOf(view, cursor.time, widthOf(page.store.state)) / size.ratio;
  return <div class="cursor" style={{ transform: `translateX(${x}px)` }} />;
}

/** The line below the pinned rows: what scrolls goes below them. */
function PinnedEdge({ page }: { readonly page: Page }): JSX.Element | null {
  const [fixed, isOn] = usePick(page.store, (state) => [fixedHeight(state), state.scroll > 0] as const);
  return fixed === 0 ? null : <div class={`pinned-edge${isOn ? " over" : ""}`} style={{ top: `${fixed - 1}px` }} />;
}

/** How times are written, above the names. */
function Corner({ page }: { readonly page: Page }): JSX.Element {
  const [status, style] = usePick(page.store, (state) => [state.status, state.timeStyle] as const);
  const unix = status?.unix ?? false;
  return (
    <button
      type="button"
      class="plain"
      title={unix ? "Times since the begin, or of the day (T)" : "The clock of these traces knows no time of day"}
      disabled={!unix}
      onClick={() => page.store.update((state) => ({ ...state, timeStyle: state.timeStyle === "relative" ? "absolute" : "relative" }))}
    >
      {unix && style === "absolute" ? "time of day" : "since begin"}
    </button>
  );
}

/** The browser scrolls the rows, for which the spacer is as high as all of them; the state follows it, and the other way round. */
function useScroll(page: Page, scroller: RefObject<HTMLDivElement | null>, spacer: RefObject<HTMLDivElement | null>): void {
  useEffect(() => {
    const [{ current }, { current: height }] = [scroller, spacer];
    if (current === null || height === null) {
      return undefined;
    }
    const { store } = page;
    // The browser has scrolled before it says so: changes meanwhile, as of the pointer, must not take that back.
    let followed = 0;
    let laid: readonly Row[] | null = null;
    const told = (): void => store.update((state) => scrolledTo(state, current.scrollTop));
    const follow = (): void => {
      const { scroll, rows } = store.state;
      // Before it scrolls, because a browser goes no further than there is something.
      if (rows !== laid) {
        laid = rows;
        height.style.setProperty("height", `${heightOf(rows)}px`);
      }
      if (scroll !== followed && rows.length > 0) {
        followed = scroll;
        if (Math.abs(current.scrollTop - scroll) >= 1) {
          current.scrollTop = scroll;
        }
      }
    };
    current.addEventListener("scroll", told, { passive: true });
    const end = store.subscribe(follow);
    follow();
    return () => {
      current.removeEventListener("scroll", told);
      end();
    };
  }, [page]);
}

type Handlers = Pick<
  CanvasHTMLAttributes<HTMLCanvasElement>,
  "onPointerDown" | "onPointerMove" | "onPointerUp" | "onPointerCancel" | "onLostPointerCapture" | "onPointerLeave" | "onDblClick" | "onWheel"
>;

/** The acts of the pointer on the timeline. */
function gestures(page: Page): Handlers {
  const { store } = page;
  const at = (event: MouseEvent): Nanos | null => timeOf(store.state, event);
  // The browser takes the pointer where it makes a swipe of it.
  const letGo = (): void => {
    page.drag = null;
    unsnapped(page);
  };
  return {
    onPointerDown: (event) => {
      const [time, { view }] = [at(event), store.state];
      if (time === null || view === null || event.button > 1) {
        return;
      }
      event.preventDefault();
      (event.currentTarget as HTMLCanvasElement).setPointerCapture(event.pointerId);
      const moves = event.button === 1 || event.shiftKey || event.pointerType === "touch";
      const row = rowOf(store.state, event);
      page.drag = { begin: time, from: edgeAt(page, event, row, time), x: event.clientX, row, window: view, moves, moved: false };
    },
    onPointerMove: (event) => {
      const { drag } = page;
      if (drag !== null && (drag.moved || Math.abs(event.clientX - drag.x) >= DRAG_MIN_PX)) {
        drag.moved = true;
        dragged(page, event, drag);
      }
      const time = at(event);
      const row = rowOf(store.state, event);
      store.update((state) => ({ ...state, cursor: time === null ? null : { time, row } }));
    },
    onPointerUp: (event) => {
      const { drag } = page;
      page.drag = null;
      if (drag !== null && !drag.moved && !event.shiftKey) {
        store.update((state) => ({ ...state, selection: null }));
        pickAt(page, rowOf(store.state, event), drag.begin, placeIn(event));
        page.events.clicked(drag.begin);
      } else if (drag !== null && drag.moved && !drag.moves) {
        page.picker.tellSelection();
        void refineEdges(page, drag);
      }
      unsnapped(page);
    },
    onPointerCancel: letGo,
    onLostPointerCapture: letGo,
    onPointerLeave: () => store.update((state) => ({ ...state, cursor: null })),
    onDblClick: (event) => {
      const time = at(event);
      store.update((state) => (time === null || state.view === null ? state : wentTo(state, zoom(state.view, time, 0.25))));
    },
    onWheel: (event) => {
      const { x, y } = wheelPixels(event);
      const time = at(event);
      if ((event.ctrlKey || event.metaKey) && event.shiftKey) {
        event.preventDefault();
        // Browsers turn a wheel with Shift sideways.
        store.update((state) => rowsSized(state, y + x < 0 ? 1 : -1));
      } else if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        store.update((state) => (time === null ? state : zoomed(state, time, wheelFactor(event))));
      } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) {
        event.preventDefault();
        const turn = Math.abs(x) > Math.abs(y) ? x : y;
        store.update((state) => (state.view === null ? state : moved(state, pan(state.view, timeOfPixels(state, turn)))));
      }
    },
  };
}

/** The act of a drag from one place to the next. */
export function dragged(page: Page, event: PointerEvent, drag: NonNullable<Page["drag"]>): void {
  const { store } = page;
  if (drag.moves) {
    store.update((state) => moved(state, pan(drag.window, timeOfPixels(state, drag.x - event.clientX))));
    return;
  }
  const time = timeOf(store.state, event);
  const row = drag.row === null ? null : rowOf(store.state, event, true);
  const edge = time === null ? null : edgeAt(page, event, row, time);
  const window: Viewport | null = edge === null ? null : windowBetween(drag.from.time, edge.time);
  if (window !== null && edge !== null && window.span > 0n) {
    drag.to = edge;
    snappedTo(page, event, row, edge);
    store.update((state) => ({ ...state, selection: drag.row === null || row === null ? window : { ...window, rows: { from: drag.row, to: row } } }));
  }
}

/** How long so many CSS pixels are. */
export function timeOfPixels(state: State, pixels: number): Nanos {
  if (state.view === null || state.size.width <= 0) {
    return nanos(0);
  }
  return nanos((state.view.span * BigInt(Math.round(pixels * 64))) / BigInt(Math.max(1, Math.round(state.size.width * 64))));
}

export function timeOf(state: State, event: MouseEvent): Nanos | null {
  if (state.view === null) {
    return null;
  }
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  return timeAt(state.view, px((event.clientX - box.left) * state.size.ratio), widthOf(state));
}

/** Where the pointer is on a canvas with rows, in CSS pixels. */
function placeIn(event: MouseEvent): Place | null {
  const element = event.currentTarget as HTMLElement;
  const box = element.getBoundingClientRect();
  return element.classList.contains("ruler") ? null : { x: cssPx(event.clientX - box.left), y: cssPx(event.clientY - box.top) };
}

/** The row below the pointer, or the nearest one on the screen; the ruler is above all of them. */
function rowOf(state: State, event: MouseEvent, isNearest = false): string | null {
  const element = event.currentTarget as HTMLElement;
  if (element.classList.contains("ruler")) {
    return null;
  }
  const below = event.clientY - element.getBoundingClientRect().top;
  const y = isNearest ? Math.min(Math.max(below, 0), state.size.height - 1, heightOf(state.rows) - state.scroll - 1) : below;
  return rowAt(state, y)?.key ?? null;
}

/** From where to where the rows lie that are selected; `null`: all are, or none. */
function bandOf({ rows, selection }: State): Picture["selectedRows"] {
  const found = selection?.rows === undefined ? [] : rowsSelected(rows, selection);
  const [first, last] = [found[0], found.at(-1)];
  return first === undefined || last === undefined ? null : { top: first.top, bottom: last.top + last.height };
}

/** Draws the canvases of the timeline. */
class Painter {
  private readonly page: Page;
  private readonly board = new BoardMaker();
  private readonly rulerBoard = new BoardMaker();
  private looks: Looks | null = null;
  private lookedAt: readonly unknown[] = [];

  constructor(page: Page) {
    this.page = page;
  }

  draw(state: State, canvas: HTMLCanvasElement | null, ruler: HTMLCanvasElement | null): void {
    const { status, view, size } = state;
    const width = widthOf(state);
    if (status === null || view === null) {
      return;
    }
    const board = this.board.prepare(canvas, size, state.theme);
    if (board === null) {
      return;
    }
    const marks = ticks(view, width, px(TICKS_APART * size.ratio), clockOf(state));
    this.drawRuler(state, ruler, marks);
    const range = tilesIn(view, status.extent, levelFor(view.span, width, status.levels));
    const { fixed, rolled } = rowsOnScreen(state);
    const contents = (rows: readonly Row[]): Picture["rows"] => rows.map((row) => ({ row, pieces: row.track === null ? [] : this.page.tiles.pieces(range, row.track.number) }));
    const picture: Picture = {
      frame: { view, width, origin: status.extent.begin },
      rows: contents(rolled),
      scroll: state.scroll,
      height: board.height,
      ratio: size.ratio,
      looks: this.looksFor(state),
      ticks: marks,
      selection: state.selection,
      selectedRows: bandOf(state),
      picked: pickedOf(state),
      mark: state.mark,
      isGrowing: isRecording(status),
      losses: state.findings.losses,
      arrows: arrowsShown(this.page, state),
      pickedArrow: pickedArrow(this.page, state),
    };
    this.page.picture = picture;
    drawTimeline(board.pen, board.tools, board.sheet, picture);
    const high = Math.round(fixedHeight(state) * size.ratio);
    this.page.pinned = high === 0 ? null : { ...picture, rows: contents(fixed), scroll: 0, height: high };
    if (this.page.pinned !== null) {
      const { pinned } = this.page;
      board.within(high, () => drawTimeline(board.pen, board.tools, board.sheet, pinned));
    }
  }

  private drawRuler(state: State, ruler: HTMLCanvasElement | null, marks: readonly Tick[]): void {
    const size: CanvasSize = { ...state.size, height: RULER_HEIGHT };
    const board = this.rulerBoard.prepare(ruler, size, state.theme);
    if (board !== null) {
      // The rows may have a scroll bar at their side, which the ruler has not.
      ruler?.style.setProperty("width", `${state.size.width}px`);
      const { width, height } = board;
      drawRuler(board.pen, { ticks: marks, width, height, ratio: size.ratio, theme: state.theme });
    }
  }

  /** Looks are made again when something that they depend on is another one. */
  private looksFor({ theme, catalogue, colouring, filter }: State): Looks {
    const parts = [theme, catalogue, colouring, filter.threads, filter.applications, filter.processes, filter.states];
    if (this.looks === null || parts.some((part, index) => part !== this.lookedAt[index])) {
      this.looks = new Looks(theme, catalogue.values, colouring, catalogue.tracks, valueTest(filter, catalogue));
      this.lookedAt = parts;
    }
    return this.looks;
  }
}
