// The tab of events: the choice of events, a search among them, their export, and the list itself.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { fieldNames, readNames, titleOf, wantedNames } from "../../model/events.ts";
import type { RowFormat } from "../../model/eventtext.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import "./events.css";
import { FindBox, FindProblem, countText } from "./find.tsx";
import { copyRows } from "./leave.ts";
import { EventList } from "./list.tsx";
import { SaveBar } from "./save.tsx";

/** Names of events that are offered while the user types. */
const NAMES_MAX = 2_000;

export function EventsTab({ page }: { readonly page: Page }): JSX.Element {
  const { events } = page;
  const [saves, setSaves] = useState(false);
  const [search, saving] = [useRef<HTMLInputElement>(null), useRef<HTMLButtonElement>(null)];
  const ending = useRef(new AbortController());
  useEffect(() => {
    ending.current = new AbortController();
    events.open();
    return () => {
      ending.current.abort();
      events.close();
    };
  }, [events]);
  const say = (note: string): void => events.store.update((state) => ({ ...state, note }));
  const closed = (): void => {
    setSaves(false);
    saving.current?.focus();
  };
  const copy = (format: RowFormat): void => void copyRows(page, format, ending.current.signal).then(say);
  return (
    <div class="events">
      <div class="event-tools">
        <Names page={page} />
        <Columns page={page} />
        <FindBox page={page} input={search} />
        <Sync page={page} />
        <span class="event-buttons" role="group" aria-label="Rows as text">
          <button type="button" class="button" title="Copy the chosen rows as CSV (Ctrl+C copies them as text)" onClick={() => copy("csv")}>
            Copy CSV
          </button>
          <button type="button" class="button" title="Copy the chosen rows as JSON, one in a line" onClick={() => copy("json")}>
            Copy JSON
          </button>
          <button type="button" class="button" ref={saving} aria-expanded={saves} onClick={() => setSaves(!saves)}>
            Save…
          </button>
        </span>
      </div>
      <FindProblem page={page} />
      {saves ? <SaveBar page={page} say={say} close={closed} /> : null}
      <Missing page={page} />
      <EventList page={page} copy={() => copy("text")} search={() => search.current?.select()} />
      <Note page={page} />
    </div>
  );
}

/** Which events are listed, by name, and how many these are. */
function Names({ page }: { readonly page: Page }): JSX.Element {
  const { events, store } = page;
  const [names, count] = usePick(events.store, (state) => [state.names, state.count] as const);
  const [values] = usePick(store, (state) => [state.catalogue.values] as const);
  return (
    <span class="event-names">
      <input
        type="search"
        list="event-names"
        placeholder="Names of events"
        aria-label="Names of events that are listed"
        title="Only events of these names: several between spaces, * stands for any text"
        value={names}
        onChange={(event) => events.setNames(event.currentTarget.value)}
      />
      <datalist id="event-names">
        {values
          .filter((value) => value.kind === "event")
          .slice(0, NAMES_MAX)
          .map((value) => (
            <option key={value.number} value={value.label} />
          ))}
      </datalist>
      <span class="faint event-count">{count === null ? "" : `${countText(count)} ${count.events === 1n ? "event" : "events"}`}</span>
    </span>
  );
}

/** Which fields have columns of their own. */
function Columns({ page }: { readonly page: Page }): JSX.Element {
  const { events } = page;
  const [wanted, columns] = usePick(events.store, (state) => [state.wanted, state.columns] as const);
  const titles = [...new Set(fieldNames(columns).map(titleOf))];
  const absent = columns.length === 0 ? [] : readNames(wanted).filter((name) => wantedNames(columns, name).length === 0);
  const hint = absent.length === 0 ? "Fields with columns of their own: several between spaces" : `No event that is listed has ${absent.join(", ")}`;
  return (
    <>
      <input
        type="search"
        class="event-columns"
        list="event-fields"
        placeholder="Columns"
        aria-label="Fields with columns of their own"
        aria-invalid={absent.length > 0}
        title={hint}
        value={wanted}
        onChange={(event) => events.setWanted(event.currentTarget.value)}
      />
      <datalist id="event-fields">
        {titles.slice(0, NAMES_MAX).map((title) => (
          <option key={title} value={title} />
        ))}
      </datalist>
    </>
  );
}

function Sync({ page }: { readonly page: Page }): JSX.Element {
  const { events } = page;
  const [sync] = usePick(events.store, (state) => [state.sync] as const);
  return (
    <button
      type="button"
      class="button"
      aria-pressed={sync}
      title="The current row is marked on the timeline; where the window goes, and where the timeline is clicked, the list goes"
      onClick={() => events.setSync(!sync)}
    >
      Sync
    </button>
  );
}

/** The parts of the traces that are gone: the list lacks their events. */
function Missing({ page }: { readonly page: Page }): JSX.Element | null {
  const [status] = usePick(page.store, (state) => [state.status] as const);
  return status?.state !== "failed" ? null : (
    <div class="event-note bad-text" role="status">
      Events may be missing: {status.failure ?? "a part of the traces could not be read"}
    </div>
  );
}

function Note({ page }: { readonly page: Page }): JSX.Element {
  const [note] = usePick(page.events.store, (state) => [state.note] as const);
  return (
    <div class="event-note" role="status">
      {note}
    </div>
  );
}
