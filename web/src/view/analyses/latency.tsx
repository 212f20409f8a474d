// The tab Latency: of one kind of latency the longest, when they were, how they are distributed, and statistics of groups. A brush in one
// of these chooses the rows of the others.

import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { grouped, typedDuration } from "../../model/cells.ts";
import { binsOf, percentilesIn, percentilesOf, pointsOf, type Bins, type Percentile } from "../../model/charts.ts";
import type { Clock } from "../../model/clock.ts";
import { SOURCES, countOf, groupOf, groupOptions, groupText, isOfKernel, latencyOptions, presetsOf, sourceOf, type Source } from "../../model/latency.ts";
import { ROWS, ofLatency, ofLatencyTable, type Group, type Lens, type Look, type Range } from "../../model/lens.ts";
import type { Options, Question } from "../../model/jobs.ts";
import { columnAt, type Answer, type Row, type Span, type Table } from "../../model/tables.ts";
import { endOf, windowBetween } from "../../model/viewport.ts";
import { withLens } from "../../state/analyses.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { OfWhen, ScopeChoice, ShowSelection, Waiting, Words, useAnswer, useTimes } from "./ask.tsx";
import { Density, Scatter } from "./charts.tsx";
import { showRow } from "./grid.tsx";
import { shortDuration } from "./plot.tsx";
import { questionFor } from "./questions.ts";
import { TableView, useClock } from "./table.tsx";
import { PairsForm, PeriodsForm } from "./forms.tsx";
import "./analyses.css";

/** Periods have a distribution for each name: as many are drawn as there are hues. */
const DISTRIBUTIONS_MAX = 7;

export function Latency({ page }: { readonly page: Page }): JSX.Element {
  const [lens, isKernel] = usePick(page.store, (state) => [state.lens, isOfKernel(state.catalogue.tracks), state.filter, state.catalogue.tracks] as const);
  usePick(page.desk.store, (state) => [state.analyses] as const);
  const source = sourceOf(lens.latency, isKernel);
  const { times, again } = useTimes(page, lens.scope);
  const options = latencyOptions(source, lens, lens.longest);
  const question = times === null || options === null ? null : questionFor(page, source.kind, { ...options, ...times });
  const answered = useAnswer(page, question);
  const idle = options === null ? (source.kind === "breakdown" ? "Say which events begin and end operations, and which fields their key has." : "Say which events begin and end periods.") : lens.scope === "selection" ? "Nothing is selected: drag on the timeline." : "The traces are being opened.";
  return (
    <div class="analysis">
      <div class="tools">
        <Presets page={page} source={source} />
        <ScopeChoice page={page} />
        <OfWhen page={page} times={times} again={again} />
        <select aria-label="How many of the longest" value={lens.longest} onChange={(event) => change(page, { longest: Number(event.currentTarget.value) })}>
          {ROWS.map((count) => (
            <option key={count} value={count}>
              the {grouped(count)} longest
            </option>
          ))}
        </select>
        <ShowSelection page={page} />
        {source.kind === "pairs" ? <PairsForm page={page} unsaid="as roles say" parts={4} /> : null}
        {source.kind === "breakdown" ? <PairsForm page={page} unsaid="of capabilities" parts={3} /> : null}
        {source.kind === "periods" ? <PeriodsForm page={page} /> : null}
      </div>
      <Waiting page={page} answered={answered} idle={idle} />
      {answered.answer === null || question === null ? null : <Views key={source.id} page={page} source={source} question={question} answer={answered.answer} isOld={answered.isOld} />}
    </div>
  );
}

function change(page: Page, lens: Partial<Lens>): void {
  page.store.update((state) => withLens(state, lens));
}

interface ViewsOptions {
  readonly page: Page;
  readonly source: Source;
  readonly question: Question;
  readonly answer: Answer;
  readonly isOld: boolean;
}

