// The tooltip: beside the pointer once it rests, beside a row's name that has the focus. It takes no clicks and is never in the way.

import type { JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { factsOf, fieldLines, titleOf, type Telling } from "../../model/facts.ts";
import { rowAt } from "../../model/screen.ts";
import { placeTip } from "../../model/tip.ts";
import { timeAt } from "../../model/viewport.ts";
import { clockOf, widthOf, type State } from "../../state/viewer.ts";
import { cssPx, px } from "../../units/screen.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { wordsAt } from "../words.ts";
import { arrowAt, bundleAt } from "./arrows.ts";
import { Hinter, type Hint, type Target } from "./hinter.ts";
import { spotOf, timeMeant } from "./point.ts";
import "./item.css";
import { counted } from "../../units/counted.ts";

/** Lines of fields that fit; the panel has all of them. */
const LINES_MAX = 18;
const ID = "tooltip";

/** `timeline` is the element that the pointer moves on: the canvas of the rows and their names. */
export function Tooltip({ page, timeline }: { readonly page: Page; readonly timeline: RefObject<HTMLElement | null> }): JSX.Element | null {
  const hinter = useMemo(() => new Hinter(page, () => page.store.state.catalogue.tracks), [page]);
  const hint = usePick(hinter.hint, (state) => state);
  const box = useRef<HTMLDivElement>(null);
  usePointer(page, hinter, timeline);
  useLayoutEffect(() => {
    const { current } = box;
    if (current !== null && hint !== null) {
      current.style.maxHeight = "none";
      const place = placeTip(hint.at, { x: current.offsetWidth, y: current.offsetHeight }, { x: window.innerWidth, y: window.innerHeight });
      Object.assign(current.style, { left: `${place.x}px`, top: `${place.y}px`, maxHeight: `${place.heightMax}px` });
    }
  });
  return hint === null ? null : (
    <div class="tooltip" role="tooltip" id={ID} ref={box}>
      <Told page={page} hint={hint} />
    </div>
  );
}

function Told({ page, hint }: { readonly page: Page; readonly hint: Hint }): JSX.Element {
  const { state } = page.store;
  const { item, track, words, begun, others, isAsking, failure } = hint;
  const telling: Telling = { clock: clockOf(state), tracks: state.catalogue.tracks };
  if (item === null) {
    return (
      <>
        <p>{words}</p>
        {isAsking ? <p class="faint">…</p> : null}
        {failure === null ? null : <p class="faint">{failure}</p>}
      </>
    );
  }
  // A duration has the fields of the event that begins it: those are its arguments.
  const told = item.kind === "event" ? item : begun;
  const lines = told?.event == null ? [] : fieldLines(told.event, told.bases);
  // The name of the track stands in the words, the call of a thread that waits in the title; the panel tells the rest.
  const isTold = item.kind === "run" && item.wait?.call != null ? ["in"] : [];
  const facts = factsOf(item, track, telling).filter(({ name }) => !["track", "group", "its row", "from", ...isTold].includes(name));
  const [before, behind] = item.kind === "event" ? [facts.slice(0, 1), facts.slice(1)] : [facts, []];
  return (
    <>
      <p class="faint">{words}</p>
      <strong>{titleOf(item, telling)}</strong>
      <table>
        <tbody>
          {before.map((fact) => (
            <Line key={fact.name} {...fact} />
          ))}
          {begun === null ? null : <Line name={begun.value.label} text={null} />}
          {lines.slice(0, LINES_MAX).map((line, index) => (
            <Line key={`field ${index}`} {...line} />
          ))}
          {behind.map((fact) => (
            <Line key={fact.name} {...fact} />
          ))}
        </tbody>
      </table>
      {lines.length > LINES_MAX ? <p class="faint">{counted(lines.length - LINES_MAX, "more field")}: a click tells {lines.length - LINES_MAX === 1 ? "it" : "them"}.</p> : null}
      {others === 0 ? null : <p class="faint">{others} more at the same time</p>}
    </>
  );
}

interface LineOptions {
  readonly name: string;
  readonly text: string | null;
  readonly depth?: number;
  readonly isDoubtful?: boolean;
}

function Line({ name, text, depth = 0, isDoubtful = false }: LineOptions): JSX.Element {
  return (
    <tr>
      <th scope="row" colSpan={text === null ? 2 : 1} style={{ paddingLeft: `${depth * 10}px` }}>
        {name}
      </th>
      {text === null ? null : <td class={isDoubtful ? "doubtful" : ""}>{text}</td>}
    </tr>
  );
}

/** Tells the hinter where the pointer rests, and where the focus is. */
function usePointer(page: Page, hinter: Hinter, timeline: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = timeline;
    if (current === null) {
      return undefined;
    }
    const { store } = page;
    let described: HTMLElement | null = null;
    const hide = (): void => {
      described?.removeAttribute("aria-describedby");
      described = null;
      hinter.hide();
    };
    const move = (event: PointerEvent): void => {
      const canvas = event.target;
      hide();
      if (page.drag === null && event.pointerType !== "touch" && event.buttons === 0 && canvas instanceof HTMLCanvasElement && canvas.closest(".area") !== null) {
        const box = canvas.getBoundingClientRect();
        const place = { x: cssPx(event.clientX - box.left), y: cssPx(event.clientY - box.top) };
        hinter.rest({ x: event.clientX, y: event.clientY }, () => targetAt(page, store.state, place));
      }
    };
    const focus = (event: FocusEvent): void => {
      const { target } = event;
      const key = target instanceof HTMLElement ? target.dataset["row"] : undefined;
      hide();
      if (target instanceof HTMLElement && key !== undefined && target.matches(":focus-visible")) {
        const box = target.closest(".label")?.getBoundingClientRect() ?? target.getBoundingClientRect();
        described = target;
        target.setAttribute("aria-describedby", ID);
        hinter.rest({ x: box.right, y: box.top + box.height / 2 }, () => targetOf(page, store.state, key));
      }
    };
    let before = store.state;
    const changed = (): void => {
      const { view, scroll, rows, size, help } = store.state;
      if (view !== before.view || scroll !== before.scroll || rows !== before.rows || size !== before.size || help !== before.help) {
        hide();
      }
      before = store.state;
    };
    const listeners: readonly (readonly [string, (event: never) => void])[] = [
      ["pointermove", move],
      ["pointerleave", hide],
      ["pointerdown", hide],
      ["wheel", hide],
      ["focusin", focus],
      ["focusout", hide],
    ];
    listeners.forEach(([name, listener]) => current.addEventListener(name, listener as EventListener, { passive: true }));
    const end = store.subscribe(changed);
    return () => {
      hide();
      end();
      listeners.forEach(([name, listener]) => current.removeEventListener(name, listener as EventListener));
    };
  }, [page, hinter, timeline]);
}

/** The target at a place of the rows: an arrow, or the item of a row there. */
function targetAt(page: Page, state: State, place: { readonly x: ReturnType<typeof cssPx>; readonly y: ReturnType<typeof cssPx> }): Target | null {
  const arrow = arrowAt(page, state, place);
  if (arrow !== null) {
    return { ...arrow, words: arrow.track.name };
  }
  const bundle = bundleAt(page, state, place);
  if (bundle !== null) {
    return bundle;
  }
  const track = rowAt(state, place.y)?.track ?? null;
  if (track === null || state.view === null) {
    return null;
  }
  const time = timeAt(state.view, px(place.x * state.size.ratio), widthOf(state));
  const spot = spotOf(page, state, track, time);
  return spot === null ? null : { track, spot, words: wordsAt(page, state, track, spot.time) };
}

/** The target of a row without a pointer at a place of it. */
function targetOf(page: Page, state: State, key: string): Target | null {
  const [track, time] = [state.rows.find((row) => row.key === key)?.track ?? null, timeMeant(state)];
  if (track === null || time === null) {
    return null;
  }
  const spot = spotOf(page, state, track, time);
  return { track, spot, words: wordsAt(page, state, track, spot?.time ?? time) };
}
