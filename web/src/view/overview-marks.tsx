// What lies on the strip of all traces: the window as a frame, what is outside of it pale, the selection, and where the list of events is. They are
// elements, which the browser moves without painting anything.

import type { JSX, RefObject } from "preact";
import { useRef } from "preact/hooks";
import { overviewMarks } from "../model/overview.ts";
import { everything } from "../model/viewport.ts";
import type { State } from "../state/viewer.ts";
import { devicePixels } from "../units/screen.ts";
import { NO_SIZE, useDrawing, useSize, type CanvasSize } from "./canvas.ts";
import type { Page } from "./page.ts";

type Mark = RefObject<HTMLSpanElement | null>;

interface Marks {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly selection: Mark;
  readonly before: Mark;
  readonly behind: Mark;
  readonly view: Mark;
  readonly mark: Mark;
}

export function OverviewMarks({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const marks: Marks = { box: useRef<HTMLDivElement>(null), selection: useMark(), before: useMark(), behind: useMark(), view: useMark(), mark: useMark() };
  const size = useRef(NO_SIZE);
  useSize(marks.box, (next) => {
    size.current = next;
    place(marks, store.state, next);
  });
  useDrawing(
    store,
    ({ status, view, selection, mark }) => [status, view, selection, mark],
    (state) => place(marks, state, size.current),
  );
  return (
    <div class="overview-marks" ref={marks.box} aria-hidden="true">
      <span class="marks-selection" ref={marks.selection} hidden />
      <span class="marks-outside" ref={marks.before} hidden />
      <span class="marks-outside" ref={marks.behind} hidden />
      <span class="marks-window" ref={marks.view} hidden />
      <span class="marks-event" ref={marks.mark} hidden />
    </div>
  );
}

function useMark(): Mark {
  return useRef<HTMLSpanElement>(null);
}

/** Everything where it is now, on whole pixels of the screen. */
function place({ box, selection, before, behind, view, mark }: Marks, state: State, { width: wideCss, ratio }: CanvasSize): void {
  if (state.status === null || state.view === null || wideCss <= 0) {
    return;
  }
  const [width, wide] = [devicePixels(wideCss, ratio), Math.max(1, Math.round(ratio))];
  const shown = { view: state.view, selection: state.selection, mark: state.mark };
  const at = overviewMarks(shown, everything(state.status.extent), width, wide);
  const put = ({ current }: Mark, from: number | null, to: number | null = null): void => {
    if (current !== null) {
      current.hidden = from === null;
      current.style.transform = `translateX(${(from ?? 0) / ratio}px)`;
      current.style.width = to === null ? "" : `${(to - (from ?? 0)) / ratio}px`;
    }
  };
  box.current?.style.setProperty("--wide", `${wide / ratio}px`);
  put(selection, at.selection?.[0] ?? null, at.selection?.[1] ?? null);
  put(before, at.view[0] - width);
  put(behind, at.view[1]);
  put(view, at.view[0], at.view[1]);
  put(mark, at.mark);
}