function Views({ page, source, question, answer, isOld }: ViewsOptions): JSX.Element {
  const clock = useClock(page);
  const [range, group, named, look] = usePick(page.store, ({ lens }) => [lens.range, lens.group, lens.latencyTable, lens.latencyLook] as const);
  const shown = answer.tables.some((table) => table.name === named) ? (named ?? source.longest) : source.longest;
  const narrow = useCallback((next: Range | null) => change(page, { range: next }), [page]);
  const [current, select] = useState<Row | null>(null);
  const base = useGroup(page, source, question, answer);
  const bins = useMemo(() => binsFor(source, base.answer), [source, base.answer]);
  const percentiles = useMemo(() => percentilesFor(source, base.answer, bins), [source, base.answer, bins]);
  const total = bins.reduce((sum, one) => sum + one.total, 0);
  const { longest, isNarrowed, waiting } = useLongest(page, source, base.question, base.answer, total, range);
  const rows = useMemo(() => (longest === null ? [] : longest.table.rows.filter(keeps(longest.table, source, range, group, clock))), [longest?.table, source, range, group, clock]);
  const choose = useCallback(
    (row: Row) => {
      select(row);
      if (longest !== null) {
        showRow(page, longest.table, row);
      }
    },
    [page, longest?.table],
  );
  if (longest === null) {
    return <Words why="The server says nothing of the longest ones." todo="Are this page and `kymo view` of the same version? Reload the page." />;
  }
  const table = shown === source.longest ? null : (answer.tables.find((one) => one.name === shown) ?? null);
  const rest = group === null || base.isExact ? "" : restText(rows.length, countOf(source, answer, group, clock), longest.table.rows.length);
  const tabs = <Tabs page={page} source={source} answer={answer} shown={shown} range={range} narrow={narrow} group={group} rest={rest} />;
  const all = { page, kind: source.kind, isOld, look, looks: (next: Look): void => change(page, { latencyLook: next }) };
  return (
    <div class="views">
      <div class="charts">
        <ScatterView page={page} source={source} table={longest.table} rows={rows} total={isNarrowed || rest !== "" ? null : total} clock={clock} range={range} narrow={narrow} current={current} choose={choose} />
        {total === 0 ? null : <Density page={page} bins={bins} percentiles={percentiles} range={range} choose={narrow} />}
      </div>
      <div class="listed">
        {base.waiting}
        {waiting}
        {table === null ? (
          <TableView key={source.longest} {...all} answer={longest.answer} table={longest.table} rows={rows} current={current} choose={choose}>
            {tabs}
          </TableView>
        ) : (
          <TableView key={table.name} {...all} answer={answer} table={table} rows={table.rows} current={rowOfGroup(table, group, clock)} choose={(row) => change(page, { group: groupOf(table, longest.table, row, clock) })}>
            {tabs}
          </TableView>
        )}
      </div>
    </div>
  );
}

/** The answer for the chosen group alone, where the server can tell it apart: then it is about all that the group has. */
function useGroup(page: Page, source: Source, question: Question, answer: Answer) {
  const [group] = usePick(page.store, ({ lens }) => [lens.group] as const);
  const options = group === null ? null : groupOptions(source, group);
  const asked = options === null ? null : { kind: question.kind, options: { ...question.options, ...options } };
  const found = useAnswer(page, asked);
  const waiting = asked === null ? null : <Waiting page={page} answered={found} idle="" />;
  const isExact = asked !== null && found.answer !== null && !found.isOld;
  return isExact && found.answer !== null ? { question: asked, answer: found.answer, isExact, waiting } : { question, answer, isExact: asked !== null, waiting };
}

/** The text where a group is looked for among the longest of all. */
function restText(found: number, count: number | null, longest: number): string {
  return `${grouped(found)}${count === null ? "" : ` of ${grouped(count)}`} ${found === 1 ? "is" : "are"} among the ${grouped(longest)} longest of all`;
}

/** The row of the group that is chosen. */
function rowOfGroup(table: Table, group: Group | null, clock: Clock): Row | null {
  const at = group === null ? -1 : columnAt(table, group.column);
  return at < 0 ? null : (table.rows.find((row) => row[at] !== undefined && groupText(row[at], clock) === group?.text) ?? null);
}

