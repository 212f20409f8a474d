// The legend below the rows: the colors of the values on the screen. Each entry chooses its value in the page's filter.

import type { JSX, RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { chosenBy, isNamed, legendOf, outTest, type LegendAct, type LegendEntry, type LegendSection } from "../model/legend.ts";
import { colourOf, css } from "../model/palette.ts";
import { plain } from "../model/plain.ts";
import { rowsSeen } from "../model/screen.ts";
import { slotOfValue } from "../model/siblings.ts";
import { refiltered } from "../state/filter.ts";
import type { State } from "../state/viewer.ts";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";
import { piecesOf } from "./words.ts";
import "./legend.css";

/** The legend follows the window that often. */
const PACE_MS = 150;

/** The switch above the names. */
export function LegendSwitch({ page }: { readonly page: Page }): JSX.Element {
  const [isOn] = usePick(page.store, (state) => [state.legend] as const);
  return (
    <button
      type="button"
      class="plain arrow-switch"
      aria-label="Legend of colors"
      aria-pressed={isOn}
      title={isOn ? "Hide the legend (K)" : "Show which colors mean what, and filter by them (K)"}
      onClick={() => page.store.update((state) => ({ ...state, legend: !state.legend }))}
    >
      <svg width="14" height="14" viewBox="0 0 14 14" fill="currentColor" aria-hidden="true">
        <path d="M1 2h3v3h-3zM1 9h3v3h-3z" />
        <path d="M6 3h7v1.200h-7zM6 10h7v1.200h-7z" opacity="0.7" />
      </svg>
    </button>
  );
}

export function Legend({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [isOn] = usePick(store, (state) => [state.legend] as const);
  return isOn ? <Entries page={page} /> : null;
}

/** The sections for the rows on the screen, also those that the legend itself covers with so many pixels: else it would change with its own height. */
function sectionsOf(page: Page, state: State, covered: number): readonly LegendSection[] {
  const { status, view, catalogue, colouring } = state;
  if (status === null || view === null) {
    return [];
  }
  const pieces = rowsSeen(state, covered).flatMap(({ track }) => (track === null || track.kind === "counter" || track.kind === "heat" || track.kind === "arrows" ? [] : piecesOf(page, state, track)));
  return legendOf(pieces, view, status.extent.begin, catalogue, colouring);
}

/** The sections for the values on the screen, a moment after it has changed. */
function useSections(page: Page, bar: RefObject<HTMLElement | null>): readonly LegendSection[] {
  const { store } = page;
  const [sections, set] = useState(() => sectionsOf(page, store.state, 0));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let before: readonly unknown[] = [];
    const look = (): void => {
      const { view, rows, scroll, size, arrivals, catalogue, colouring } = store.state;
      const parts = [view, rows, scroll, size, arrivals, catalogue, colouring];
      if (parts.some((part, index) => part !== before[index])) {
        before = parts;
        timer ??= setTimeout(() => {
          timer = null;
          set(sectionsOf(page, store.state, bar.current?.offsetHeight ?? 0));
        }, PACE_MS);
      }
    };
    look();
    const end = store.subscribe(look);
    return () => {
      end();
      if (timer !== null) {
        clearTimeout(timer);
      }
    };
  }, [page, bar]);
  return sections;
}

function Entries({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const bar = useRef<HTMLDivElement>(null);
  const sections = useSections(page, bar);
  const [filter, catalogue] = usePick(store, (state) => [state.filter, state.catalogue, state.theme, state.colouring] as const);
  const isOut = useMemo(() => outTest(filter, catalogue), [filter, catalogue]);
  const [current, setCurrent] = useState("");
  const ids = sections.flatMap(({ title, entries }) => entries.filter(({ facet }) => facet !== null).map((entry) => idOf(title, entry)));
  const first = ids.includes(current) ? current : ids[0];
  /** Arrows go from entry to entry. */
  const step = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const buttons = [...(bar.current?.querySelectorAll<HTMLElement>(".legend-entry") ?? [])];
    const at = buttons.indexOf(event.target as HTMLElement);
    const next = at < 0 ? undefined : event.key === "Home" ? buttons[0] : event.key === "End" ? buttons.at(-1) : by === undefined ? undefined : buttons[Math.min(buttons.length - 1, Math.max(0, at + by))];
    if (next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      next.focus();
    }
  };
  const act = (entry: LegendEntry, how: LegendAct): void => store.update((state) => refiltered(state, chosenBy(entry, how, state.filter, state.catalogue)));
  const button = (title: string, entry: LegendEntry): JSX.Element => (
    <button
      type="button"
      class={`plain legend-entry${isOut(entry) ? " out" : ""}`}
      tabIndex={idOf(title, entry) === first ? 0 : -1}
      aria-pressed={isNamed(entry, filter)}
      title={`${plain(entry.label)}\nOnly this; with Ctrl this as well; with Alt all but this`}
      onFocus={() => setCurrent(idOf(title, entry))}
      onClick={(event) => act(entry, event.altKey ? "but" : event.ctrlKey || event.metaKey || event.shiftKey ? "also" : "only")}
    >
      <Swatch state={store.state} entry={entry} />
      <span class="legend-name">{plain(entry.label)}</span>
    </button>
  );
  return (
    <div class="legend" role="toolbar" aria-label="Legend" ref={bar} onKeyDown={step}>
      <div class="legend-sections">
        {sections.length === 0 ? <span class="faint">Nothing with a color is in the window.</span> : null}
        {sections.map(({ title, entries, more }) => (
          <div key={title} class="legend-section" role="group" aria-label={title}>
            <span class="faint">{title}</span>
            {entries.map((entry) => (
              <span key={idOf(title, entry)}>
                {entry.facet === null ? (
                  <span class="legend-plain">
                    <Swatch state={store.state} entry={entry} /> {plain(entry.label)}
                  </span>
                ) : (
                  button(title, entry)
                )}
              </span>
            ))}
            {more === 0 ? null : <span class="faint">{more.toLocaleString("en")} more</span>}
          </div>
        ))}
      </div>
      <button type="button" class="plain legend-close" aria-label="Close the legend" title="Close (K)" onClick={() => store.update((state) => ({ ...state, legend: false }))}>
        ×
      </button>
    </div>
  );
}

function idOf(title: string, { facet, key }: LegendEntry): string {
  return `${title} ${facet} ${key}`;
}

function Swatch({ state: { theme, colouring, catalogue }, entry: { value } }: { readonly state: State; readonly entry: LegendEntry }): JSX.Element {
  return <span class="legend-swatch" aria-hidden="true" style={{ background: css(colourOf(theme, value.kind, value.label, slotOfValue(value, colouring, catalogue.tracks))) }} />;
}
