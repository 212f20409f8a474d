// The box for an expression: it offers completions, underlines faults with the server's words, and counts matches.

import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiFault } from "../../api/client.ts";
import { checkExpression, countEvents, type Checked, type Count } from "../../api/filter.ts";
import { marked, remembered, type Vocabulary } from "../../model/completion.ts";
import { questionText } from "../../model/events.ts";
import { eventNames } from "../../model/facets.ts";
import { eventQuestion } from "../../model/filter-threads.ts";
import { refiltered } from "../../state/filter.ts";
import { usePick } from "../hooks.ts";
import { put, useOffers } from "../offers.tsx";
import type { Page } from "../page.ts";
import { countingOf } from "./counting.ts";
import { learnFields } from "./vocabulary.ts";

/** The server is asked once nothing was typed for so long. */
const REST_MS = 120;
const HISTORY_KEY = "kymo-expressions";

/** The server's answers on a text. */
interface Said {
  readonly text: string;
  readonly checked: Checked | null;
  readonly count: Count | null;
  readonly fault: string | null;
}

const NOTHING: Said = { text: "", checked: null, count: null, fault: null };

export function Expression({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [filter] = usePick(store, (state) => [state.filter] as const);
  const [draft, setDraft] = useState(filter.text);
  const box = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const said = useAnswers(page, draft);
  useEffect(() => setDraft(filter.text), [filter.text]);

  const vocabulary = (): Vocabulary => {
    const { vocabulary: fields, all } = countingOf(page).store.state;
    return { ...fields, events: eventNames(store.state.catalogue, all) };
  };
  const offers = useOffers(box, vocabulary, setDraft);
  // Only the last text that is to be applied is wanted, and that only as long as the box is there.
  const applying = useRef<AbortController | null>(null);
  useEffect(() => () => applying.current?.abort(), []);
  const apply = (): void => {
    offers.close();
    applying.current?.abort();
    applying.current = new AbortController();
    void applied(page, draft, applying.current.signal);
  };
  const press = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (offers.press(event)) {
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      apply();
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (offers.isOpen) {
        offers.close();
      } else if (draft !== filter.text) {
        setDraft(filter.text);
      } else {
        box.current?.blur();
      }
    }
  };
  const problems = said.text === draft ? (said.checked?.problems ?? []) : [];
  return (
    <div class="expression">
      <div class="expression-box">
        <div class="expression-marks" aria-hidden="true">
          {marked(draft, problems).map((part, index) => (
            <span key={index} class={part.isWrong ? (said.checked?.isValid === true ? "strange" : "wrong") : ""}>
              {part.text}
            </span>
          ))}{" "}
        </div>
        <textarea
          ref={box}
          class="field"
          rows={2}
          spellcheck={false}
          autocomplete="off"
          placeholder={"Expression, as ret < 0 && took > 5ms"}
          aria-label="Filter expression"
          {...offers.aria}
          aria-describedby={`${id}-said`}
          aria-invalid={said.text === draft && said.checked?.isValid === false}
          value={draft}
          onInput={(event) => {
            setDraft(event.currentTarget.value);
            offers.offer();
          }}
          onKeyDown={press}
          onFocus={() => learnFields(page)}
          onBlur={offers.close}
        />
        {offers.list}
      </div>
      <div class="expression-said" id={`${id}-said`} role="status">
        <Words said={said} draft={draft} />
      </div>
      <div class="rail-bar">
        <button type="button" class="button small" disabled={draft === filter.text || (said.text === draft && said.checked?.isValid === false)} onClick={apply}>
          Apply
        </button>
        <button type="button" class="button small" disabled={draft === "" && filter.text === ""} onClick={() => (setDraft(""), store.update((state) => refiltered(state, { text: "" })))}>
          Clear
        </button>
        <History
          page={page}
          choose={(text) => {
            if (box.current !== null) {
              put(box.current, text, text.length);
            }
            setDraft(text);
          }}
        />
      </div>
    </div>
  );
}

/** Expressions of this browser tab that were asked before. */
function History({ page, choose }: { readonly page: Page; readonly choose: (text: string) => void }): JSX.Element | null {
  usePick(page.store, (state) => [state.filter.text] as const);
  const all = readHistory();
  if (all.length === 0) {
    return null;
  }
  return (
    <select
      class="field history"
      aria-label="Expressions before"
      value=""
      onChange={(event) => {
        choose(event.currentTarget.value);
        event.currentTarget.value = "";
      }}
    >
      <option value="">before…</option>
      {all.map((text) => (
        <option key={text} value={text}>
          {text}
        </option>
      ))}
    </select>
  );
}

function Words({ said, draft }: { readonly said: Said; readonly draft: string }): JSX.Element {
  if (said.text !== draft) {
    return <span class="faint">…</span>;
  }
  const { checked, count, fault } = said;
  return (
    <>
      {checked?.problems.map((problem, index) => (
        <p key={index} class={checked.isValid ? "strange-text" : "bad-text"}>
          {problem.message}
          {problem.help === null ? "" : `; ${problem.help}`}
        </p>
      ))}
      {fault === null ? null : <p class="bad-text">{fault}</p>}
      {count === null ? null : (
        <p class="faint">
          {count.isExact ? "" : "about "}
          {count.events.toLocaleString("en")} {count.events === 1n ? "event matches" : "events match"}
        </p>
      )}
    </>
  );
}

/** The server's answers on the written text, together with the rest of the filter. */
function useAnswers(page: Page, draft: string): Said {
  const [filter, tracks] = usePick(page.store, (state) => [state.filter, state.catalogue.tracks] as const);
  const [said, setSaid] = useState<Said>(NOTHING);
  const query = questionText(eventQuestion({ ...filter, text: draft }, tracks));
  useEffect(() => {
    const ending = new AbortController();
    const timer = setTimeout(() => {
      void answersFor(page, draft, query, ending.signal).then((found) => {
        if (!ending.signal.aborted) {
          setSaid(found);
        }
      });
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [page, draft, query]);
  return said;
}

async function answersFor({ client }: Page, text: string, query: string, signal: AbortSignal): Promise<Said> {
  try {
    const checked = text.trim() === "" ? null : await checkExpression(client, text, signal);
    const isAsked = checked?.isValid !== false && query !== "";
    return { text, checked, count: isAsked ? await countEvents(client, query, signal) : null, fault: null };
  } catch (error) {
    return { text, checked: null, count: null, fault: error instanceof ApiFault ? error.message : String(error) };
  }
}

/** Takes an expression as the filter's, if it can be asked. */
async function applied({ store, client }: Page, text: string, signal: AbortSignal): Promise<void> {
  const isValid = text.trim() === "" || (await checkExpression(client, text, signal).then(({ isValid: found }) => found, () => false));
  if (isValid && !signal.aborted) {
    sessionStorage.setItem(HISTORY_KEY, JSON.stringify(remembered(readHistory(), text)));
    store.update((state) => refiltered(state, { text: text.trim() === "" ? "" : text }));
  }
}

function readHistory(): readonly string[] {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(HISTORY_KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}
