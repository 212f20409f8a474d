// The tab Statistics: an analysis of all of the traces, of the window or of what is selected, as the tables that it answers with.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { csvOf, exactDuration, grouped, jsonOf } from "../../model/cells.ts";
import { timeText, type Clock } from "../../model/clock.ts";
import type { Analysis, Question } from "../../model/jobs.ts";
import { sieveOf, sorted, type Sorting } from "../../model/sort.ts";
import type { Answer, Row, Table } from "../../model/tables.ts";
import { withLens } from "../../state/analyses.ts";
import { clockOf } from "../../state/viewer.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { Failed, ScopeChoice, Waiting, Words, useAnswer, useTimes } from "./ask.tsx";
import { takeOut } from "./copy.ts";
import { Grid } from "./grid.tsx";
import { questionFor } from "./questions.ts";
import "./analyses.css";

/** As many rows of each table are asked for. */
const ROWS: readonly number[] = [1_000, 10_000];

export function Statistics({ page }: { readonly page: Page }): JSX.Element {
  const { desk } = page;
  useEffect(() => void desk.open(), [desk]);
  const [analyses, failure] = usePick(desk.store, (state) => [state.analyses, state.failure] as const);
  if (analyses !== null) {
    return <Chosen page={page} analyses={analyses} />;
  }
  return failure === null ? (
    <Words why="The server is asked which analyses there are." todo="" />
  ) : (
    <Failed failure={failure}>
      <button type="button" class="button" onClick={() => void desk.open()}>
        Ask again
      </button>
    </Failed>
  );
}

function Chosen({ page, analyses }: { readonly page: Page; readonly analyses: readonly Analysis[] }): JSX.Element {
  const [lens] = usePick(page.store, (state) => [state.lens, state.filter] as const);
  const [top, most] = useState(ROWS[0] ?? 1_000);
  const times = useTimes(page, lens.scope);
  const analysis = analyses.find((one) => one.kind === lens.kind) ?? analyses[0];
  const question: Question | null = times === null || analysis === undefined ? null : questionFor(page.store.state, analysis.kind, { ...times, ...needsOf(analysis.kind, lens.periods), top });
  const answered = useAnswer(page, question);
  const { answer } = answered;
  const table = answer?.tables.find((one) => one.name === lens.table) ?? answer?.tables[0] ?? null;
  return (
    <div class="analysis">
      <div class="tools">
        <select data-focus="" aria-label="Analysis" value={analysis?.kind ?? ""} title={analysis?.description ?? ""} onChange={(event) => choose(page, { kind: event.currentTarget.value, table: null })}>
          {analyses.map((one) => (
            <option key={one.kind} value={one.kind}>
              {one.title}
            </option>
          ))}
        </select>
        <select aria-label="Table" value={table?.name ?? ""} disabled={answer === null} onChange={(event) => choose(page, { table: event.currentTarget.value })}>
          {(answer?.tables ?? []).map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
        <ScopeChoice page={page} />
        <select aria-label="Rows of each table at most" value={top} onChange={(event) => most(Number(event.currentTarget.value))}>
          {ROWS.map((count) => (
            <option key={count} value={count}>
              {grouped(count)} rows
            </option>
          ))}
        </select>
      </div>
      <Waiting page={page} answered={answered} idle={lens.scope === "selection" ? "Nothing is selected: drag on the timeline." : "The traces are being opened."} />
      {answer === null || table === null ? null : <Shown key={table.name} page={page} answer={answer} table={table} isOld={answered.isOld} />}
    </div>
  );
}

function choose(page: Page, change: { readonly kind?: string; readonly table: string | null }): void {
  page.store.update((state) => withLens(state, change));
}

/** What an analysis cannot do without. */
function needsOf(kind: string, periods: string): { readonly periods?: readonly string[] } {
  const definitions = periods.split("\n").filter((line) => line.trim() !== "");
  return kind === "periods" && definitions.length > 0 ? { periods: definitions } : {};
}

interface ShownOptions {
  readonly page: Page;
  readonly answer: Answer;
  readonly table: Table;
  readonly isOld: boolean;
}

/** A table, with what chooses its rows. */
function Shown({ page, answer, table, isOld }: ShownOptions): JSX.Element {
  const [sorting, sort] = useState<Sorting | null>(null);
  const [text, type] = useState("");
  const [column, within] = useState<number | null>(null);
  const [current, select] = useState<Row | null>(null);
  const [said, say] = useState("");
  const [style, status] = usePick(page.store, (state) => [state.timeStyle, state.status] as const);
  const clock = useMemo(() => clockOf(page.store.state), [style, status?.extent.begin]);
  const rows = useMemo(() => sorted(table.rows.filter(sieveOf(text, column, clock)), sorting), [table, text, column, sorting, clock]);
  const take = (name: string, type: string, content: string): void => void takeOut(content, name, type).then(say);
  return (
    <>
      <div class="tools">
        <select aria-label="Column to search in" value={column ?? ""} onChange={(event) => within(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
          <option value="">any column</option>
          {table.columns.map((one, index) => (
            <option key={one.name} value={index}>
              {one.title}
            </option>
          ))}
        </select>
        <input type="search" aria-label="Rows that have" placeholder={column === null ? "rows that have …" : "text, > 5ms, 10..20"} value={text} onInput={(event) => type(event.currentTarget.value)} />
        <button type="button" class="button" onClick={() => take(`${table.name}.csv`, "text/csv", csvOf(table, rows))}>
          Copy CSV
        </button>
        <button type="button" class="button" onClick={() => take(`${table.name}.json`, "application/json", jsonOf(table, rows))}>
          Copy JSON
        </button>
        <span class="faint" role="status">
          {said} {countText(table, rows.length)}
          {aboutText(answer, table, clock)}
          {isOld ? " · of the question before" : ""}
        </span>
      </div>
      {table.rows.length === 0 ? <Words why="There is nothing of this." todo="The analysis has read the events, and found none that this table would count." /> : null}
      {table.rows.length > 0 && rows.length === 0 ? <Words why="No row has this." todo="Type less, or choose another column." /> : null}
      {rows.length === 0 ? null : <Grid page={page} table={table} rows={rows} sorting={sorting} sort={sort} current={current} choose={select} />}
    </>
  );
}

/** How many rows are shown of how many. */
export function countText(table: Table, shown: number): string {
  const all = table.rows.length + table.omitted;
  const of = shown === all ? "" : ` of ${grouped(all)}`;
  const rest = table.omitted > 0 ? ` (${grouped(table.omitted)} are not asked for)` : "";
  return `${grouped(shown)}${of} rows${rest}`;
}

/** What an answer is about, and what is missing of that. */
export function aboutText(answer: Answer, { span }: Table, clock: Clock): string {
  const time = span === null ? "" : ` · ${timeText(clock, span.begin)} + ${exactDuration(span.end - span.begin)}`;
  const lost = answer.lost > 0n || answer.lostMore ? ` · ${answer.lostMore ? "at least " : ""}${grouped(answer.lost)} events lost` : "";
  const packets = answer.lostPackets > 0n ? ` · ${grouped(answer.lostPackets)} packets lost` : "";
  return `${time}${lost}${packets}${answer.complete ? "" : " · a part of the trace could not be read"}`;
}
