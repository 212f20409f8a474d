// The rows of the list that are on the screen, of any number of rows. The browser does not scroll it, as it would need to know
// how many rows there are: wheel and keys move it by rows, the bar at its side by time.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Status } from "../../model/catalogue.ts";
import { lettersMax } from "../../model/clock.ts";
import { emptyList } from "../../model/emptiness.ts";
import { listColumns, isSingle, wantedNames, type ListColumn } from "../../model/events.ts";
import { advice } from "../../model/fault.ts";
import { plain } from "../../model/plain.ts";
import { isRecording } from "../../model/live.ts";
import { timeOf } from "../../model/reel.ts";
import { chosenRows, type EventsState } from "../../state/events.ts";
import { clockOf, markShown } from "../../state/viewer.ts";
import { nanos } from "../../units/time.ts";
import { useSize } from "../canvas.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { wheelPixels } from "../wheel.ts";
import { TimeBar } from "./bar.tsx";
import { templateOf, writtenRows } from "./columns.ts";
import { pressed } from "./keys.ts";

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
  const [status] = usePick(page.store, (now) => [now.status, now.timeStyle] as const);
  const body = useRef<HTMLDivElement>(null);
  /** Pixels of the wheel that are less than a row; where a finger is that drags the rows. */
  const turned = useRef(0);
  const dragged = useRef<number | null>(null);
  const longest = useRef(0);
  const list = useRef<HTMLDivElement>(null);
  const [isNarrow, setNarrow] = useState(false);
  useSize(body, ({ height }) => events.setRoom(Math.max(1, Math.floor(height / ROW_CSS_PX))));
  useSize(list, ({ width }) => setNarrow(width < NARROW_CSS_PX));
  const columns = listColumns(state.columns, isSingle(state.question), wantedNames(state.columns, state.wanted));
  const clock = clockOf(page.store.state);
  const rows = writtenRows(state, columns, clock);
  const chosen = chosenRows(state);
  // The column of names only becomes wider: it would be restless if it were as wide as the names on the screen.
  const names = columns.findIndex((column) => column.kind === "event");
  longest.current = rows.reduce((most, row) => Math.max(most, row.cells[names]?.length ?? 0), longest.current);
  const template = templateOf(columns, rows, { isNarrow, time: lettersMax(clock, status?.extent.end ?? nanos(0)), name: longest.current });
  const words = wordsFor(state, rows.length, status);
  return (
    <div class="event-list" ref={list}>
      <div
        class="event-grid"
        role="grid"
        tabIndex={0}
        data-focus="true"
        aria-label="Events"
        aria-rowcount={-1}
        aria-multiselectable="true"
        aria-busy={state.asking}
        aria-activedescendant={rows.some((row) => row.number === state.current) ? rowId(state.current ?? 0) : undefined}
        onKeyDown={(event) => {
          const { key, shiftKey: shift, altKey: alt } = event;
          if (pressed(events, { key, shift, alt, control: event.ctrlKey || event.metaKey }, { copy, search })) {
            event.preventDefault();
            event.stopPropagation();
          }
        }}
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
            <div key={column.title} role="columnheader" class={`event-cell ${column.kind}`} title={plain(column.title)}>
              {plain(column.title)}
            </div>
          ))}
        </div>
        <div
          class="event-body"
          role="rowgroup"
          ref={body}
          onPointerDown={(event) => (dragged.current = event.pointerType === "touch" ? event.clientY : null)}
          onPointerMove={(event) => {
            const rowsDragged = dragged.current === null ? 0 : Math.trunc((dragged.current - event.clientY) / ROW_CSS_PX);
            if (dragged.current !== null && rowsDragged !== 0) {
              dragged.current -= rowsDragged * ROW_CSS_PX;
              events.scroll(rowsDragged);
            }
          }}
          onPointerUp={() => (dragged.current = null)}
          onPointerCancel={() => (dragged.current = null)}
        >
          {rows.map(({ number, cells }) => (
            <div
              key={number}
              id={rowId(number)}
              role="row"
              class={`event-row${number === state.current ? " current" : ""}`}
              aria-selected={chosen !== null && number >= chosen.first && number < chosen.end}
              style={{ gridTemplateColumns: template }}
              onClick={(event) => events.choose(number, event.shiftKey)}
              onDblClick={() => centre(page, number)}
            >
              {cells.map((cell, index) => (
                <div key={columns[index]?.title} role="gridcell" class={`event-cell ${columns[index]?.kind ?? ""}`} title={titleFor(columns[index], plain(cell))}>
                  {plain(cell)}
                </div>
              ))}
            </div>
          ))}
        </div>
      </div>
      <TimeBar page={page} />
      {words === null ? null : (
        <div class={`event-words${state.fault === null ? "" : " bad"}`} role="status">
          <strong>{words[0]}</strong> <span>{words[1]}</span>
        </div>
      )}
    </div>
  );
}

function rowId(number: number): string {
  return `event-row-${number}`;
}

/** A text that does not fit is shown below the pointer. */
function titleFor(column: ListColumn | undefined, cell: string): string | undefined {
  return column?.kind === "fields" || column?.kind === "field" || column?.kind === "event" || column?.kind === "thread" ? cell : undefined;
}

/** The message where there are no rows, and the advice. */
function wordsFor({ fault, reel, asking, question }: EventsState, rows: number, status: Status | null): readonly [string, string] | null {
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
  if (status?.state === "failed") {
    return ["No event could be read.", status.failure ?? "A part of the traces could not be read."];
  }
  const { why, todo } = emptyList({ question, lost: status === null ? 0n : status.lost, isRecording: isRecording(status) });
  return [why, todo];
}

/** The time of a row in the middle of the window. */
function centre(page: Page, number: number): void {
  const time = timeOf(page.events.store.state.reel, number);
  if (time !== null) {
    page.store.update((state) => markShown({ ...state, mark: null }, time));
  }
}
