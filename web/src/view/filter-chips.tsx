// The chosen filter, in the header: a chip for each part of it, which takes it away again.

import type { JSX } from "preact";
import type { Choice } from "../model/choice.ts";
import { peopleOf } from "../model/facets.ts";
import { FACETS, type Facet } from "../model/filter.ts";
import { stateLabel } from "../model/filter-values.ts";
import { halfFollowed, unfollowed } from "../model/filter-threads.ts";
import { openedPanel } from "../model/panels.ts";
import { plain } from "../model/plain.ts";
import { refiltered } from "../state/filter.ts";
import { withPanels, type State } from "../state/viewer.ts";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";

const NAMES: Readonly<Record<Facet, string>> = { cpus: "CPU", applications: "application", processes: "process", threads: "thread", states: "state", events: "event" };
/** As many are named; of more, how many there are. */
const NAMED_MAX = 2;

export function FilterChips({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [filter, tracks] = usePick(store, (state) => [state.filter, state.catalogue.tracks] as const);
  const [lacking, half] = [unfollowed(filter, tracks), halfFollowed(filter, tracks)];
  const chosen = FACETS.filter((facet) => filter[facet] !== null);
  if (chosen.length === 0 && filter.text.trim() === "") {
    return null;
  }
  const open = (): void => store.update((state) => withPanels(state, openedPanel(state.panels, "rail", "filters")));
  return (
    <ul class="chips filter-chips" aria-label="Filter">
      {filter.text.trim() === "" ? null : <Chip text={plain(filter.text)} hint={plain(filter.text)} open={open} remove={() => store.update((state) => refiltered(state, { text: "" }))} />}
      {chosen.map((facet) => {
        const text = facetText(store.state, facet);
        const doubt = lacking.includes(facet) ? `\nEvents of these traces do not say ${facet === "applications" ? "whose they are" : `their ${NAMES[facet]}`}: only rows follow this.` : "";
        const reach = half.includes(facet) ? "\nLists, counts and, with “exclude”, statistics follow this; rows of events and the overview count all threads." : "";
        return <Chip key={facet} text={`${text}${doubt === "" ? "" : " ⚠"}`} hint={`${text}${doubt}${reach}`} open={open} remove={() => store.update((state) => refiltered(state, { [facet]: null }))} />;
      })}
    </ul>
  );
}

interface ChipOptions {
  readonly text: string;
  readonly hint: string;
  readonly open: () => void;
  readonly remove: () => void;
}

function Chip({ text, hint, open, remove }: ChipOptions): JSX.Element {
  return (
    <li class="chip filter-chip" title={hint}>
      <button type="button" class="plain" onClick={open}>
        {text}
      </button>
      <button type="button" class="plain" aria-label={`Remove filter: ${text}`} onClick={remove}>
        ×
      </button>
    </li>
  );
}

/** A choice in few words: "CPU 1, 2", "5 threads", "not event sched_switch". */
export function facetText(state: State, facet: Facet): string {
  const choice: Choice<string | number> | null = state.filter[facet];
  if (choice === null) {
    return "";
  }
  const parts: string[] = [];
  if (choice.only !== null) {
    parts.push(listText(state, facet, choice.only));
  }
  if (choice.but.length > 0) {
    parts.push(`not ${listText(state, facet, choice.but)}`);
  }
  return parts.join(", ");
}

function listText(state: State, facet: Facet, items: readonly (string | number)[]): string {
  if (items.length > NAMED_MAX) {
    const plural = facet === "processes" ? "processes" : `${NAMES[facet]}s`;
    return `${items.length.toLocaleString("en")} ${plural}`;
  }
  return `${facet === "events" || facet === "cpus" ? `${NAMES[facet]} ` : ""}${items.map((item) => plain(itemText(state, facet, item))).join(", ")}`;
}

function itemText(state: State, facet: Facet, item: string | number): string {
  if (facet === "states") {
    return stateLabel(String(item));
  }
  if (facet === "cpus" || facet === "events" || facet === "applications") {
    return String(item);
  }
  const people = peopleOf(state.catalogue.tracks);
  const entries: readonly { readonly key: string | number; readonly label: string }[] = facet === "threads" ? people.threads : people.processes;
  return entries.find((entry) => entry.key === item)?.label ?? `${NAMES[facet]} ${item}`;
}
