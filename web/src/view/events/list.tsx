// The rows of the list that are on the screen, of as many as there may be. It is not scrolled by the browser, which would need to know
// how many rows there are: wheel and keys move it by rows, the bar at its side by time.

import type { JSX, TargetedKeyboardEvent } from "preact";
import { useRef, useState } from "preact/hooks";
import { listColumns, isSingle, type ListColumn } from "../../model/events.ts";
import { advice } from "../../model/fault.ts";
import { endOf, firstOf, timeOf } from "../../model/reel.ts";
import { chosenRows, type EventsState } from "../../state/events.ts";
import { clockOf, markShown } from "../../state/viewer.ts";
import { useSize } from "../canvas.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { wheelPixels } from "../wheel.ts";
import { TimeBar } from "./bar.tsx";
import { templateOf, writtenRows } from "./columns.ts";

/** As high as the style sheet makes a row. */
const ROW_CSS_PX = 20;
/** Where there is less room, columns are narrower. */
const NARROW_CSS_PX = 700;

interface ListOptions {
  readonly page: Page;
  /** Rows are to be copied; a search is to be begun. */
  readonly copy: () => void;
  readonly search: () => void;
}

export function EventList({ page, copy, search }: ListOptions): JSX.Element {
  const { events } = page;
  const [state] = usePick(events.store, (now) => [now] as const);
  const [clockStyle] = usePick(page.store, (now) => [now.timeStyle, now.status?.extent.begin] as const);
  const body = useRef<HTMLDivElement>(null);
  const turned = useRef(0);
  const list = useRef<HTMLDivElement>(null);
  const [isNarrow, setNarrow] = useState(false);
  useSize(body, ({ height }) => events.setRoom(Math.max(1, Math.floor(height / ROW_CSS_PX))));
  useSize(list, ({ width }) => setNarrow(width < NARROW_CSS_PX));
  const columns = listColumns(state.columns, isSingle(state.question));
  const rows = writtenRows(state, columns, clockOf(page.store.state));
  const chosen = chosenRows(state);
  const template = templateOf(columns, rows, isNarrow);
  const words = wordsFor(state, rows.length);
  return (
    <div class="event-list" ref={list}>
      <div
        class="event-grid"
        role="grid"
        tabIndex={0}
        data-focus="true"
        data-time-style={clockStyle}
        aria-label="Events"
        aria-rowcount={-1}
        aria-multiselectable="true"
        aria-busy={state.asking}
        aria-activedescendant={state.current === null ? undefined : rowId(state.current)}
        onKeyDown={(event) => press(page, event, copy, search)}
        onWheel={(event) => {
          const { x, y } = wheelPixels(event);
          if (Math.abs(y) > Math.abs(x) && !event.shiftKey) {
            event.preventDefault();
            turned.current += y;
            const rowsTurned = Math.trunc(turned.current / ROW_CSS_PX);
            turned.current -= rowsTurned * ROW_CSS_PX;
            events.scroll(rowsTurned);
          }
        }}
      >
        <div class="event-row event-head" role="row" style={{ gridTemplateColumns: template }}>
          {columns.map((column) => (
            <div key={column.title} role="columnheader" class={`event-cell ${column.kind}`} title={column.title}>
              {column.title}
            </div>
          ))}
        </div>
        <div class="event-body" role="rowgroup" ref={body}>
          {rows.map(({ number, cells }) => (
            <div
              key={number}
              id={rowId(number)}
              role="row"
              class={`event-row${number === state.current ? " current" : ""}`}
              aria-selected={chosen !== null && number >= chosen.first && number < chosen.end}
              style={{ gridTemplateColumns: template }}
              onPointerDown={(event) => event.button === 0 && events.choose(number, event.shiftKey)}
              onDblClick={() => centre(page, number)}
            >
              {cells.map((cell, index) => (
                <div key={columns[index]?.title} role="gridcell" class={`event-cell ${columns[index]?.kind ?? ""}`} title={titleFor(columns[index], cell)}>
                  {cell}
                </div>
              ))}
            </div>
          ))}
        </div>
        {words === null ? null : (
          <div class={`event-words${state.fault === null ? "" : " bad"}`}>
            <strong>{words[0]}</strong> <span>{words[1]}</span>
          </div>
        )}
      </div>
      <TimeBar page={page} />
    </div>
  );
}

function rowId(number: number): string {
  return `event-row-${number}`;
}

/** What does not fit is told below the pointer. */
function titleFor(column: ListColumn | undefined, cell: string): string | undefined {
  return column?.kind === "fields" || column?.kind === "field" || column?.kind === "event" || column?.kind === "thread" ? cell : undefined;
}

/** What to say where there are no rows, and what to do about it. */
function wordsFor({ fault, reel, asking, question }: EventsState, rows: number): readonly [string, string] | null {
  if (fault !== null) {
    const begun = fault.message.charAt(0).toUpperCase() + fault.message.slice(1);
    return [`${begun}.`, fault.kind === "refused" ? "Change the names of events, or the filter." : advice(fault.kind)];
  }
  if (rows > 0) {
    return null;
  }
  if (asking || !reel.isEnd) {
    return ["Events are being read.", ""];
  }
  return question.filter === null && question.names.length === 0
    ? ["There are no events in these traces.", "`kymo TRACE` says what is in them."]
    : ["No event is like that.", "Change the names of events, or the filter."];
}

/** The time of a row in the middle of the window. */
function centre(page: Page, number: number): void {
  const time = timeOf(page.events.store.state.reel, number);
  if (time !== null) {
    page.store.update((state) => markShown({ ...state, mark: null }, time));
  }
}

function press(page: Page, event: TargetedKeyboardEvent<HTMLElement>, copy: () => void, search: () => void): void {
  const { events } = page;
  const { state } = events.store;
  const control = event.ctrlKey || event.metaKey;
  const extend = event.shiftKey;
  const acts: Readonly<Record<string, () => void>> = {
    ArrowUp: () => events.step(-1, extend),
    ArrowDown: () => events.step(1, extend),
    PageUp: () => events.step(-state.room, extend),
    PageDown: () => events.step(state.room, extend),
    Home: () => (extend ? events.choose(firstOf(state.reel), true) : events.toBegin()),
    End: () => (extend ? events.choose(endOf(state.reel) - 1, true) : events.toEnd()),
    F3: () => events.find(extend ? "before" : "from"),
    // Where nothing is looked for, it means what it means everywhere.
    ...(state.find.state === "searching" ? { Escape: () => events.stopFinding() } : {}),
  };
  const act = event.altKey ? undefined : control ? { c: copy, f: search }[event.key.toLowerCase()] : acts[event.key];
  if (act !== undefined) {
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}