/** The longest, of those that last as long as was brushed: where not all are here, these are asked for. */
function useLongest(page: Page, source: Source, question: Question, answer: Answer, total: number, range: Range | null) {
  const plain = answer.tables.find((one) => one.name === source.longest) ?? null;
  const isCut = plain !== null && plain.rows.length < total;
  const options: Options = range === null ? {} : { min_ns: BigInt(Math.max(0, range.low)), max_ns: BigInt(Math.max(0, range.high)) };
  const narrowed = useAnswer(page, isCut && range !== null ? { kind: question.kind, options: { ...question.options, ...options } } : null);
  const table = narrowed.answer?.tables.find((one) => one.name === source.longest);
  const isNarrowed = narrowed.answer !== null && table !== undefined;
  const longest = isNarrowed && narrowed.answer !== null ? { table, answer: narrowed.answer } : plain === null ? null : { table: plain, answer };
  return { longest, isNarrowed, waiting: narrowed.question === null ? null : <Waiting page={page} answered={narrowed} idle="" /> };
}

function binsFor(source: Source, answer: Answer): readonly Bins[] {
  return answer.tables.filter((table) => source.distributions.includes(table.name)).flatMap((table) => binsOf(table) ?? []).slice(0, DISTRIBUTIONS_MAX);
}

function percentilesFor(source: Source, answer: Answer, bins: readonly Bins[]): readonly Percentile[] {
  const table = answer.tables.find((one) => one.name === source.total);
  const [row] = table?.rows ?? [];
  const [only] = bins;
  return table !== undefined && row !== undefined ? percentilesOf(table, row) : bins.length === 1 && only !== undefined ? percentilesIn(only) : [];
}

/** Which of the longest are shown. */
function keeps(table: Table, source: Source, range: Range | null, group: Group | null, clock: Clock): (row: Row) => boolean {
  const [value, column] = [columnAt(table, source.value), group === null ? -1 : columnAt(table, group.column)];
  return (row) => {
    const [cell, named] = [row[value], row[column]];
    const lasts = cell?.kind === "number" ? Number(cell.value) : 0;
    return (range === null || (lasts >= range.low && lasts <= range.high)) && (group === null || named === undefined || groupText(named, clock) === group.text);
  };
}

interface ScatterViewOptions {
  readonly page: Page;
  readonly source: Source;
  readonly table: Table;
  readonly rows: readonly Row[];
  /** The total of which these are the longest; `null`: of a part, which is not counted. */
  readonly total: number | null;
  readonly clock: Clock;
  readonly range: Range | null;
  readonly narrow: (range: Range | null) => void;
  readonly current: Row | null;
  readonly choose: (row: Row) => void;
}

function ScatterView({ page, source, table, rows, total, clock, range, narrow, current, choose }: ScatterViewOptions): JSX.Element | null {
  const [selection, status] = usePick(page.store, (state) => [state.selection, state.status] as const);
  const span = table.span ?? (status === null ? null : { begin: status.extent.begin, end: status.extent.end });
  const begin = span?.begin ?? null;
  const points = useMemo(() => (begin === null ? [] : pointsOf(table, rows, source.value, begin)), [table, rows, source, begin]);
  const brush = useCallback(
    (time: Span | null, lasts: Range | null) => {
      if (time !== null) {
        page.store.update((state) => ({ ...state, selection: windowBetween(time.begin, time.end) }));
      }
      if (lasts !== null) {
        narrow(lasts);
      }
    },
    [page, narrow],
  );
  // Where there is none at all, the table says so; where none is left, the chart stays, to be brushed again.
  if (span === null || table.rows.length === 0) {
    return null;
  }
  const selected = selection === null ? null : { begin: selection.begin, end: endOf(selection) };
  const of = total === null || total === points.length ? "" : ` of ${grouped(total)}`;
  const summary = `${total === null || total > points.length ? "the longest " : ""}${grouped(points.length)}${of}, by when they began`;
  return <Scatter page={page} title={source.title} summary={summary} points={points} span={span} clock={clock} range={range} selection={selected} current={current} choose={choose} brush={brush} />;
}

