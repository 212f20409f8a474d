// The selection, added up, as soon as it is made: beside the timeline, before all about the picked item.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { askSums } from "../../api/sums.ts";
import { ApiFault } from "../../api/client.ts";
import type { Track } from "../../model/catalogue.ts";
import { duration } from "../../model/clock.ts";
import { cpuQuestion, withExact } from "../../model/cpusums.ts";
import { unanswered } from "../../model/filter.ts";
import { bodyOf, progressText, type Asked, type Question } from "../../model/jobs.ts";
import type { Selection } from "../../model/selection.ts";
import { valuesIn, type Sums } from "../../model/sums.ts";
import { MOSTLY, tablesOf, type SumTable } from "../../model/sumtext.ts";
import { tracksSelected } from "../../state/tracks.ts";
import { endOf, partIn, type Viewport } from "../../model/viewport.ts";
import { clockOf, withNamesWanted, type State } from "../../state/viewer.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { sentence } from "./picker.ts";
import { counted } from "../../units/counted.ts";

/** A selection that is drawn is added up once it rests for so long. */
const REST_MS = 120;
/** More rows are not asked for. */
const TRACKS_MAX = 512;

/** So many rows of a table are shown at first. */
const ROWS_FIRST = 12;

interface Told {
  /** The selection that is added up: its time, its rows, and which events. */
  readonly key: string;
  /** The part of the time that is added up: of a selection behind the end of a recording, ever more. */
  readonly part: Viewport | null;
  readonly sums: Sums | null;
  readonly failure: string | null;
  readonly isAsking: boolean;
}

const UNTOLD: Told = { key: "", part: null, sums: null, failure: null, isAsking: true };

export function SelectionSums({ page, selection }: { readonly page: Page; readonly selection: Selection }): JSX.Element {
  const [catalogue, rows] = usePick(page.store, (state) => [state.catalogue, state.rows] as const);
  const tracks = useMemo(() => tracksSelected(page.store.state, selection), [rows, selection]);
  const asked = tracks.slice(0, TRACKS_MAX);
  // Behind the end of the traces nothing is known, and nothing is missing. The end of a recording moves on without a change of this part.
  const within = ({ status }: State): Viewport | null => (status === null ? null : partIn(selection, status.extent));
  const [isKnown, begin, span] = usePick(page.store, (state) => [state.status !== null, within(state)?.begin, within(state)?.span] as const);
  const part = useMemo(() => (begin === undefined || span === undefined ? null : { begin, span }), [begin, span]);
  const [lacking] = usePick(page.store, (state) => [unansweredWords(state)] as const);
  const { sums, part: summed, failure, isAsking } = useSums(page, selection, part, asked);
  const cpus = useCpus(page, sums === null || isAsking ? null : cpuQuestion(catalogue, asked, sums, part === null ? {} : { begin_ns: part.begin, end_ns: endOf(part) }));
  const tables = useMemo(() => {
    const rounded = sums === null || summed === null ? [] : tablesOf(sums, catalogue, summed.span);
    return cpus?.state === "done" && part !== null ? withExact(rounded, cpus.answer, part.span, clockOf(page.store.state)) : rounded;
  }, [sums, catalogue, part, summed, cpus]);
  const [opened, open] = useState<readonly string[]>([]);
  const of = selection.rows === undefined ? "all rows" : counted(tracks.length, "row");
  return (
    <section class="sums" aria-label="What is selected" aria-busy={isAsking}>
      <p class="sums-title">
        {duration(selection.span, 6)}, {of}
      </p>
      {!isKnown || part?.span === selection.span ? null : <p class="faint">{part === null ? "That is outside of the traces." : `${duration(part.span, 6)} of that are in the traces.`}</p>}
      {tracks.length > asked.length ? <p class="faint">Added up are the first {TRACKS_MAX.toLocaleString("en")} of {tracks.length.toLocaleString("en")} rows.</p> : null}
      {sums === null || sums.isRead ? null : <p class="faint">Not all of that is read yet: it is more.</p>}
      {sums === null && isAsking ? <p class="faint">Adding up…</p> : null}
      {sums !== null && isAsking ? <p class="faint">Rounded so far (~); exact sums are on their way.</p> : null}
      {lacking !== "" && sums?.tracks.some(({ form, count }) => form === "events" && count > 0) === true ? <p class="faint">Events are those of all {lacking}, whichever are chosen: events of these traces do not name theirs.</p> : null}
      {cpus === null ? null : <CpuState asked={cpus} />}
      {failure === null ? null : <p class="words bad">{failure}</p>}
      {sums?.isRead === true && tables.length === 0 ? <p class="faint">Nothing happens there.</p> : null}
      <div class="sum-tables" tabIndex={0} role="group" aria-label="Sums">
        {tables.map((table) => {
          const name = table.title.replace(/:.*/, "");
          const isOpen = opened.includes(name);
          return <SumTableView key={name} table={table} isOpen={isOpen} toggle={() => open(isOpen ? opened.filter((one) => one !== name) : [...opened, name])} />;
        })}
      </div>
    </section>
  );
}

