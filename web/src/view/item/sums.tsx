// The selection, added up, as soon as it is made: beside the timeline, before all about the picked item.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { askSums } from "../../api/sums.ts";
import { ApiFault } from "../../api/client.ts";
import type { Track } from "../../model/catalogue.ts";
import { duration } from "../../model/clock.ts";
import type { Selection } from "../../model/selection.ts";
import type { Sums } from "../../model/sums.ts";
import { tablesOf, type SumTable } from "../../model/sumtext.ts";
import { tracksSelected } from "../../state/tracks.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { sentence } from "./picker.ts";

/** A selection that is drawn is added up once it rests for so long. */
const REST_MS = 120;
/** More rows are not asked for. */
const TRACKS_MAX = 512;

interface Told {
  readonly sums: Sums | null;
  readonly failure: string | null;
  readonly isAsking: boolean;
}

const UNTOLD: Told = { sums: null, failure: null, isAsking: true };

export function SelectionSums({ page, selection }: { readonly page: Page; readonly selection: Selection }): JSX.Element {
  const [catalogue, rows] = usePick(page.store, (state) => [state.catalogue, state.rows] as const);
  const tracks = useMemo(() => tracksSelected(page.store.state, selection), [rows, selection]);
  const asked = tracks.slice(0, TRACKS_MAX);
  const { sums, failure, isAsking } = useSums(page, selection, asked);
  const tables = useMemo(() => (sums === null ? [] : tablesOf(sums, catalogue, selection.span)), [sums, catalogue, selection.span]);
  const of = selection.rows === undefined ? "all rows" : tracks.length === 1 ? "1 row" : `${tracks.length.toLocaleString("en")} rows`;
  return (
    <section class="sums" aria-label="What is selected" aria-busy={isAsking}>
      <p class="sums-title">
        {duration(selection.span, 6)}, {of}
      </p>
      {tracks.length > asked.length ? <p class="faint">Added up are the first {TRACKS_MAX.toLocaleString("en")} of {tracks.length.toLocaleString("en")} rows.</p> : null}
      {sums === null || sums.isRead ? null : <p class="faint">Not all of that is read yet: it is more.</p>}
      {failure === null ? null : <p class="words bad">{failure}</p>}
      {sums !== null && tables.length === 0 ? <p class="faint">Nothing happens there.</p> : null}
      {tables.map((table) => (
        <SumTableView key={table.title} table={table} />
      ))}
    </section>
  );
}

function SumTableView({ table: { title, columns, rows, more } }: { readonly table: SumTable }): JSX.Element {
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col">{title}</th>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, cells], index) => (
            <tr key={index}>
              <th scope="row" title={name}>
                {name}
              </th>
              {cells.map((cell, at) => (
                <td key={at}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {more === 0 ? null : <p class="faint">{more.toLocaleString("en")} more</p>}
    </>
  );
}

/** Asks once the selection rests, and again as long as not all of it is read. */
function useSums(page: Page, { begin, span }: Selection, tracks: readonly Track[]): Told {
  const [told, tell] = useState(UNTOLD);
  const [extent, levels, version, filter] = usePick(page.store, ({ status, filter: chosen }) => [status?.extent.begin ?? null, status?.levels ?? null, told.sums?.isRead === true ? null : (status?.version ?? null), chosen] as const);
  const numbers = tracks.map((track) => track.number).join();
  useEffect(() => {
    const { status } = page.store.state;
    if (status === null) {
      return undefined;
    }
    const controller = new AbortController();
    tell((before) => ({ ...before, isAsking: true }));
    const timer = setTimeout(() => {
      const asked = { window: { begin, span }, extent: status.extent, levels: status.levels, tracks: tracks.map((track) => track.number), queryOf: (track: Track["number"]) => page.tiles.queryOf(track) };
      askSums(page.client, asked, controller.signal).then(
        (sums) => tell({ sums, failure: null, isAsking: false }),
        (error: unknown) => (controller.signal.aborted ? undefined : tell({ sums: null, failure: sentence(error instanceof ApiFault ? error.message : String(error)), isAsking: false })),
      );
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [begin, span, numbers, extent, levels?.min, levels?.max, version, filter]);
  return told;
}
