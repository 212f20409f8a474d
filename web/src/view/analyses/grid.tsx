// A table of any number of rows that renders only the rows on the screen. Columns sort; times and threads lead to the timeline.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { cellHint, cellText } from "../../model/cells.ts";
import { plain } from "../../model/plain.ts";
import { timeText, type Clock } from "../../model/clock.ts";
import { nextSorting, type Sorting } from "../../model/sort.ts";
import { isNumeric, spanOfRow, type Cell, type Row, type Span, type Table } from "../../model/tables.ts";
import { shownSpan, trackOfThread } from "../../state/analyses.ts";
import { trackSeen } from "../../state/tracks.ts";
import { clockOf } from "../../state/viewer.ts";
import { useSize } from "../canvas.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";

const ROW_PX = 22;
/** Rows beyond the screen's edges, so that scrolling does not show empty ones. */
const MARGIN_ROWS = 6;
/** How wide a column may be, in characters. */
const WIDTH_MAX = 44;
/** Rows that are looked at for how wide columns have to be. */
const SAMPLE_ROWS = 200;

interface GridOptions {
  readonly page: Page;
  readonly table: Table;
  /** Those of the table's rows that are shown, in their order. */
  readonly rows: readonly Row[];
  readonly sorting: Sorting | null;
  readonly sort: (sorting: Sorting | null) => void;
  readonly current: Row | null;
  readonly choose: (row: Row) => void;
}

