// Notes on a line of time, the ruler or the overview: a flag where one begins, a band as long as it lasts, its text in a tooltip.
// A click shows it. There are no more flags than fit; keys find the notes in their tab.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { colourOf, countOf, marksOf, nextOf, titleOf, whenText, type Flag, type Note } from "../../model/notes.ts";
import { css } from "../../model/palette.ts";
import { openedPanel } from "../../model/panels.ts";
import { placeTip, type Point } from "../../model/tip.ts";
import { everything, type Viewport } from "../../model/viewport.ts";
import { marked } from "../../state/notes.ts";
import { clockOf, withPanels } from "../../state/viewer.ts";
import { useSize } from "../canvas.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { notesOf } from "./desk.ts";
import "../item/item.css";
import "./notes.css";

/** So many notes of a flag are told. */
const TOLD_MAX = 5;

/** Flags on the ruler, in the window. The component that shows them has notes read. */
export function RulerNotes({ page }: { readonly page: Page }): JSX.Element | null {
  useEffect(() => notesOf(page).begin(window), [page]);
  const notes = useNotes(page);
  return notes.length === 0 ? null : <OnRuler page={page} notes={notes} />;
}

function OnRuler({ page, notes }: { readonly page: Page; readonly notes: readonly Note[] }): JSX.Element | null {
  const [view, size] = usePick(page.store, (state) => [state.view, state.size] as const);
  return view === null ? null : <Marks page={page} notes={notes} window={view} width={size.width} place="ruler" />;
}

/** Flags on the overview, in all of the traces. */
export function OverviewNotes({ page }: { readonly page: Page }): JSX.Element | null {
  const notes = useNotes(page);
  return notes.length === 0 ? null : <OnOverview page={page} notes={notes} />;
}

function OnOverview({ page, notes }: { readonly page: Page; readonly notes: readonly Note[] }): JSX.Element {
  const [begin, end] = usePick(page.store, (state) => [state.status?.extent.begin, state.status?.extent.end] as const);
  const [width, setWidth] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  useSize(box, (size) => setWidth(size.width));
  return (
    <div class="notes-over" ref={box}>
      {begin === undefined || end === undefined || width <= 0 ? null : <Marks page={page} notes={notes} window={everything({ begin, end })} width={width} place="overview" />}
    </div>
  );
}

function useNotes(page: Page): readonly Note[] {
  const [file, editing] = usePick(notesOf(page).store, (state) => [state.file, state.editing] as const);
  return useMemo(() => marked({ file, editing }), [file, editing]);
}

interface MarksOptions {
  readonly page: Page;
  readonly notes: readonly Note[];
  readonly window: Viewport;
  readonly width: number;
  readonly place: "ruler" | "overview";
}

function Marks({ page, notes, window: shown, width, place }: MarksOptions): JSX.Element {
  const { flags, bands } = marksOf(notes, shown, width);
  const [chosen] = usePick(notesOf(page).store, (state) => [state.chosen] as const);
  const [theme] = usePick(page.store, (state) => [state.theme] as const);
  const [tip, setTip] = useState<{ readonly at: Point; readonly id: string } | null>(null);
  const hide = (): void => setTip(null);
  const told = tip === null ? undefined : flags.find((flag) => flag.notes[0]?.id === tip.id);
  return (
    <>
      <div class={`note-marks on-${place}`} style={{ width: `${width}px` }} role="group" aria-label={place === "ruler" ? "Notes in the window" : "Notes in all of the traces"}>
        {bands.map(({ from, to, colours }) => (
          <span key={from} class="note-band" style={{ transform: `translateX(${from}px)`, width: `${to - from}px`, "--note": css(colourOf(colours, theme)) }} />
        ))}
        {flags.map((flag) => (
          <FlagAt
            key={flag.notes[0]?.id ?? ""}
            flag={flag}
            colour={css(colourOf(flag.notes.map((note) => note.colour), theme))}
            isChosen={flag.notes.some(({ id }) => id === chosen)}
            tell={(element) => {
              const { right, bottom } = element.getBoundingClientRect();
              setTip({ at: { x: right - 10, y: bottom - 10 }, id: flag.notes[0]?.id ?? "" });
            }}
            hide={hide}
            show={() => showFlag(page, flag)}
          />
        ))}
      </div>
      {tip === null || told === undefined ? null : <Tip page={page} flag={told} at={tip.at} />}
    </>
  );
}

/** Shows a note of a flag, also in the list; the next click shows the next one of it. */
function showFlag(page: Page, flag: Flag): void {
  const desk = notesOf(page);
  const note = nextOf(flag, desk.store.state.chosen);
  const { editing } = desk.store.state;
  if (note !== null && note.id !== editing?.note.id) {
    page.store.update((state) => withPanels(state, openedPanel(state.panels, "rail", "notes")));
    desk.show(note);
  }
}

interface FlagOptions {
  readonly flag: Flag;
  readonly colour: string;
  readonly isChosen: boolean;
  readonly tell: (element: HTMLElement) => void;
  readonly hide: () => void;
  readonly show: () => void;
}

function FlagAt({ flag, colour, isChosen, tell, hide, show }: FlagOptions): JSX.Element {
  const { x, notes } = flag;
  const [first] = notes;
  const more = notes.length === 1 ? "" : ` and ${notes.length - 1} more`;
  return (
    <button
      type="button"
      class={`note-flag${isChosen ? " chosen" : ""}`}
      style={{ transform: `translateX(${x}px)`, "--note": colour }}
      tabIndex={-1}
      aria-label={`Note: ${first === undefined ? "" : titleOf(first)}${more}`}
      onPointerEnter={(event) => tell(event.currentTarget)}
      onPointerLeave={hide}
      onClick={() => {
        hide();
        show();
      }}
      onWheel={(event) => {
        hide();
        passWheel(event);
      }}
    >
      {countOf(flag)}
    </button>
  );
}

/** A flag is small: the wheel on it means the timeline below it. */
function passWheel(event: WheelEvent): void {
  const flag = event.currentTarget as HTMLElement;
  const canvas = flag.closest(".overview, .timeline")?.querySelector("canvas");
  if (canvas?.dispatchEvent(new WheelEvent("wheel", event)) === false) {
    event.preventDefault();
  }
}

function Tip({ page, flag, at }: { readonly page: Page; readonly flag: Flag; readonly at: Point }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const clock = clockOf(page.store.state);
  const rest = flag.notes.length - TOLD_MAX;
  useLayoutEffect(() => {
    const { current } = box;
    if (current !== null) {
      current.style.maxHeight = "none";
      const { x, y, heightMax } = placeTip(at, { x: current.offsetWidth, y: current.offsetHeight }, { x: window.innerWidth, y: window.innerHeight });
      Object.assign(current.style, { left: `${x}px`, top: `${y}px`, maxHeight: `${heightMax}px` });
    }
  });
  return (
    <div class="tooltip note-tip" role="tooltip" ref={box}>
      {flag.notes.slice(0, TOLD_MAX).map((note, index) => (
        <p key={`${note.id} ${index}`}>
          <span class="faint">
            {whenText(clock, note)}
            {note.author === null ? "" : ` · ${note.author}`}
          </span>
          <br />
          {note.text.trim() === "" ? titleOf(note) : note.text}
        </p>
      ))}
      {rest > 0 ? <p class="faint">and {rest.toLocaleString("en")} more</p> : null}
    </div>
  );
}
