// The box in the header that finds everything: tracks, threads, processes, events and notes by name, times, and all commands of keys.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { only } from "../model/choice.ts";
import { eventNames } from "../model/facets.ts";
import type { Note } from "../model/notes.ts";
import { answerTo, type OmniHit, type OmniWorld } from "../model/omnibox.ts";
import { plain } from "../model/plain.ts";
import { refiltered } from "../state/filter.ts";
import { Store } from "../state/store.ts";
import { trackSeen } from "../state/tracks.ts";
import { clockOf, markShown, type State } from "../state/viewer.ts";
import { nanos } from "../units/time.ts";
import { usePick } from "./hooks.ts";
import type { Command, Key } from "./keys.ts";
import { notesOf } from "./notes/desk.ts";
import type { Page } from "./page.ts";
import { countingOf } from "./rail/counting.ts";
import "./omnibox.css";

/** A wish from elsewhere: the box with a text in it. `times` tells one wish from the next. */
interface Wish {
  readonly query: string;
  readonly times: number;
}

const wishes = new WeakMap<Page, Store<Wish>>();

function wishesOf(page: Page): Store<Wish> {
  let found = wishes.get(page);
  if (found === undefined) {
    found = new Store<Wish>({ query: "", times: 0 });
    wishes.set(page, found);
  }
  return found;
}

/** Puts the focus into the box, with a text that says the kind of search: `>` for commands, `@` for times. */
export function openOmnibox(page: Page, query: string): void {
  wishesOf(page).update(({ times }) => ({ query, times: times + 1 }));
}

/** No key was pressed: a command was chosen by its name. */
const NO_KEY: Key = { key: "", code: "", shift: false, control: false, alt: false };
const LIST = "omnibox-hits";
/** So long the name of a row that was found lights up. */
const FOUND_MS = 1_500;
const NO_NOTES: readonly Note[] = [];

export function Omnibox({ page, commands }: { readonly page: Page; readonly commands: readonly Command[] }): JSX.Element {
  const { store } = page;
  const [wish] = usePick(wishesOf(page), (state) => [state] as const);
  const [query, setQuery] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const before = useRef<Element | null>(null);
  const answer = useAnswer(page, query, isOpen, commands);
  // At once, so that the next key press is already for the box.
  useLayoutEffect(() => {
    const { current } = box;
    if (wish.times > 0 && current !== null) {
      current.value = wish.query;
      current.focus();
      current.setSelectionRange(wish.query.length, wish.query.length);
      setQuery(wish.query);
      setChosen(0);
      setOpen(true);
    }
  }, [wish]);
  // The chosen hit is seen.
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [chosen, answer]);
  const close = (): void => {
    setOpen(false);
    setQuery("");
    setChosen(0);
    const { current } = before;
    before.current = null;
    if (current instanceof HTMLElement && current.isConnected) {
      current.focus();
    }
    box.current?.blur();
  };
  const go = (hit: OmniHit | undefined): void => {
    if (hit === undefined) {
      return;
    }
    const { goal } = hit;
    if (goal.kind === "query") {
      setQuery(goal.query);
      setChosen(0);
      box.current?.focus();
      return;
    }
    close();
    if (goal.kind === "command") {
      const command = commands[goal.index];
      store.update((state) => command?.act(state, NO_KEY) ?? state);
      command?.run?.(page, NO_KEY);
    } else if (goal.kind === "note") {
      notesOf(page).show(goal.note);
    } else {
      store.update((state) => arrived(state, goal));
      if (goal.kind === "track") {
        requestAnimationFrame(() => requestAnimationFrame(showName));
      }
    }
  };
  const press = (event: KeyboardEvent): void => {
    const { length } = answer.hits;
    event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      go(answer.hits[chosen]);
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && length > 0) {
      event.preventDefault();
      setOpen(true);
      setChosen((chosen + (event.key === "ArrowDown" ? 1 : length - 1)) % length);
    }
  };
  const isShown = isOpen && (answer.hits.length > 0 || answer.note !== null);
  return (
    <div class="omnibox">
      <input
        ref={box}
        class="field"
        type="text"
        role="combobox"
        aria-label="Find tracks, threads, events, notes, times, commands"
        aria-expanded={isShown}
        aria-controls={LIST}
        aria-autocomplete="list"
        {...(isShown && answer.hits.length > 0 ? { "aria-activedescendant": `${LIST}-${chosen}` } : {})}
        placeholder="Find…  /   > commands   @ times"
        spellcheck={false}
        autocomplete="off"
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setChosen(0);
          setOpen(true);
        }}
        onFocus={(event) => {
          before.current ??= event.relatedTarget instanceof Element ? event.relatedTarget : null;
          setOpen(true);
        }}
        onBlur={() => setOpen(false)}
        onKeyDown={press}
      />
      <ul class="omnibox-hits" id={LIST} role="listbox" aria-label="Found" ref={list} hidden={!isShown}>
        {answer.hits.map((hit, index) => (
          <li
            key={hit.key}
            id={`${LIST}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerDown={(event) => {
              event.preventDefault();
              go(hit);
            }}
            onPointerMove={() => setChosen(index)}
          >
            <span class="omnibox-what">{hit.what}</span>
            <span class="omnibox-label">{plain(hit.label)}</span>
            <span class="omnibox-detail faint">{plain(hit.detail)}</span>
          </li>
        ))}
        {answer.note === null ? null : (
          <li class="hint" role="option" aria-selected={false} aria-disabled="true">
            {answer.note}
          </li>
        )}
      </ul>
    </div>
  );
}

/** The hits; nothing is looked for while the box is closed. */
function useAnswer(page: Page, query: string, isOpen: boolean, commands: readonly Command[]): ReturnType<typeof answerTo> {
  const { store } = page;
  const counting = countingOf(page);
  const [catalogue, view, status, style] = usePick(store, (state) => [state.catalogue, state.view, state.status, state.timeStyle] as const);
  const [counts] = usePick(counting.store, (state) => [state.all] as const);
  const [file] = usePick(notesOf(page).store, (state) => [state.file] as const);
  // Names of events that are not on the screen yet are found all the same.
  useEffect(() => (isOpen ? counting.want() : undefined), [isOpen, counting]);
  const events = useMemo(() => eventNames(catalogue, counts), [catalogue.values, counts]);
  return useMemo(() => {
    if (!isOpen) {
      return { hits: [], note: null };
    }
    const from = view === null ? nanos(0) : nanos(view.begin + view.span / 2n);
    const times = status === null ? null : { clock: clockOf(store.state), extent: status.extent, from };
    const world: OmniWorld = { catalogue, events, notes: file?.notes ?? NO_NOTES, commands, times };
    return answerTo(query, world);
  }, [isOpen, query, catalogue, events, file, commands, view, status, style]);
}

/** The name of the row lights up: it may have been on the screen before. */
function showName(): void {
  const name = document.querySelector(".label.below");
  name?.animate([{ backgroundColor: getComputedStyle(name).getPropertyValue("--accent") }, {}], { id: "found", duration: FOUND_MS, easing: "ease-out" });
}

/** Goes there: scrolls to a track, leaves nothing but an event, shows a time. */
function arrived(state: State, goal: OmniHit["goal"]): State {
  switch (goal.kind) {
    case "track":
      return trackSeen(state, goal.track);
    case "event":
      return refiltered(state, { events: only([goal.name]) });
    case "time":
      return markShown(state, goal.time);
    default:
      return state;
  }
}