/** The things whose choice leaves no event out of sums; empty: events follow the filter. */
function unansweredWords({ filter }: State): string {
  const lacking = unanswered(filter);
  const isOfThreads = lacking.some((facet) => facet !== "cpus");
  return [...(lacking.includes("cpus") ? ["CPUs"] : []), ...(isOfThreads ? ["threads"] : [])].join(" and ");
}

interface SumTableOptions {
  readonly table: SumTable;
  readonly isOpen: boolean;
  readonly toggle: () => void;
}

function SumTableView({ table: { title, columns, rows, more }, isOpen, toggle }: SumTableOptions): JSX.Element {
  const shown = isOpen ? rows : rows.slice(0, ROWS_FIRST);
  const left = rows.length - shown.length + more;
  return (
    <>
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            <td />
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(([name, cells], index) => (
            <tr key={index}>
              <th scope="row" title={name}>
                <Name text={name} />
              </th>
              {cells.map((cell, at) =>
                columns[at] === MOSTLY ? (
                  <td key={at} class="named" title={cell}>
                    <Name text={cell} />
                  </td>
                ) : (
                  <td key={at}>{cell}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length <= ROWS_FIRST ? null : (
        <button type="button" class="plain link" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? "Show fewer" : `${left.toLocaleString("en")} more`}
        </button>
      )}
      {isOpen && more > 0 ? <p class="faint">{more.toLocaleString("en")} more have less.</p> : null}
    </>
  );
}

/** A name that gives way to numbers; the number of its thread, which tells it from others of that name, does not. */
function Name({ text }: { readonly text: string }): JSX.Element {
  const [, head = text, number = ""] = /^(.*?)( \(\d+\))?$/s.exec(text) ?? [];
  return (
    <span class="sum-name">
      <span>{head}</span>
      <span>{number}</span>
    </span>
  );
}

/** Exact running times that an analysis tells: how far it is, and what is missing from it. */
function CpuState({ asked }: { readonly asked: Asked }): JSX.Element | null {
  switch (asked.state) {
    case "done":
      return asked.answer.lost > 0n || asked.answer.lostMore ? <p class="faint">Events were lost: times in brackets are bounds.</p> : null;
    case "failed":
      return <p class="faint">Exact running times are not known: {sentence(asked.failure.message)}</p>;
    case "cancelled":
      return null;
    default:
      return (
        <p class="faint" role="status">
          Running times are rounded so far (~); exact ones: {progressText(asked)}
        </p>
      );
  }
}

/** The state of a question for exact running times, as long as it is wanted. */
function useCpus({ desk }: Page, question: Question | null): Asked | null {
  const key = question === null ? null : bodyOf(question);
  useEffect(() => (question === null ? undefined : desk.jobs.want(question)), [desk, key]);
  const [asked] = usePick(desk.store, (state) => [key === null ? null : (state.asked.get(key) ?? null)] as const);
  return asked;
}

/** Asks once the selection rests, and again as long as not all of it is read. */
function useSums(page: Page, { begin, span }: Selection, part: Viewport | null, tracks: readonly Track[]): Told {
  const [latest, tell] = useState(UNTOLD);
  const numbers = tracks.map((track) => track.number).join();
  const [query] = usePick(page.store, () => [page.tiles.chosen] as const);
  const key = [begin, span, numbers, query].join(" ");
  const known = latest.key === key ? latest : { ...UNTOLD, key };
  const told = { ...known, isAsking: known.isAsking || known.part?.begin !== part?.begin || known.part?.span !== part?.span };
  const [extent, levels, version, isHeard] = usePick(
    page.store,
    ({ status, connection }) => [status?.extent.begin ?? null, status?.levels ?? null, told.sums?.isRead === true ? null : (status?.version ?? null), connection === "heard" || told.failure === null] as const,
  );
  useEffect(() => {
    const { status } = page.store.state;
    if (status === null || part === null) {
      tell({ ...UNTOLD, key, isAsking: false });
      return undefined;
    }
    // A server that does not answer is asked again once it does.
    if (!isHeard) {
      return undefined;
    }
    const controller = new AbortController();
    tell((before) => (before.key === key ? { ...before, isAsking: true } : { ...UNTOLD, key }));
    let found: Sums | null = null;
    const heard = (sums: Sums, isLast: boolean): void => {
      if (!controller.signal.aborted) {
        found = sums;
        // Values that no tile on the screen shows may have no name here yet.
        page.store.update((state) => withNamesWanted(state, valuesIn(sums)));
        tell({ key, part, sums, failure: null, isAsking: !isLast });
      }
    };
    const timer = setTimeout(() => {
      const asked = { window: part, extent: status.extent, levels: status.levels, tracks: tracks.map((track) => track.number), queryOf: (track: Track["number"]) => page.tiles.queryOf(track) };
      askSums(page.client, asked, controller.signal, heard).catch((error: unknown) =>
        controller.signal.aborted ? undefined : tell({ key, part, sums: found, failure: sentence(error instanceof ApiFault ? error.message : String(error)), isAsking: false }),
      );
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [part?.begin, part?.span, key, extent, levels?.min, levels?.max, version, isHeard]);
  return told;
}