export function Grid({ page, table, rows, sorting, sort, current, choose }: GridOptions): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [top, scrolled] = useState(0);
  const [height, resized] = useState(200);
  const [style, status] = usePick(page.store, (state) => [state.timeStyle, state.status, state.catalogue.tracks] as const);
  useSize(box, (size) => resized(size.height));
  const clock = useMemo(() => clockOf(page.store.state), [style, status?.extent.begin, status?.unix, clockOf(page.store.state).days]);
  const texts = useMemo(() => textOf(table, clock), [table, clock]);
  const columns = useMemo(() => widthsOf(table, texts), [table, texts]);
  const at = current === null ? -1 : rows.indexOf(current);
  useEffect(() => {
    box.current?.scrollTo({ top: 0 });
  }, [table, sorting]);
  const first = Math.max(0, Math.floor(top / ROW_PX) - MARGIN_ROWS);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW_PX) + MARGIN_ROWS);

  const go = (index: number): void => {
    const row = rows[Math.min(Math.max(0, index), rows.length - 1)];
    if (row !== undefined) {
      choose(row);
      reveal(box.current, rows.indexOf(row));
    }
  };
  const press = (event: KeyboardEvent): void => {
    const screen = Math.max(1, Math.floor(height / ROW_PX) - 2);
    const steps: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at < 0 ? 0 : at - 1, PageDown: at + screen, PageUp: at - screen, Home: 0, End: rows.length - 1 };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      go(step);
    } else if (event.key === "Enter" && event.target === box.current && current !== null) {
      event.preventDefault();
      event.stopPropagation();
      showRow(page, table, current);
    }
  };

  return (
    <div
      class="grid"
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label={table.title}
      aria-rowcount={rows.length + 1}
      aria-colcount={table.columns.length}
      {...(at < first || at >= last ? {} : { "aria-activedescendant": `row-${table.name}-${at}` })}
      onScroll={(event) => scrolled(event.currentTarget.scrollTop)}
      onKeyDown={press}
    >
      <div class="grid-row grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: columns }}>
        {table.columns.map((column, index) => {
          const direction = sorting?.column === index ? (sorting.descending ? "descending" : "ascending") : "none";
          return (
            <div key={column.name} role="columnheader" aria-sort={direction} class={isNumeric(column.of) ? "cell right" : "cell"}>
              <button type="button" class="plain" title={headHint(column.title, column.unit)} onClick={() => sort(nextSorting(table, sorting, index))}>
                {column.title}
                {direction === "none" ? "" : direction === "descending" ? " ▾" : " ▴"}
              </button>
            </div>
          );
        })}
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${rows.length * ROW_PX}px` }}>
        {rows.slice(first, last).map((row, index) => {
          const number = first + index;
          return (
            <div
              key={number}
              id={`row-${table.name}-${number}`}
              class={row === current ? "grid-row current" : "grid-row"}
              role="row"
              aria-rowindex={number + 2}
              aria-selected={row === current}
              style={{ gridTemplateColumns: columns, transform: `translateY(${number * ROW_PX}px)` }}
              onClick={() => choose(row)}
              onDblClick={() => showRow(page, table, row)}
            >
              {row.map((cell, place) => (
                <CellOf key={place} page={page} cell={cell} text={texts(cell, place)} clock={clock} isRight={isNumeric(table.columns[place]?.of ?? "")} show={() => showCell(page, cell, spanOfRow(table, row))} />
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface CellOptions {
  readonly page: Page;
  readonly cell: Cell;
  /** The text of the cell. */
  readonly text: string;
  readonly clock: Clock;
  readonly isRight: boolean;
  readonly show: () => void;
}

function CellOf({ page, cell, text, clock, isRight, show }: CellOptions): JSX.Element {
  const [all, hint, shown] = [plain(cellText(cell, clock)), cellHint(cell), plain(text)];
  const leads = cell.kind === "time" || cell.kind === "range" || (cell.kind === "process" && trackOfThread(page.store.state, cell.tid) !== null);
  const classes = `cell${isRight ? " right" : ""}${cell.kind === "unknown" ? " faint" : ""}`;
  return (
    <div role="gridcell" class={classes} title={hint === "" ? all : `${all}: ${hint}`}>
      {leads ? (
        <button type="button" class="plain link" tabIndex={-1} onClick={show}>
          {shown}
        </button>
      ) : (
        shown
      )}
    </div>
  );
}

function headHint(title: string, unit: string | null): string {
  return unit === null || unit === title.toLowerCase() ? `Sort by: ${title}` : `Sort by: ${title} (${unit})`;
}

/** Shows the subject of a cell on the timeline. */
function showCell(page: Page, cell: Cell, span: Span | null): void {
  if (cell.kind === "process") {
    const track = trackOfThread(page.store.state, cell.tid);
    page.store.update((state) => (track === null ? state : trackSeen(state, track)));
  } else if (cell.kind === "time") {
    page.store.update((state) => shownSpan(state, span !== null && span.begin <= cell.value && cell.value <= span.end ? span : { begin: cell.value, end: cell.value }));
  } else if (span !== null) {
    page.store.update((state) => shownSpan(state, span));
  }
}

/** Shows the subject of a row on the timeline: its time, and its first thread. */
export function showRow(page: Page, table: Table, row: Row): void {
  const span = spanOfRow(table, row);
  const thread = row.flatMap((cell) => (cell.kind === "process" ? (trackOfThread(page.store.state, cell.tid) ?? []) : []))[0];
  page.store.update((state) => {
    const there = thread === undefined ? state : trackSeen(state, thread);
    return span === null ? there : shownSpan(there, span);
  });
}

function reveal(box: HTMLDivElement | null, index: number): void {
  if (box === null) {
    return;
  }
  const [top, room] = [index * ROW_PX, box.clientHeight - ROW_PX * 2];
  if (top < box.scrollTop) {
    box.scrollTop = top;
  } else if (top > box.scrollTop + room) {
    box.scrollTop = top - room;
  }
}

type CellTexts = (cell: Cell, column: number) => string;

/** The texts in the cells of a table. A duration is not told twice; numbers of a column of anything are names, with digits as they are. */
function textOf(table: Table, clock: Clock): CellTexts {
  const hasDuration = table.columns.some(({ of }) => of === "duration");
  return (cell, column) => {
    if (cell.kind === "range" && cell.begin !== null && cell.end !== null && hasDuration) {
      return timeText(clock, cell.begin);
    }
    return table.columns[column]?.of === "mixed" && cell.kind === "number" && cell.of === "number" ? String(cell.value) : cellText(cell, clock);
  };
}

/** Columns as wide as their texts, at least in the first rows. */
function widthsOf(table: Table, text: CellTexts): string {
  const sample = table.rows.slice(0, SAMPLE_ROWS);
  const widths = table.columns.map((column, index) => {
    const texts = sample.map((row) => (row[index] === undefined ? 0 : text(row[index], index).length));
    return Math.min(WIDTH_MAX, Math.max(column.title.length + 2, ...texts) + 2);
  });
  return widths.map((width) => `${width}ch`).join(" ");
}
