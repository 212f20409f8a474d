// A table of an answer with the controls that choose its rows: a text to search for, columns that sort, buttons that copy.

import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { countText, csvOf, exactDuration, grouped, jsonOf } from "../../model/cells.ts";
import { timeText, type Clock } from "../../model/clock.ts";
import { emptyChoice, emptyTable } from "../../model/emptiness.ts";
import type { Look } from "../../model/lens.ts";
import { sieveOf, sorted, type Sorting } from "../../model/sort.ts";
import { columnAt, type Answer, type Row, type Table } from "../../model/tables.ts";
import { clockOf } from "../../state/viewer.ts";
import { usePick } from "../hooks.ts";
import { takeOut } from "../leaving.ts";
import type { Page } from "../page.ts";
import { followingOf, followingText } from "./questions.ts";
import { Words } from "./ask.tsx";
import { Grid } from "./grid.tsx";

interface ShownOptions {
  readonly page: Page;
  /** The analysis. */
  readonly kind: string;
  readonly answer: Answer;
  readonly table: Table;
  /** Those rows of it that are to be shown at all. */
  readonly rows: readonly Row[];
  /** It is the answer to an earlier question. */
  readonly isOld: boolean;
  readonly current: Row | null;
  readonly choose: (row: Row) => void;
  readonly look: Look;
  readonly looks: (look: Look) => void;
  /** More tools, before these. */
  readonly children?: ComponentChildren;
}

export function useClock(page: Page): Clock {
  const [style, status, zone] = usePick(page.store, (state) => [state.timeStyle, state.status, state.zone] as const);
  return useMemo(() => clockOf(page.store.state), [style, zone, status?.extent.begin, status?.unix, clockOf(page.store.state).days]);
}

export function TableView({ page, kind, answer, table, rows, isOld, current, choose, look, looks, children }: ShownOptions): JSX.Element {
  const { text } = look;
  const [column, sorting] = useMemo(() => placesOf(table, look), [table, look]);
  const [said, say] = useState("");
  const clock = useClock(page);
  const [scope] = usePick(page.store, (state) => [state.lens.scope, state.filter, state.catalogue.tracks] as const);
  const following = followingOf(page, kind);
  const shown = useMemo(() => sorted(rows.filter(sieveOf(text, column, clock)), sorting), [rows, text, column, sorting, clock]);
  const take = (name: string, type: string, content: string): void => void takeOut(content, name, type).then(say);
  return (
    <>
      <div class="tools">
        {children}
        <select aria-label="Column to search in" value={column === null ? "" : (look.within ?? "")} onChange={(event) => looks({ ...look, within: event.currentTarget.value === "" ? null : event.currentTarget.value })}>
          <option value="">any column</option>
          {table.columns.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
        <input type="search" aria-label="Rows that have" placeholder={column === null ? "rows that have …" : "text, > 5ms, 10..20"} value={text} onInput={(event) => looks({ ...look, text: event.currentTarget.value })} />
        <button type="button" class="button" onClick={() => take(`${table.name}.csv`, "text/csv", csvOf(table, shown))}>
          Copy CSV
        </button>
        <button type="button" class="button" onClick={() => take(`${table.name}.json`, "application/json", jsonOf(table, shown))}>
          Copy JSON
        </button>
        <span class="faint" role="status">
          {said} {countText(table, shown.length)}
          {aboutText(answer, table, clock)}
          {followingText(following)}
          {isOld ? " · of the question before" : ""}
        </span>
      </div>
      {table.rows.length === 0 ? <Words {...emptyTable(answer, table.title, scope, following.isExcluding)} /> : null}
      {table.rows.length > 0 && shown.length === 0 ? <Words {...emptyChoice(text, table.omitted)} /> : null}
      {shown.length === 0 ? null : <Grid page={page} table={table} rows={shown} sorting={sorting} sort={(by) => looks({ ...look, sort: sortOf(table, by) })} current={current} choose={choose} />}
    </>
  );
}

/** Where the columns are that are searched and sorted by; a column that this table does not have is none. */
function placesOf(table: Table, { sort, within }: Look): readonly [number | null, Sorting | null] {
  const at = (name: string): number | null => (columnAt(table, name) < 0 ? null : columnAt(table, name));
  const by = sort === null ? null : at(sort.column);
  return [within === null ? null : at(within), sort === null || by === null ? null : { column: by, descending: sort.descending }];
}

function sortOf(table: Table, by: Sorting | null): Look["sort"] {
  const column = by === null ? undefined : table.columns[by.column];
  return by === null || column === undefined ? null : { column: column.name, descending: by.descending };
}

/** The subject of an answer, and its missing parts. */
function aboutText(answer: Answer, { span }: Table, clock: Clock): string {
  const time = span === null ? "" : ` · ${timeText(clock, span.begin)} + ${exactDuration(span.end - span.begin)}`;
  const lost = answer.lost > 0n || answer.lostMore ? ` · ${answer.lostMore ? "at least " : ""}${grouped(answer.lost)} ${answer.lost === 1n ? "event" : "events"} lost` : "";
  const packets = answer.lostPackets > 0n ? ` · ${grouped(answer.lostPackets)} ${answer.lostPackets === 1n ? "packet" : "packets"} lost` : "";
  return `${time}${lost}${packets}${answer.complete ? "" : " · a part of the trace could not be read"}`;
}
