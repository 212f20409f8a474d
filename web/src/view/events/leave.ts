// Export of rows: onto the clipboard, or as a file that the browser saves.

import { pause } from "../../api/changes.ts";
import { FIRST_PLACE, isSingle, type Place } from "../../model/events.ts";
import { pageText, type RowFormat } from "../../model/eventtext.ts";
import { placeOf } from "../../model/reel.ts";
import { endOf, type Viewport } from "../../model/viewport.ts";
import { chosenRows } from "../../state/events.ts";
import { clockOf } from "../../state/viewer.ts";
import type { Nanos } from "../../units/time.ts";
import { copyText, saveFile, traceName } from "../leaving.ts";
import type { Page } from "../page.ts";
import { faultOf } from "./desk.ts";
import { counted } from "../../units/counted.ts";

/** As many rows are copied, and saved; the browser holds all of them until they are on the disk. */
export const COPIED_MAX = 10_000;
export const SAVED_MAX = 1_000_000;
/** Rows that are asked for at a time: as many as a page has, because a question costs the server more than a row. */
const SAVED_ROWS = 10_000;
/** Rows that are written without a pause, in which the screen is drawn. */
const WRITTEN_ROWS = 500;

const WORDS: Readonly<Record<RowFormat, string>> = { csv: "CSV", json: "JSON lines", text: "text" };
const KINDS: Readonly<Record<RowFormat, string>> = { csv: "text/csv", json: "application/x-ndjson", text: "text/plain" };

/** Copies the rows that are chosen; returns a message about it. */
export async function copyRows(page: Page, format: RowFormat, signal: AbortSignal): Promise<string> {
  const { state } = page.events.store;
  const chosen = chosenRows(state);
  const place = chosen === null ? null : placeOf(state.reel, chosen.first);
  if (chosen === null || place === null) {
    return "No row is chosen: click one, and another one with Shift.";
  }
  const count = Math.min(chosen.end - chosen.first, COPIED_MAX);
  try {
    const found = await page.events.ask({ question: state.question, direction: "from", place, limit: count }, signal);
    const isCopied = await copyText(pageText(found, format, isSingle(state.question), count > 1 || format === "csv", clockOf(page.store.state)));
    if (!isCopied) {
      return "Not copied: the browser gives no clipboard.";
    }
  } catch (error) {
    return `Not copied: ${faultOf(error).message}.`;
  }
  const rest = chosen.end - chosen.first > COPIED_MAX ? "; no more are copied at once, but saved" : "";
  return `${counted(count, "row")} copied as ${WORDS[format]}${rest}.`;
}

/** Which part of the list is saved; `null`: all of it. */
export type SavedPart = Viewport | null;

/** Saves the list, or a part of it; returns a message about it. */
export async function saveRows(page: Page, format: RowFormat, part: SavedPart, signal: AbortSignal): Promise<string> {
  const parts: Blob[] = [];
  // A file has events of one question, although the list may show others meanwhile.
  const { question } = page.events.store.state;
  let rows = 0;
  try {
    for (let place: Place = part === null ? FIRST_PLACE : { time: part.begin, rank: 0 }; rows < SAVED_MAX; ) {
      const end: { end?: Nanos } = part === null ? {} : { end: endOf(part) };
      const found = await page.events.ask({ question, direction: "from", place, limit: Math.min(SAVED_ROWS, SAVED_MAX - rows), ...end }, signal);
      for (let first = 0; first < found.rows.count; first += WRITTEN_ROWS) {
        const some = { first, end: Math.min(first + WRITTEN_ROWS, found.rows.count) };
        parts.push(new Blob([pageText(found, format, isSingle(question), rows + first === 0, clockOf(page.store.state), some)]));
        await pause(0, signal);
        if (signal.aborted) {
          return "Nothing was saved.";
        }
      }
      rows += found.rows.count;
      tellProgress(page, format, rows, partDone(page, found.times.at(-1) ?? null, part, rows));
      if (found.isEnd) {
        break;
      }
      place = found.after;
    }
  } catch (error) {
    const { kind, message } = faultOf(error);
    return kind === "aborted" ? "Nothing was saved." : `Not saved: ${message}.`;
  } finally {
    page.events.store.update((state) => ({ ...state, leaving: null }));
  }
  saveFile(new Blob(parts, { type: KINDS[format] }), `${traceName(page)}-events.${format === "json" ? "jsonl" : format}`);
  const cut = rows >= SAVED_MAX ? `, which is as many as fit into a file: there may be more` : "";
  return `${counted(rows, "row")} saved as ${WORDS[format]}${cut}.`;
}

/** How far a time is on the way through the saved part, of 1, without a count of rows. Or how far it is to the most rows. */
function partDone(page: Page, time: bigint | null, part: SavedPart, rows: number): number | null {
  const { status } = page.store.state;
  const [begin, end] = part === null ? [status?.extent.begin ?? 0n, status?.extent.end ?? 0n] : [part.begin, endOf(part)];
  return time === null || end <= begin ? null : Math.max(Number(time - begin) / Number(end - begin), rows / SAVED_MAX);
}

function tellProgress(page: Page, format: RowFormat, rows: number, part: number | null): void {
  page.events.store.update((state) => ({ ...state, leaving: { rows, part, what: WORDS[format] } }));
}
