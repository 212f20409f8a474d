// The tab of counters: those that were chosen as curves with axes. Their time is that of the timeline, pixel for pixel below it, so that the
// cursor, the selection and the zoom of one of them are those of the other.

import type { CanvasHTMLAttributes, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { curveColour, drawCurves } from "../../draw/curves.ts";
import { timeText, digitsFor } from "../../model/clock.ts";
import { CURVES_MAX, countersOf, lanesOf, nextChange, toggledCurve, type Curve } from "../../model/curves.ts";
import { css } from "../../model/palette.ts";
import { nameOf } from "../../model/rows.ts";
import { ticks } from "../../model/ruler.ts";
import { endOf, pan, windowBetween, zoom } from "../../model/viewport.ts";
import { zoomed } from "../../state/live.ts";
import { clockOf, moved, toggleCurve, widthOf, withCurves, type State } from "../../state/viewer.ts";
import { cssPx, px } from "../../units/screen.ts";
import { nanos, type Nanos } from "../../units/time.ts";
import { BoardMaker, useDrawing, useSize, type CanvasSize } from "../canvas.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { plainEdge, unsnapped } from "../selecting.tsx";
import { CursorLine, DRAG_MIN_PX, TICKS_APART, dragged, timeOf, timeOfPixels } from "../timeline.tsx";
import { wheelFactor, wheelPixels } from "../wheel.ts";
import { numberAt, piecesOf } from "../words.ts";
import "./curves.css";

export function CurvesTab({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [curves, catalogue, isCatalogued] = usePick(store, (state) => [state.curves, state.catalogue, state.isCatalogued] as const);
  const all = countersOf(catalogue.tracks);
  const chosen = lanesOf(curves, catalogue.tracks).flatMap((lane) => lane.curves);
  if (all.length === 0) {
    const none = "No event of these traces is a counter. Programs have some where they call KYMO_COUNTER; of others, `kymo view --roles FILE` or `--own FILE` says which events are.";
    return <p class="hint curves-empty">{isCatalogued ? none : "The traces are being opened. This takes a moment."}</p>;
  }
  return (
    <div class="curves">
      <Legend page={page} chosen={chosen} />
      {chosen.length === 0 ? <p class="hint curves-empty">Choose a counter at the left, or on its row: Y draws the one below the pointer.</p> : <Plot page={page} />}
    </div>
  );
}

/** As wide as the column left of the timeline: names of rows, and the panel beside them. */
function Legend({ page, chosen }: { readonly page: Page; readonly chosen: readonly Curve[] }): JSX.Element {
  const { store } = page;
  const [curves, catalogue, theme] = usePick(store, (state) => [state.curves, state.catalogue, state.theme, state.cursor, state.view, state.arrivals, state.panels] as const);
  const open = countersOf(catalogue.tracks).filter((track) => !curves.tracks.includes(track.id));
  const groups = [...new Set(open.map((track) => track.group))];
  const isFull = curves.tracks.length >= CURVES_MAX;
  return (
    <div class="curve-legend">
      <select
        data-focus=""
        aria-label="Add a counter"
        value=""
        disabled={open.length === 0 || isFull}
        onChange={(event) => {
          const id = event.currentTarget.value;
          event.currentTarget.value = "";
          store.update((state) => withCurves(state, toggledCurve(state.curves, id)));
        }}
      >
        <option value="">{isFull ? `No more than ${CURVES_MAX}` : "Add a counter…"}</option>
        {groups.map((group) => (
          <optgroup key={group} label={group}>
            {open.filter((track) => track.group === group).map((track) => (
              <option key={track.id} value={track.id}>
                {nameOf(track)}
                {track.process === null ? "" : ` (${track.process})`}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
      {chosen.length < 2 ? null : (
        <label title="What counts the same shares an axis otherwise">
          <input type="checkbox" checked={curves.apart} onChange={(event) => store.update((state) => withCurves(state, { ...state.curves, apart: event.currentTarget.checked }))} /> own axis each
        </label>
      )}
      <ul aria-label="Curves">
        {chosen.map(({ track, colour }) => (
          <li key={track.id} title={track.id}>
            <span class="curve-swatch" style={{ background: css(curveColour(theme, colour)) }} aria-hidden="true" />
            <span class="curve-name">{nameOf(track)}</span>
            <span class="curve-value">{numberAt(page, store.state, track, store.state.cursor?.time ?? null)}</span>
            <button type="button" class="plain curve-off" aria-label={`No curve of ${nameOf(track)}`} title="Draw it no more" onClick={() => store.update((state) => toggleCurve(state, track.id))}>
              ×
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

const NO_SIZE: CanvasSize = { width: cssPx(0), height: cssPx(0), ratio: 1 };

function Plot({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const maker = useRef(new BoardMaker());
  const size = useRef(NO_SIZE);
  const anchor = useRef<Nanos | null>(null);
  const [aloud, readAloud] = useState("");
  const [names, width] = usePick(store, (state) => [drawnCurves(state).map(({ track }) => nameOf(track)).join(", "), state.size.width] as const);
  const draw = (state: State): void => drawOn(page, state, canvas.current, maker.current, size.current);
  useSize(box, (next) => {
    size.current = next;
    place(box.current);
    draw(store.state);
  });
  useDrawing(store, drawnParts, (state) => {
    place(box.current);
    draw(state);
  });
  return (
    <div class="curve-plot" ref={box} style={{ width: `${width}px` }}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={`Curves of ${names} in the window. Arrows go from change to change, with Shift they select.`}
        onKeyDown={(event) => {
          const words = press(page, event, anchor);
          if (words !== null) {
            readAloud(words);
          }
        }}
        {...gestures(page)}
      />
      <CursorLine page={page} />
      <p class="unseen" role="status">
        {aloud}
      </p>
    </div>
  );
}

function drawnParts(state: State): readonly unknown[] {
  const { status, view, size, theme, arrivals, catalogue, selection, mark, timeStyle, curves, panels } = state;
  return [status, view, size, theme, arrivals, catalogue, selection, mark, timeStyle, curves, panels];
}

function drawnCurves({ curves, catalogue }: State): readonly Curve[] {
  return lanesOf(curves, catalogue.tracks).flatMap((lane) => lane.curves);
}

/** Puts the plot below the timeline: the panel at the left of it may be open or closed, wide or narrow. */
function place(plot: HTMLElement | null): void {
  const [row, timeline] = [plot?.parentElement ?? null, document.querySelector(".timeline .area")];
  if (row !== null && timeline !== null) {
    const left = timeline.getBoundingClientRect().left - row.getBoundingClientRect().left;
    row.style.setProperty("--curves-left", `${Math.max(0, left)}px`);
  }
}

function drawOn(page: Page, state: State, canvas: HTMLCanvasElement | null, maker: BoardMaker, size: CanvasSize): void {
  const { status, view, theme } = state;
  if (status === null || view === null) {
    return;
  }
  // As many pixels as the timeline has, so that its tiles are those that are here.
  const board = maker.prepare(canvas, { ...size, width: state.size.width, ratio: state.size.ratio }, theme);
  if (board === null) {
    return;
  }
  const width = widthOf(state);
  const lanes = lanesOf(state.curves, state.catalogue.tracks).map(({ unit, curves }) => ({
    unit,
    curves: curves.map(({ track, colour }) => ({ colour, pieces: piecesOf(page, state, track) })),
  }));
  drawCurves(board.pen, board.tools, {
    frame: { view, width, origin: status.extent.begin },
    height: board.height,
    ratio: state.size.ratio,
    theme,
    ticks: ticks(view, width, px(TICKS_APART * state.size.ratio), clockOf(state)),
    lanes,
    selection: state.selection,
    mark: state.mark,
  });
}

/** Arrows lead from change to change; returns the values there, in words, or `null` where the key means something else. */
function press(page: Page, event: KeyboardEvent, anchor: { current: Nanos | null }): string | null {
  const { store } = page;
  const { status, view, cursor } = store.state;
  const direction = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : null;
  if (direction === null || event.altKey || event.ctrlKey || event.metaKey || status === null || view === null) {
    return null;
  }
  event.preventDefault();
  event.stopPropagation();
  const now = cursor?.time ?? nanos(view.begin + view.span / 2n);
  const curves = drawnCurves(store.state);
  const next = nextChange(curves.flatMap(({ track }) => piecesOf(page, store.state, track)), status.extent.begin, now, direction);
  if (next === null) {
    return direction === 1 ? "Nothing changes behind it, as far as is known here." : "Nothing changes before it, as far as is known here.";
  }
  anchor.current = event.shiftKey ? (anchor.current ?? now) : null;
  const from = anchor.current;
  store.update((state) => {
    const isSeen = next >= view.begin && next < endOf(view);
    const there = isSeen ? state : moved(state, { begin: nanos(next - view.span / 2n), span: view.span });
    const selection = from === null ? state.selection : windowBetween(from, next);
    return { ...there, selection, cursor: { time: next, row: null } };
  });
  const { state } = store;
  const step = nanos(view.span / BigInt(Math.max(1, Math.round(widthOf(state)))));
  const values = curves.map(({ track }) => `${nameOf(track)} ${numberAt(page, state, track, next)}`);
  return `${timeText(clockOf(state), next, digitsFor(step))}: ${values.join(", ")}`;
}

type Handlers = Pick<CanvasHTMLAttributes<HTMLCanvasElement>, "onPointerDown" | "onPointerMove" | "onPointerUp" | "onPointerCancel" | "onPointerLeave" | "onDblClick" | "onWheel">;

/** The pointer does the same here as on the timeline. */
function gestures(page: Page): Handlers {
  const { store } = page;
  return {
    onPointerDown: (event) => {
      const [time, { view }] = [timeOf(store.state, event), store.state];
      if (time !== null && view !== null && event.button <= 1) {
        (event.currentTarget as HTMLCanvasElement).setPointerCapture(event.pointerId);
        page.drag = { begin: time, from: plainEdge(time), x: event.clientX, row: null, window: view, moves: event.button === 1 || event.shiftKey, moved: false };
      }
    },
    onPointerMove: (event) => {
      const { drag } = page;
      if (drag !== null && (drag.moved || Math.abs(event.clientX - drag.x) >= DRAG_MIN_PX)) {
        drag.moved = true;
        dragged(page, event, drag);
      }
      const time = timeOf(store.state, event);
      store.update((state) => ({ ...state, cursor: time === null ? null : { time, row: null } }));
    },
    onPointerUp: (event) => {
      const { drag } = page;
      page.drag = null;
      unsnapped(page);
      if (drag !== null && !drag.moved && !event.shiftKey) {
        store.update((state) => ({ ...state, selection: null }));
        page.events.clicked(drag.begin);
      }
    },
    onPointerCancel: () => {
      page.drag = null;
      unsnapped(page);
    },
    onPointerLeave: () => store.update((state) => ({ ...state, cursor: null })),
    onDblClick: (event) => {
      const time = timeOf(store.state, event);
      store.update((state) => (time === null || state.view === null ? state : moved(state, zoom(state.view, time, 0.25))));
    },
    onWheel: (event) => {
      const { x, y } = wheelPixels(event);
      const time = timeOf(store.state, event);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        store.update((state) => (time === null ? state : zoomed(state, time, wheelFactor(event))));
      } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) {
        event.preventDefault();
        store.update((state) => (state.view === null ? state : moved(state, pan(state.view, timeOfPixels(state, Math.abs(x) > Math.abs(y) ? x : y)))));
      }
    },
  };
}
