// The tab of events: which are listed, a search among them, how they leave the page, and the list itself.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RowFormat } from "../../model/eventtext.ts";
import type { Count, EventsState } from "../../state/events.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import "./events.css";
import { copyRows } from "./leave.ts";
import { EventList } from "./list.tsx";
import { SaveBar } from "./save.tsx";

/** Names of events that are offered while somebody types. */
const NAMES_MAX = 2_000;

export function EventsTab({ page }: { readonly page: Page }): JSX.Element {
  const { events } = page;
  const [saves, setSaves] = useState(false);
  const search = useRef<HTMLInputElement>(null);
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
  const copy = (format: RowFormat): void => void copyRows(page, format, ending.current.signal).then(say);
  return (
    <div class="events">
      <div class="event-tools">
        <Names page={page} />
        <FindBox page={page} input={search} />
        <Sync page={page} />
        <span class="event-buttons" role="group" aria-label="Rows as text">
          <button type="button" class="button" title="Copy the chosen rows as CSV (Ctrl+C copies them as text)" onClick={() => copy("csv")}>
            Copy CSV
          </button>
          <button type="button" class="button" title="Copy the chosen rows as JSON, one in a line" onClick={() => copy("json")}>
            Copy JSON
          </button>
          <button type="button" class="button" aria-expanded={saves} onClick={() => setSaves(!saves)}>
            Save…
          </button>
        </span>
      </div>
      <FindProblem page={page} />
      {saves ? <SaveBar page={page} say={say} close={() => setSaves(false)} /> : null}
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
      <span class="faint event-count">{count === null ? "" : `${countText(count)} events`}</span>
    </span>
  );
}

/** An exact number, or about how many: two digits of that are believed. */
export function countText({ events, isExact }: Count): string {
  return isExact ? events.toLocaleString("en") : `~${Number(Number(events).toPrecision(2)).toLocaleString("en")}`;
}

interface FindOptions {
  readonly page: Page;
  readonly input: { current: HTMLInputElement | null };
}

/** An expression whose matches are found one after the other. */
function FindBox({ page, input }: FindOptions): JSX.Element {
  const { events } = page;
  const [find, matches] = usePick(events.store, (state) => [state.find, state.matches] as const);
  const isEmpty = find.text.trim() === "";
  return (
    <span class="event-find" role="search">
      <input
        ref={input}
        type="search"
        placeholder="Find: next_prio < 100"
        aria-label="Find events by an expression"
        aria-invalid={find.problem !== null}
        aria-describedby="event-problem"
        title="An expression of the filter language: fields, comparisons, && and || (Ctrl+F); Enter finds the next one, Shift+Enter the one before"
        spellcheck={false}
        value={find.text}
        onInput={(event) => events.setFind(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" || event.key === "F3") {
            event.preventDefault();
            events.find(event.shiftKey ? "before" : "from");
          } else if (event.key === "Escape") {
            events.stopFinding();
            document.querySelector<HTMLElement>(".event-grid")?.focus();
          }
        }}
      />
      <button type="button" class="button" aria-label="The match before" title="The match before (Shift+F3)" disabled={isEmpty} onClick={() => events.find("before")}>
        ↑
      </button>
      <button type="button" class="button" aria-label="The next match" title="The next match (F3)" disabled={isEmpty} onClick={() => events.find("from")}>
        ↓
      </button>
      <span class="faint event-count" role="status">
        {findText(find, matches)}
      </span>
    </span>
  );
}

function findText(find: EventsState["find"], matches: Count | null): string {
  if (find.state === "searching") {
    return "searching… (Esc ends it)";
  }
  if (find.state === "absent") {
    return "no more in this direction";
  }
  return matches === null ? "" : `${countText(matches)} match`;
}

/** What is wrong with the expression, where in it, and what would be right. */
function FindProblem({ page }: { readonly page: Page }): JSX.Element {
  const [find] = usePick(page.events.store, (state) => [state.find] as const);
  const { problem, text } = find;
  const skipped = text.length - text.trimStart().length;
  const [begin, end] = problem === null ? [0, 0] : [problem.begin + skipped, Math.max(problem.end, problem.begin + 1) + skipped];
  return (
    <div id="event-problem" class="event-problem" role="status">
      {problem === null ? null : (
        <>
          {problem.message}
          {problem.help === null ? "" : `; ${problem.help}`}
          {problem.end === 0 ? null : (
            <code>
              {text.slice(0, begin)}
              <mark>{text.slice(begin, end) || " "}</mark>
              {text.slice(end)}
            </code>
          )}
        </>
      )}
    </div>
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

function Note({ page }: { readonly page: Page }): JSX.Element {
  const [note] = usePick(page.events.store, (state) => [state.note] as const);
  return (
    <div class="event-note" role="status">
      {note}
    </div>
  );
}
