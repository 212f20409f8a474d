// The box for patterns: switches all events on or off that are called so, under a filter, and says which events and programs matched.

import type { JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import type { Vocabulary } from "../../model/completion.ts";
import { matchedText, patternsIn, type Recording, type Switching, type TriggerEffect } from "../../model/recording.ts";
import type { Switched } from "../../state/record.ts";
import { usePick } from "../hooks.ts";
import { useOffers } from "../offers.tsx";
import type { Page } from "../page.ts";
import { countingOf } from "../rail/counting.ts";
import { learnFields } from "../rail/vocabulary.ts";
import { recordOf } from "./desk.ts";
import { Refused } from "./refused.tsx";

/** The texts in the boxes. */
export interface Draft {
  readonly patterns: string;
  readonly filter: string;
}

interface FormOptions {
  readonly page: Page;
  readonly recording: Recording;
  readonly draft: Draft;
  readonly change: (draft: Draft) => void;
}

export function SwitchForm({ page, recording, draft, change }: FormOptions): JSX.Element {
  const desk = recordOf(page);
  const [busy, switched, refusal] = usePick(desk.store, (state) => [state.busy === "box", state.switched, state.refusal] as const);
  const id = useId();
  const patterns = patternsIn(draft.patterns);
  const filter = draft.filter.trim() === "" ? null : draft.filter.trim();
  const isOff = busy || patterns.length === 0;
  const act = (kind: Switching): void => {
    if (!isOff) {
      void desk.change(kind, patterns, filter);
    }
  };
  const [repeat, setRepeat] = useState(false);
  const trigger = (effect: TriggerEffect): void => {
    if (!isOff) {
      void desk.trigger(effect, patterns, filter, repeat);
    }
  };
  const isRefused = refusal?.place === "box";
  return (
    <section aria-label="Switch events by name">
      <form
        class="record-form"
        onSubmit={(event) => {
          event.preventDefault();
          act("enable");
        }}
      >
        <Patterns recording={recording} draft={draft} change={change} isRefused={isRefused} told={`${id}-refused`} />
        <FilterBox page={page} recording={recording} draft={draft} change={change} isRefused={isRefused} told={`${id}-refused`} submit={() => act("enable")} />
        <div class="rail-bar">
          <button type="submit" class="button small" disabled={isOff} title="Records events that are called so, under this filter (Enter)">
            Switch on
          </button>
          <button type="button" class="button small" disabled={isOff} title="Does not record them any more" onClick={() => act("disable")}>
            Switch off
          </button>
          <button type="button" class="button small" disabled={isOff} title={filter === null ? "Takes the filters of those away that are on" : "Puts this filter on those that are on"} onClick={() => act("filter")}>
            {filter === null ? "No filter" : "Set filter"}
          </button>
        </div>
        <div class="rail-bar" role="group" aria-label="Trigger">
          <button type="button" class="button small" disabled={isOff} title="Records from such an event on" onClick={() => trigger("start")}>
            Start at
          </button>
          <button type="button" class="button small" disabled={isOff} title="Records no more after such an event" onClick={() => trigger("stop")}>
            Stop at
          </button>
          {recording.mode === "overwrite" ? (
            <button type="button" class="button small" disabled={isOff} title="Writes what is in memory at such an event, and goes on" onClick={() => trigger("snapshot")}>
              Snapshot at
            </button>
          ) : null}
          <label title="At each such event; without it once, until the trigger is armed again">
            <input type="checkbox" checked={repeat} onChange={(event) => setRepeat(event.currentTarget.checked)} /> each time
          </label>
        </div>
      </form>
      <div role="status">{switched === null ? null : <Matches switched={switched} take={(name) => change({ ...draft, patterns: name })} />}</div>
      <Refused refusal={refusal} place="box" id={`${id}-refused`} />
    </section>
  );
}

interface BoxOptions {
  readonly recording: Recording;
  readonly draft: Draft;
  readonly change: (draft: Draft) => void;
  readonly isRefused: boolean;
  /** Where it is said why. */
  readonly told: string;
}

/** Names of events, and of all of a provider. */
function Patterns({ recording, draft, change, isRefused, told }: BoxOptions): JSX.Element {
  const id = useId();
  const names = recording.classes.map(({ name }) => name);
  const providers = [...new Set(names.flatMap((name) => (name.includes(":") ? [`${name.split(":")[0]}:*`] : [])))];
  return (
    <>
      <input
        class="field wide"
        type="text"
        list={id}
        placeholder="Events, as net:*"
        aria-label="Events by name"
        title="Names of events: several between spaces, * stands for any text"
        aria-invalid={isRefused}
        aria-describedby={told}
        autocomplete="off"
        spellcheck={false}
        value={draft.patterns}
        onInput={(event) => change({ ...draft, patterns: event.currentTarget.value })}
      />
      <datalist id={id}>
        {[...providers, ...names].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

/** The filter, with completions. */
function FilterBox({ page, recording, draft, change, isRefused, told, submit }: BoxOptions & { readonly page: Page; readonly submit: () => void }): JSX.Element {
  const box = useRef<HTMLInputElement>(null);
  const vocabulary = (): Vocabulary => ({ ...countingOf(page).store.state.vocabulary, events: recording.classes.map(({ name }) => name) });
  const offers = useOffers(box, vocabulary, (filter) => change({ ...draft, filter }));
  const press = (event: KeyboardEvent): void => {
    if (offers.press(event)) {
      event.stopPropagation();
    } else if (event.key === "Escape" && offers.isOpen) {
      event.preventDefault();
      event.stopPropagation();
      offers.close();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      offers.close();
      submit();
    }
  };
  return (
    <div class="record-filter">
      <input
        ref={box}
        class="field wide mono"
        type="text"
        role="combobox"
        aria-expanded={offers.isOpen}
        placeholder="Filter, as port == 443"
        aria-label="Filter of these events"
        {...offers.aria}
        aria-invalid={isRefused}
        aria-describedby={told}
        autocomplete="off"
        spellcheck={false}
        value={draft.filter}
        onInput={(event) => {
          change({ ...draft, filter: event.currentTarget.value });
          offers.offer();
        }}
        onKeyDown={press}
        onFocus={() => learnFields(page)}
        onBlur={offers.close}
      />
      {offers.list}
    </div>
  );
}

/** The matches, names that are near patterns without one, and the notes of the recorder. */
function Matches({ switched, take }: { readonly switched: Switched; readonly take: (name: string) => void }): JSX.Element {
  const { act, matched } = switched;
  return (
    <>
      <p class="hint record-matched">{matchedText(act, matched)}</p>
      {matched.unmatched.map(({ pattern, near }) => (
        <p key={pattern} class="hint">
          No event of a program that runs is called <code>{pattern}</code>
          {near.length === 0 ? "." : "; there is "}
          {near.map((name) => (
            <button key={name} type="button" class="plain link near" onClick={() => take(name)}>
              {name}
            </button>
          ))}
        </p>
      ))}
      {matched.notes.map((note) => (
        <p key={note} class={`hint record-note${note.includes("\n") ? " mono" : ""}`}>
          {note.trimEnd()}
        </p>
      ))}
    </>
  );
}
