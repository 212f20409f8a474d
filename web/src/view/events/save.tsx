// The bar that saves the list as a file: how much of it, in which form, and the progress.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RowFormat } from "../../model/eventtext.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { SAVED_MAX, saveRows, type SavedPart } from "./leave.ts";
import { counted } from "../../units/counted.ts";

interface SaveOptions {
  readonly page: Page;
  readonly say: (note: string) => void;
  readonly close: () => void;
}

type Which = "all" | "window" | "selection";

export function SaveBar({ page, say, close }: SaveOptions): JSX.Element {
  const { events, store } = page;
  const [leaving] = usePick(events.store, (state) => [state.leaving] as const);
  const [view, selection] = usePick(store, (state) => [state.view, state.selection] as const);
  const [which, setWhich] = useState<Which>("all");
  const ending = useRef<AbortController | null>(null);
  useEffect(() => () => ending.current?.abort(), []);
  const save = (format: RowFormat): void => {
    const part: SavedPart = which === "all" ? null : which === "window" ? view : selection;
    ending.current = new AbortController();
    void saveRows(page, format, part, ending.current.signal).then((note) => {
      say(note);
      close();
    });
  };
  if (leaving !== null) {
    return (
      <div class="event-save">
        <progress max={1} {...(leaving.part === null ? {} : { value: leaving.part })} aria-label="Rows that are saved" />
        <span role="status">
          {counted(leaving.rows, "row")} as {leaving.what}
        </span>
        <button type="button" class="button" onClick={() => ending.current?.abort()}>
          Cancel
        </button>
      </div>
    );
  }
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  return (
    <div class="event-save" onKeyDown={press}>
      <label>
        Save{" "}
        <select value={which} onChange={(event) => setWhich(event.currentTarget.value as Which)}>
          <option value="all">all that is listed</option>
          <option value="window">what is in the window</option>
          {selection === null ? null : <option value="selection">what is selected</option>}
        </select>
      </label>
      <span class="faint">{SAVED_MAX.toLocaleString("en")} rows at most, from the first one on</span>
      <button type="button" class="button" onClick={() => save("csv")}>
        CSV
      </button>
      <button type="button" class="button" onClick={() => save("json")}>
        JSON lines
      </button>
      <button type="button" class="plain" aria-label="Close: saving" onClick={close}>
        ×
      </button>
    </div>
  );
}