interface TabsOptions {
  readonly page: Page;
  readonly source: Source;
  readonly answer: Answer;
  readonly shown: string;
  readonly range: Range | null;
  readonly narrow: (range: Range | null) => void;
  readonly group: Group | null;
  /** How much of the group is shown, if that is not all of it. */
  readonly rest: string;
}

/** Which table is shown, and the choices in it. */
function Tabs({ page, source, answer, shown, range, narrow, group, rest }: TabsOptions): JSX.Element {
  const tables = [source.longest, ...source.groups].flatMap((name) => answer.tables.find((table) => table.name === name) ?? []);
  return (
    <>
      <select aria-label="Table" value={shown} onChange={(event) => change(page, ofLatencyTable(event.currentTarget.value === source.longest ? null : event.currentTarget.value))}>
        {tables.map((table) => (
          <option key={table.name} value={table.name}>
            {table.title}
          </option>
        ))}
      </select>
      <RangeInput range={range} narrow={narrow} />
      {group === null ? null : (
        <button type="button" class="button" title="Show all again" onClick={() => change(page, { group: null })}>
          {group.text} ×
        </button>
      )}
      {rest === "" ? null : (
        <span class="faint" role="status">
          {rest}
        </span>
      )}
    </>
  );
}

/** The latencies that these traces have, a click each; other kinds stand in a list. */
function Presets({ page, source }: { readonly page: Page; readonly source: Source }): JSX.Element {
  const [catalogue, table] = usePick(page.store, (state) => [state.catalogue, state.lens.latencyTable] as const);
  const presets = presetsOf(catalogue);
  // Of one kind several may be there: that of the table which is shown, else the first one.
  const ofKind = presets.filter((preset) => preset.latency === source.id);
  const chosen = ofKind.find((preset) => preset.table === table) ?? ofKind[0];
  const others = SOURCES.filter(({ id }) => !presets.some((preset) => preset.latency === id));
  const isOther = others.includes(source);
  return (
    <>
      <span class="scopes presets" role="radiogroup" aria-label="Latency of">
        {presets.map((preset) => (
          <button key={preset.title} type="button" role="radio" class="scope" title={preset.hint} aria-checked={preset === chosen} {...(preset === chosen ? { "data-focus": "" } : {})} onClick={() => change(page, { ...ofLatency(preset.latency), latencyTable: preset.table })}>
            {preset.title}
          </button>
        ))}
      </span>
      <select data-focus="" aria-label="Other latencies" value={isOther ? source.id : ""} onChange={(event) => change(page, ofLatency(event.currentTarget.value))}>
        {isOther ? null : <option value="">other kinds</option>}
        {others.map((one) => (
          <option key={one.id} value={one.id}>
            {one.title}
          </option>
        ))}
      </select>
    </>
  );
}

/** From how long to how long, typed: the effect of a brush, by keys. */
function RangeInput({ range, narrow }: Pick<TabsOptions, "range" | "narrow">): JSX.Element {
  const [text, type] = useState("");
  useEffect(() => type(range === null ? "" : `${shortDuration(range.low)}..${shortDuration(range.high)}`), [range]);
  const set = (written: string): void => {
    const [low, high] = written.split("..").map(typedDuration);
    if (written.trim() === "") {
      narrow(null);
    } else if (low !== undefined && high !== undefined && low !== null && high !== null && low <= high) {
      narrow({ low: Number(low), high: Number(high) });
    }
  };
  return (
    <>
      <input type="text" class="range" aria-label="From how long to how long" placeholder="1us..5ms" title="From how long to how long, as 10us..5ms; also drawn in the charts" value={text} onInput={(event) => type(event.currentTarget.value)} onChange={(event) => set(event.currentTarget.value)} />
      {range === null ? null : (
        <button type="button" class="button" onClick={() => narrow(null)}>
          All durations
        </button>
      )}
    </>
  );
}
