// One list of a facet's entries: a box to search it, a line for each, how many events each has.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Entry } from "../../model/facets.ts";
import { plain } from "../../model/plain.ts";
import { find, findable } from "../../model/search.ts";
import { useLines } from "./lines.ts";
import { VirtualList } from "./virtual.tsx";

/** Longer lists have a box to search them. */
const SEARCH_FROM = 9;
const LINES_MAX = 9;
const LINE_HEIGHT = 24;

export interface FacetOptions<T extends string | number> {
  readonly title: string;
  readonly entries: readonly Entry<T>[];
  /** Whether all, some or nothing of an entry is chosen. */
  readonly shareOf: (entry: Entry<T>) => "all" | "some" | "none";
  readonly toggle: (entry: Entry<T>, isIn: boolean) => void;
  /** Nothing but this, or all but this. */
  readonly focus: (entry: Entry<T>, but: boolean) => void;
  /** Chooses all again; `null` if all are chosen. */
  readonly clear: (() => void) | null;
  /** The message in place of an empty list, or below a list. */
  readonly note: string | null;
}

export function FacetList<T extends string | number>(options: FacetOptions<T>): JSX.Element {
  const { title, entries, clear, note } = options;
  const [isOpen, setOpen] = useState(true);
  const [query, setQuery] = useState("");
  const findables = useMemo(() => entries.map((entry) => findable(entry, `${entry.label} ${entry.detail}`)), [entries]);
  const found = useMemo(() => (query.trim() === "" ? entries : find(findables, query).map((hit) => hit.item)), [findables, query]);
  return (
    <section class="facet" aria-label={title}>
      <div class="facet-head">
        <button type="button" class="plain facet-title" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span class="arrow" aria-hidden="true">
            {isOpen ? "▾" : "▸"}
          </span>
          {title} <span class="faint">{entries.length === 0 ? "" : entries.length.toLocaleString("en")}</span>
        </button>
        {clear === null ? null : (
          <button type="button" class="plain facet-clear" onClick={clear} aria-label={`Clear: ${title}`} title="Choose all of these again">
            clear
          </button>
        )}
      </div>
      {isOpen && entries.length >= SEARCH_FROM ? (
        <input class="field" type="search" placeholder={`Search ${title.toLowerCase()}`} aria-label={`Search ${title.toLowerCase()}`} value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      ) : null}
      {isOpen && found.length > 0 ? <Lines options={options} found={found} /> : null}
      {isOpen && found.length === 0 && entries.length > 0 ? <p class="hint">Nothing is called like that.</p> : null}
      {isOpen && note !== null ? <p class="hint">{note}</p> : null}
    </section>
  );
}

function Lines<T extends string | number>({ options, found }: { readonly options: FacetOptions<T>; readonly found: readonly Entry<T>[] }): JSX.Element {
  const { box, shown, step } = useLines(found.length);
  return (
    <div ref={box} onKeyDown={step}>
      <VirtualList
        items={found}
        height={LINE_HEIGHT}
        linesMax={LINES_MAX}
        keyOf={(entry) => String(entry.key)}
        label={options.title}
        shown={shown}
        render={(entry, index) => <Line options={options} entry={entry} index={index} />}
      />
    </div>
  );
}

interface LineOptions<T extends string | number> {
  readonly options: FacetOptions<T>;
  readonly entry: Entry<T>;
  readonly index: number;
}

function Line<T extends string | number>({ options, entry, index }: LineOptions<T>): JSX.Element {
  const share = options.shareOf(entry);
  const { count } = entry;
  const [label, detail] = [plain(entry.label), plain(entry.detail)];
  return (
    <div class={`choice${share === "none" ? " out" : ""}`} data-line={index}>
      <input
        type="checkbox"
        checked={share === "all"}
        ref={(element) => {
          if (element !== null) {
            element.indeterminate = share === "some";
          }
        }}
        aria-label={label}
        onChange={(event) => options.toggle(entry, event.currentTarget.checked)}
      />
      <button
        type="button"
        class="plain choice-name"
        title={`${label}${detail === "" ? "" : ` · ${detail}`}\nOnly this; with Alt: all but this`}
        aria-label={`Only ${label} ${detail}`.trimEnd()}
        onClick={(event) => options.focus(entry, event.altKey)}
      >
        {label} <span class="faint">{detail}</span>
      </button>
      <span class="count">{count === null ? "" : count.toLocaleString("en")}</span>
    </div>
  );
}
