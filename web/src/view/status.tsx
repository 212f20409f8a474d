// The line at the bottom: what is below the pointer, what is selected, which window is seen, how far reading is.

import type { JSX } from "preact";
import type { Catalogue, Status } from "../model/catalogue.ts";
import { dayText, digitsFor, duration, timeText, zoneText, type Clock } from "../model/clock.ts";
import { binBegin, inspect, type Inspected } from "../model/inspect.ts";
import { nameOf } from "../model/rows.ts";
import { NONE } from "../model/tile.ts";
import { bucketSpan, levelFor, tilesIn } from "../model/wanted.ts";
import { clockOf, widthOf, type State } from "../state/viewer.ts";
import { nanos, type Nanos } from "../units/time.ts";
import { progress } from "./header.tsx";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";

export function StatusLine({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [view, cursor, selection, status, style] = usePick(
    store,
    (state) => [state.view, state.cursor, state.selection, state.status, state.timeStyle, state.arrivals, state.catalogue, state.size] as const,
  );
  const clock = clockOf(store.state);
  const step = view === null ? nanos(1) : nanos(view.span / BigInt(Math.max(1, Math.round(widthOf(store.state)))));
  const digits = digitsFor(step);
  return (
    <footer class="status" data-time-style={style}>
      <span class="below">{cursor === null || view === null ? "" : `${timeText(clock, cursor.time, digits)}  ${belowText(page, store.state)}`}</span>
      {selection === null ? null : <span class="selected">{selectionText(selection.span)}</span>}
      {view === null ? null : <span class="window">{windowText(clock, view.begin, view.span, digits)}</span>}
      {status === null ? null : <Progress status={status} />}
    </footer>
  );
}

function Progress({ status }: { readonly status: Status }): JSX.Element | null {
  if (status.state !== "building") {
    return null;
  }
  const part = status.totalBytes === 0 ? 0 : status.doneBytes / status.totalBytes;
  return (
    <span class="progress" role="status">
      <progress value={part} max={1} aria-label="Read of the traces" /> {progress(status)}
    </span>
  );
}

/** How long a selection is, and how often a second that would be. */
function selectionText(span: Nanos): string {
  const hertz = 1e9 / Number(span);
  const rate = hertz >= 1e6 ? `${(hertz / 1e6).toPrecision(4)} MHz` : hertz >= 1e3 ? `${(hertz / 1e3).toPrecision(4)} kHz` : `${hertz.toPrecision(4)} Hz`;
  return `Δ ${duration(span, 6)} (${rate})`;
}

function windowText(clock: Clock, begin: Nanos, span: Nanos, digits: number): string {
  const day = clock.style === "absolute" ? `${dayText(clock, begin)} ` : "";
  const zone = clock.style === "absolute" ? ` ${zoneText(clock, begin)}` : "";
  return `${day}${timeText(clock, begin, digits)}${zone} + ${duration(span, 5)}`;
}

/** What is below the pointer, in words. */
function belowText(page: Page, state: State): string {
  const { status, view, cursor } = state;
  const track = state.rows.find((row) => row.key === cursor?.row)?.track;
  if (status === null || view === null || cursor === null || track === undefined || track === null) {
    return "";
  }
  const level = levelFor(view.span, widthOf(state), status.levels);
  const range = tilesIn(view, status.extent, level);
  const seen = inspect(page.tiles.pieces(range, track.number), status.extent.begin, cursor.time);
  return seen === null ? nameOf(track) : `${nameOf(track)}: ${foundText(seen, state.catalogue, bucketSpan(level))}`;
}

const DOUBTS = { exact: "", estimated: " (estimated)", building: " (not all is read yet)", unknown: "" } as const;
const NOTHING = { exact: "nothing", estimated: "not read yet", building: "not read yet", unknown: "nothing is known here" } as const;

function foundText({ found, quality }: Inspected, catalogue: Catalogue, bucket: Nanos): string {
  return found === null ? NOTHING[quality] : `${wordsOf(found, catalogue, bucket)}${DOUBTS[quality]}`;
}

function wordsOf(found: NonNullable<Inspected["found"]>, catalogue: Catalogue, bucket: Nanos): string {
  const name = (value: number): string => catalogue.values[value]?.label ?? "…";
  switch (found.kind) {
    case "value": {
      const part = found.share >= 0.995 ? "" : ` ${percent(found.share)} of ${duration(bucket)}`;
      const second = found.second === NONE ? "" : `, then ${name(found.second)}`;
      const begins = found.begins > 1 ? `; ${found.begins} begin` : "";
      return `${name(found.value)}${part}${second}${begins}`;
    }
    case "count": {
      const mostly = found.count === found.ofValue ? name(found.value) : `${found.ofValue.toLocaleString("en")} of them ${name(found.value)}`;
      return `${found.count.toLocaleString("en")} in ${duration(bucket)}: ${mostly}`;
    }
    case "durations":
      return `${found.count.toLocaleString("en")} in ${duration(bucket)}, most often from ${duration(binBegin(found.bin))} on`;
    case "number":
      return found.low === found.high ? String(found.low) : `${found.low} to ${found.high}`;
  }
}

function percent(share: number): string {
  const found = share * 100;
  return found < 1 ? "< 1 %" : `${Math.round(found)} %`;
}
