// The user's definitions of pairs and periods: which events begin and end them. The page asks when a definition is entered, not while it is typed.

import type { JSX } from "preact";
import { withLens } from "../../state/analyses.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";

const FIELDS: ReadonlyArray<readonly [string, string]> = [
  ["begin", "event, or event if condition"],
  ["end", "event, or event if condition"],
  ["key", "fields that both have"],
  ["group", "a field to tell apart by"],
];

interface PairsOptions {
  readonly page: Page;
  /** The events that are looked for where none are named. */
  readonly unsaid: string;
  /** How many of the fields mean something. */
  readonly parts: number;
}

/** Without any of these, roles name the events that begin and end, or names are guessed; operations are those of Barrelfish. */
export function PairsForm({ page, unsaid, parts }: PairsOptions): JSX.Element {
  const [lens] = usePick(page.store, (state) => [state.lens] as const);
  const set = (place: number, text: string): void => page.store.update((state) => withLens(state, { pairs: FIELDS.map((_, index) => (index === place ? text : (state.lens.pairs[index] ?? ""))) }));
  return (
    <>
      {FIELDS.slice(0, parts).map(([name, hint], place) => (
        <label key={name}>
          {name} <input type="text" title={hint} placeholder={place < 2 ? unsaid : ""} value={lens.pairs[place] ?? ""} onChange={(event) => set(place, event.currentTarget.value)} />
        </label>
      ))}
    </>
  );
}

export function PeriodsForm({ page }: { readonly page: Page }): JSX.Element {
  const [lens] = usePick(page.store, (state) => [state.lens] as const);
  return (
    <label>
      periods{" "}
      <input
        type="text"
        class="wide"
        title="NAME(PARENT) : BEGIN : END; several between semicolons"
        placeholder="NAME : BEGIN : END"
        value={lens.periods.replaceAll("\n", "; ")}
        onChange={(event) => page.store.update((state) => withLens(state, { periods: event.currentTarget.value.replace(/\s*;\s*/g, "\n") }))}
      />
    </label>
  );
}
