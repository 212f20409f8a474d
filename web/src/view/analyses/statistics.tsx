// The tab Statistics: an analysis of all of the traces, of the window or of the selection, as the tables that it answers with.

import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { grouped } from "../../model/cells.ts";
import { binsOf, courseOf, percentilesIn } from "../../model/charts.ts";
import type { Analysis, Options, Question } from "../../model/jobs.ts";
import { ROWS, ofTable, type Lens } from "../../model/lens.ts";
import { narrowed, type Answer, type Row, type Span, type Table } from "../../model/tables.ts";
import { endOf, windowBetween } from "../../model/viewport.ts";
import { withLens } from "../../state/analyses.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { Failed, OfWhen, ScopeChoice, ShowSelection, Waiting, Words, useAnswer, useTimes } from "./ask.tsx";
import { CourseChart, Density } from "./charts.tsx";
import { PeriodsForm } from "./forms.tsx";
import { questionFor } from "./questions.ts";
import { Summary } from "./summary.tsx";
import { TableView, useClock } from "./table.tsx";
import "./analyses.css";

/** Bins of distributions, and spans of time. */
const BINS = 100;

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
  const [lens] = usePick(page.store, (state) => [state.lens, state.filter, state.catalogue.tracks] as const);
  const { times, again } = useTimes(page, lens.scope);
  const analysis = analyses.find((one) => one.kind === lens.kind) ?? analyses[0];
  const question: Question | null = times === null || analysis === undefined ? null : questionFor(page, analysis.kind, { ...times, ...needsOf(analysis.kind, lens.periods), top: lens.rows, bins: BINS });
  const answered = useAnswer(page, question);
  const { answer } = answered;
  const table = answer?.tables.find((one) => one.name === lens.table) ?? answer?.tables[0] ?? null;
  return (
    <div class="analysis">
      <div class="tools">
        <select data-focus="" aria-label="Analysis" value={analysis?.kind ?? ""} title={analysis?.description ?? ""} onChange={(event) => change(page, ofTable(event.currentTarget.value, null))}>
          {analyses.map((one) => (
            <option key={one.kind} value={one.kind}>
              {one.title}
            </option>
          ))}
        </select>
        {answer === null ? null : (
          <select aria-label="Table" value={table?.name ?? ""} onChange={(event) => change(page, ofTable(lens.kind, event.currentTarget.value))}>
            {answer.tables.map((one) => (
              <option key={one.name} value={one.name}>
                {one.title}
              </option>
            ))}
          </select>
        )}
        <ScopeChoice page={page} />
        <OfWhen page={page} times={times} again={again} />
        <select aria-label="Rows of each table at most" value={lens.rows} onChange={(event) => change(page, { rows: Number(event.currentTarget.value) })}>
          {ROWS.map((count) => (
            <option key={count} value={count}>
              {grouped(count)} rows
            </option>
          ))}
        </select>
        <ShowSelection page={page} />
        {analysis?.kind === "periods" ? <PeriodsForm page={page} /> : null}
      </div>
      <Waiting page={page} answered={answered} idle={lens.scope === "selection" ? "Nothing is selected: drag on the timeline." : "The traces are being opened."} />
      {times !== null && lens.scope === "selection" ? <Summary page={page} times={times} /> : null}
      {times !== null && analysis?.kind === "io" && answer !== null ? <Traffic page={page} times={times} /> : null}
      {answer === null || table === null ? null : <Shown key={table.name} page={page} answer={answer} table={table} isOld={answered.isOld} />}
    </div>
  );
}

function change(page: Page, lens: Partial<Lens>): void {
  page.store.update((state) => withLens(state, lens));
}

/** The options that an analysis cannot do without. */
function needsOf(kind: string, periods: string): { readonly periods?: readonly string[] } {
  const definitions = periods.split("\n").filter((line) => line.trim() !== "");
  return kind === "periods" && definitions.length > 0 ? { periods: definitions } : {};
}

interface ChosenTable {
  readonly page: Page;
  readonly answer: Answer;
  readonly table: Table;
  readonly isOld: boolean;
}

/** A table, below the chart of it. */
function Shown({ page, answer, table, isOld }: ChosenTable): JSX.Element {
  const [current, select] = useState<Row | null>(null);
  const [look, kind] = usePick(page.store, (state) => [state.lens.look, state.lens.kind] as const);
  return (
    <>
      <ChartOf page={page} answer={answer} table={table} />
      <TableView page={page} kind={kind} answer={answer} table={table} rows={table.rows} isOld={isOld} current={current} choose={select} look={look} looks={(next) => change(page, { look: next })} />
    </>
  );
}

/** The chart of a table, or of the analysis over time. */
function ChartOf({ page, answer, table }: Omit<ChosenTable, "isOld">): JSX.Element | null {
  const bins = useMemo(() => binsOf(table), [table]);
  const [percentiles, all] = useMemo(() => (bins === null ? [[], []] : [percentilesIn(bins), [bins]]), [bins]);
  if (bins !== null) {
    return bins.total === 0 ? null : <Density page={page} bins={all} percentiles={percentiles} range={null} choose={NOTHING} />;
  }
  const course = answer.tables.find((one) => one.name === "course");
  return course === undefined ? null : <CourseOf page={page} table={course} title={course.title} />;
}

/** How much was read and written over time, by all processes: periods of the analysis, summed up. */
function Traffic({ page, times }: { readonly page: Page; readonly times: Options }): JSX.Element | null {
  const [status] = usePick(page.store, (state) => [state.status] as const);
  const [begin, end] = [times["begin_ns"] ?? status?.extent.begin, times["end_ns"] ?? status?.extent.end];
  const period = typeof begin === "bigint" && typeof end === "bigint" && end > begin ? (end - begin) / BigInt(BINS) + 1n : null;
  const { answer } = useAnswer(page, period === null ? null : questionFor(page, "io", { ...times, by: ["process"], period_ns: period }));
  const found = answer?.tables.find((one) => one.name === "per-process");
  const table = useMemo(() => (found === undefined ? null : narrowed(found, ["period", "read", "write"])), [found]);
  return table === null ? null : <CourseOf page={page} table={table} title="Read and written over time" />;
}

function CourseOf({ page, table, title }: { readonly page: Page; readonly table: Table; readonly title: string }): JSX.Element | null {
  const clock = useClock(page);
  const [selection] = usePick(page.store, (state) => [state.selection] as const);
  const brush = useCallback((span: Span) => page.store.update((state) => ({ ...state, selection: windowBetween(span.begin, span.end) })), [page]);
  const course = useMemo(() => courseOf(table, clock), [table, clock]);
  const selected = selection === null ? null : { begin: selection.begin, end: endOf(selection) };
  return course === null ? null : <CourseChart page={page} title={title} course={course} clock={clock} selection={selected} brush={brush} />;
}

const NOTHING = (): void => undefined;
