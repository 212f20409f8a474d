// The strip that shows all of the traces. Its frame is the window: drag it, drag outside of it to draw another one, turn the wheel.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { densityOf } from "../model/density.ts";
import { isRecording } from "../model/live.ts";
import { overviewRange, overviewTracks } from "../model/overview.ts";
import { everything, pan, timeAt, windowBetween, type Viewport } from "../model/viewport.ts";
import { drawOverview } from "../draw/overview.ts";
import { zoomed } from "../state/live.ts";
import { moved, wentTo, type State } from "../state/viewer.ts";
import { cssPx, devicePixels, px, type Px } from "../units/screen.ts";
import { minus, type Nanos } from "../units/time.ts";
import { BoardMaker, useDrawing, useSize, type CanvasSize } from "./canvas.ts";
import { OverviewNotes } from "./notes/flags.tsx";
import type { Page } from "./page.ts";
import { wheelFactor } from "./wheel.ts";

/** The act of a drag: it moves the window, or draws another one. */
interface Drag {
  readonly begin: Nanos;
  readonly window: Viewport;
  readonly moves: boolean;
  /** It has changed the window, so that one can go back to the one before. */
  went: boolean;
}

const NO_SIZE: CanvasSize = { width: cssPx(0), height: cssPx(0), ratio: 1 };

export function Overview({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const maker = useRef(new BoardMaker());
  const size = useRef(NO_SIZE);
  const drag = useRef<Drag | null>(null);
  const draw = (state: State): void => drawOn(page, state, canvas.current, maker.current, size.current);
  useSize(box, (next) => {
    size.current = next;
    draw(store.state);
  });
  useDrawing(store, ({ findings, status, view, selection, mark, theme, arrivals, catalogue }) => [findings, status, view, selection, mark, theme, arrivals, catalogue, size.current], draw);
  const letGo = (): void => {
    drag.current = null;
  };
  const at = (event: PointerEvent | WheelEvent): Nanos | null => timeOf(store.state, event, canvas.current);

  return (
    <div class="overview" ref={box}>
      <canvas
        ref={canvas}
        aria-label="All of the traces; the frame is the window"
        role="img"
        onPointerDown={(event) => {
          const [time, { view }] = [at(event), store.state];
          if (time !== null && view !== null && event.button === 0) {
            canvas.current?.setPointerCapture(event.pointerId);
            const inside = time >= view.begin && time < view.begin + view.span;
            // A window that shows everything has no outside: then another one is drawn.
            drag.current = { begin: time, window: view, moves: inside && !showsAll(store.state), went: false };
          }
        }}
        onPointerMove={(event) => {
          const [time, held] = [at(event), drag.current];
          if (time !== null && held !== null) {
            const next = held.moves ? pan(held.window, minus(time, held.begin)) : windowBetween(held.begin, time);
            if (held.moves || next.span > 0n) {
              const before = store.state.view;
              store.update((state) => (held.went ? moved(state, next) : wentTo(state, next)));
              held.went ||= store.state.view !== before;
            }
          }
        }}
        onPointerUp={letGo}
        onPointerCancel={letGo}
        onLostPointerCapture={letGo}
        onDblClick={() => store.update((state) => (state.status === null ? state : wentTo(state, everything(state.status.extent))))}
        onWheel={(event) => {
          event.preventDefault();
          const time = at(event);
          store.update((state) => (time === null ? state : zoomed(state, time, wheelFactor(event))));
        }}
      />
      <OverviewNotes page={page} />
    </div>
  );
}

function showsAll({ status, view }: State): boolean {
  return status !== null && view !== null && view.span >= everything(status.extent).span;
}

function timeOf(state: State, event: MouseEvent, canvas: HTMLCanvasElement | null): Nanos | null {
  if (state.status === null || canvas === null) {
    return null;
  }
  const box = canvas.getBoundingClientRect();
  const x = px(((event.clientX - box.left) * canvas.width) / Math.max(1, box.width));
  return timeAt(everything(state.status.extent), x, px(canvas.width));
}

function drawOn(page: Page, state: State, canvas: HTMLCanvasElement | null, maker: BoardMaker, size: CanvasSize): void {
  const { status, view } = state;
  if (status === null || view === null) {
    return;
  }
  const board = maker.prepare(canvas, size, state.theme);
  if (board === null) {
    return;
  }
  const width: Px = devicePixels(size.width, size.ratio);
  const frame = { view: everything(status.extent), width, origin: status.extent.begin };
  // Tiles of the strip are as fine as the timeline is wide, so that both ask for the same.
  const range = overviewRange(status, devicePixels(state.size.width, state.size.ratio));
  const pieces = overviewTracks(state.catalogue).map((track) => page.tiles.pieces(range, track.number));
  const { ratio } = size;
  drawOverview(board.pen, board.tools, board.sheet, {
    frame,
    height: board.height,
    ratio,
    theme: state.theme,
    density: densityOf(frame, pieces),
    losses: state.findings.losses,
    view,
    selection: state.selection,
    mark: state.mark,
    isGrowing: isRecording(status),
  });
}
