// The line at the bottom: the tabs of the lower panel, the place below the pointer, the selection, the window, how far reading is.

import type { JSX } from "preact";
import type { Status } from "../model/catalogue.ts";
import { digitsFor, duration, timeText, zoneText, type Clock } from "../model/clock.ts";
import { isLost } from "../model/findings.ts";
import { isRecording } from "../model/live.ts";
import { clockOf, widthOf, type State } from "../state/viewer.ts";
import { nanos, type Nanos } from "../units/time.ts";
import { progress } from "./health.tsx";
import { ClosedTabs } from "./doors.tsx";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";
import { wordsAt } from "./words.ts";

export function StatusLine({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [view, cursor, selection, status, connection, style, snapped] = usePick(
    store,
    (state) =>
      [state.view, state.cursor, state.selection, state.status, state.connection, state.timeStyle, state.snapped, state.arrivals, state.catalogue, state.size] as const,
  );
  const clock = clockOf(store.state);
  const step = view === null ? nanos(1) : nanos(view.span / BigInt(Math.max(1, Math.round(widthOf(store.state)))));
  const digits = digitsFor(step);
  return (
    <footer class="status" data-time-style={style}>
      <ClosedTabs page={page} />
      <span class="below">{cursor === null || view === null ? "" : `${timeText(clock, cursor.time, digits)}  ${belowText(page, store.state)}`}</span>
      <PickerNote page={page} />
      {selection === null ? null : <span class="selected">{selectionText(selection.span)}</span>}
      {snapped === null ? null : <span class="faint">{snapped.isOff ? "anywhere" : "snaps to edges, with Ctrl anywhere"}</span>}
      {view === null ? null : <span class="window">{windowText(clock, view.begin, view.span, digits)}</span>}
      {status === null ? null : <Progress status={status} isHeard={connection === "heard"} />}
    </footer>
  );
}

/** Why a step to another item was not done, where the panel that says so is closed. */
function PickerNote({ page }: { readonly page: Page }): JSX.Element | null {
  const [isTold] = usePick(page.store, (state) => [state.panels.inspector.isOpen] as const);
  const { note } = usePick(page.picker.picked, (picked) => picked);
  return isTold || note === null ? null : (
    <span class="picker-note" role="status">
      {note}
    </span>
  );
}

/** `isHeard`: the server answers, so that there is progress. */
function Progress({ status, isHeard }: { readonly status: Status; readonly isHeard: boolean }): JSX.Element | null {
  if (status.state !== "building" || isRecording(status)) {
    return null;
  }
  const part = status.totalBytes === 0 ? 0 : status.doneBytes / status.totalBytes;
  if (!isHeard) {
    return (
      <span class="progress" role="status">
        {Math.floor(100 * part)} % were read when the server answered last
      </span>
    );
  }
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
  const zone = clock.style === "absolute" ? ` ${zoneText(clock, begin)}` : "";
  return `${timeText({ ...clock, days: true }, begin, digits)}${zone} + ${duration(span, 5)}`;
}

/** The place below the pointer, in words. */
function belowText(page: Page, state: State): string {
  const track = state.rows.find((row) => row.key === state.cursor?.row)?.track ?? null;
  const lost = state.cursor !== null && isLost(state.findings, state.cursor.time) ? "  (events were lost then)" : "";
  return `${track === null || state.cursor === null ? "" : wordsAt(page, state, track, state.cursor.time)}${lost}`;
}
