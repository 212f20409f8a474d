// The box for an expression with a search from match to match: it offers completions, shows faults below it.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { TrackValue } from "../../model/catalogue.ts";
import { fieldOffers, type Vocabulary } from "../../model/completion.ts";
import type { Count, EventsState } from "../../state/events.ts";
import { usePick } from "../hooks.ts";
import { useOffers } from "../offers.tsx";
import type { Page } from "../page.ts";

/** An exact number, or about how many: two digits of that are believed. */
export function countText({ events, isExact }: Count): string {
  return isExact ? events.toLocaleString("en") : `~${Number(Number(events).toPrecision(2)).toLocaleString("en")}`;
}

interface FindOptions {
  readonly page: Page;
  readonly input: { current: HTMLInputElement | null };
}

/** The box for such an expression. */
export function FindBox({ page, input }: FindOptions): JSX.Element {
  const { events } = page;
  const [find, matches, columns] = usePick(events.store, (state) => [state.find, state.matches, state.columns] as const);
  const [values] = usePick(page.store, (state) => [state.catalogue.values] as const);
  // Made once, as offers are looked for in an index of it.
  const vocabulary = useMemo(() => vocabularyOf(columns, values), [columns, values]);
  const offers = useOffers(input, () => vocabulary, (text) => events.setFind(text));
  const isEmpty = find.text.trim() === "";
  const press = (event: KeyboardEvent): void => {
    if (offers.press(event)) {
      return;
    }
    if (event.key === "Enter" || event.key === "F3") {
      event.preventDefault();
      offers.close();
      events.find(event.shiftKey ? "before" : "from");
    } else if (event.key === "Escape") {
      event.preventDefault();
      escape();
    }
  };
  /** Takes away the offers; where there are none, ends the search and goes to the list. */
  const escape = (): void => {
    if (offers.isOpen) {
      offers.close();
    } else {
      events.stopFinding();
      document.querySelector<HTMLElement>(".event-grid")?.focus();
    }
  };
  return (
    <span class="event-find" role="search">
      <span class="event-find-box">
        <input
          ref={input}
          type="text"
          role="combobox"
          placeholder="Find: next_prio < 100"
          aria-label="Find events by an expression"
          aria-invalid={find.problem !== null}
          aria-describedby="event-problem"
          {...offers.aria}
          aria-expanded={offers.isOpen}
          title="An expression of the filter language: fields, comparisons, && and || (Ctrl+F); Enter finds the next one, Shift+Enter the one before"
          spellcheck={false}
          autocomplete="off"
          value={find.text}
          onInput={(event) => {
            events.setFind(event.currentTarget.value);
            offers.offer();
          }}
          onKeyDown={press}
          onBlur={offers.close}
        />
        {offers.list}
      </span>
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

/** The vocabulary of an expression: the fields of the events that are listed, and names of events. */
function vocabularyOf(columns: readonly string[], values: readonly TrackValue[]): Vocabulary {
  const names = values.filter((value) => value.kind === "event").map((value) => value.label);
  return { fields: fieldOffers(columns), events: [...new Set(names)] };
}

function findText(find: EventsState["find"], matches: Count | null): string {
  if (find.state === "searching") {
    return "searching… (Esc ends it)";
  }
  if (matches?.isExact === true && matches.events === 0n) {
    return "no event matches";
  }
  if (find.state === "absent") {
    return "no more in this direction";
  }
  return matches === null ? "" : `${countText(matches)} match`;
}

/** The fault of the expression, where it is, and the right spelling. */
export function FindProblem({ page }: { readonly page: Page }): JSX.Element {
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
