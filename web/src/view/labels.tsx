// The names of the rows that are on the screen. They are elements, so that the keyboard reaches them and screen readers read them.

import type { JSX, RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { choosesEvents } from "../model/filter.ts";
import { followsEvents } from "../model/filter-tracks.ts";
import { plain } from "../model/plain.ts";
import { labelOf, nameOf, type Row } from "../model/rows.ts";
import { rowsOnScreen } from "../model/screen.ts";
import { namesSized } from "../state/tracks.ts";
import { toggleCurve, toggleFold, togglePin, type State } from "../state/viewer.ts";
import { useSize } from "./canvas.ts";
import { Edge } from "./edge.tsx";
import { usePick } from "./hooks.ts";
import { pickAtMeant } from "./item/point.ts";
import type { Page } from "./page.ts";

/** What a name needs beside itself, so that it is not below the star of its row. */
const NAME_MARGIN = 28;
/** Names on rows that are lower are smaller. */
const LINE_HEIGHT = 15;

export function Labels({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [rows, scroll, size, cursor, isOfSome] = usePick(store, (state) => [state.rows, state.scroll, state.size, state.cursor?.row, choosesEvents(state.filter)] as const);
  const { fixed, rolled } = rowsOnScreen({ rows, scroll, size });
  const first = rolled[0] === undefined ? 0 : rows.indexOf(rolled[0]);
  const label = (row: Row, index: number, isFixed: boolean): JSX.Element => (
    <Label key={row.key} page={page} row={row} place={{ "aria-posinset": index + 1, "aria-setsize": rows.length }} scroll={isFixed ? 0 : scroll} isFixed={isFixed} isBelow={row.key === cursor} isOfSome={isOfSome} />
  );
  return (
    <div class="labels" role="list" aria-label="Tracks">
      {fixed.map((row, index) => label(row, index, true))}
      {rolled.map((row, index) => label(row, first + index, false))}
    </div>
  );
}

/** The edge of the column of names: it is as wide as the user wants, or as the longest name on the screen. */
export function NamesEdge({ page, timeline }: { readonly page: Page; readonly timeline: RefObject<HTMLElement | null> }): JSX.Element {
  const { store } = page;
  const [size, measured] = useState(0);
  const labels = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    labels.current = timeline.current?.querySelector<HTMLElement>(".labels") ?? null;
  }, [timeline]);
  useSize(labels, () => measured(labels.current?.offsetWidth ?? 0));
  const resize = (width: number): void => store.update((state) => namesSized(state, width));
  const fit = (): void => {
    const widths = [...(labels.current?.querySelectorAll<HTMLElement>(".label") ?? [])].map(widthWanted);
    if (widths.length > 0) {
      resize(Math.max(...widths));
    }
  };
  return (
    <div class="names-edge">
      <Edge name="names" axis="x" sign={1} size={size} resize={resize} fit={fit} hint="Drag to size; double click (Enter): as wide as the longest name that is seen" />
    </div>
  );
}

/** How wide a label would be with all of its name. The name may be cut on the screen; its text is as wide as it is all the same. */
function widthWanted(label: HTMLElement): number {
  const name = label.querySelector(".name") ?? label.firstElementChild ?? label;
  const range = document.createRange();
  range.selectNodeContents(name);
  return Math.ceil(name.getBoundingClientRect().left - label.getBoundingClientRect().left + range.getBoundingClientRect().width) + NAME_MARGIN;
}

interface LabelOptions {
  readonly page: Page;
  readonly row: Row;
  /** Which one of how many rows it is, most of which are not there. */
  readonly place: { readonly "aria-posinset": number; readonly "aria-setsize": number };
  readonly scroll: State["scroll"];
  /** It is pinned, and lies on those that scroll. */
  readonly isFixed: boolean;
  /** The pointer is on the row. */
  readonly isBelow: boolean;
  /** Only some events are meant. */
  readonly isOfSome: boolean;
}

function Label({ page, row, place: among, scroll, isFixed, isBelow, isOfSome }: LabelOptions): JSX.Element {
  const { store } = page;
  const place = { top: `${row.top - scroll}px`, height: `${row.height}px`, ...(row.height < LINE_HEIGHT ? { fontSize: `${Math.round(row.height * 0.8)}px` } : {}) };
  const { track } = row;
  const fixed = isFixed ? " fixed" : "";
  if (track === null) {
    return (
      <div class={`label head${fixed}`} role="listitem" {...among} style={place}>
        <button type="button" class="plain" aria-expanded={!row.folded} title={row.counted} onClick={() => store.update((state) => toggleFold(state, row.group))}>
          <span class="arrow" aria-hidden="true">
            {row.folded ? "▸" : "▾"}
          </span>
          {plain(row.group)} <span class="faint">{row.count}</span>
        </button>
      </div>
    );
  }
  const name = nameOf(track);
  // Rows that tell of events follow a filter of events; of all others the page says that they do not.
  const note = isOfSome && !followsEvents(track) ? "\nTold by all events, also those that the filter leaves out" : "";
  return (
    <div class={`label${fixed}${track.parent === null ? "" : " nested"}${isBelow ? " below" : ""}${row.dimmed ? " dimmed" : ""}`} role="listitem" {...among} style={place} title={`${name}\n${plain(track.id)}${note}`}>
      <button type="button" class="plain name" data-row={row.key} onClick={() => pickAtMeant(page, row.key)}>
        {labelOf(track)}
      </button>
      {track.kind === "counter" ? <CurveButton page={page} id={track.id} name={name} /> : null}
      <button
        type="button"
        class="plain pin"
        aria-pressed={row.pinned}
        aria-label={row.pinned ? `Unpin ${name}` : `Pin ${name} on top`}
        title={row.pinned ? "Unpin" : "Pin on top (P)"}
        onClick={() => store.update((state) => togglePin(state, track.id))}
      >
        {row.pinned ? "★" : "☆"}
      </button>
    </div>
  );
}

/** Draws a counter as a curve with an axis, in the panel below. */
function CurveButton({ page, id, name }: { readonly page: Page; readonly id: string; readonly name: string }): JSX.Element {
  const [isDrawn] = usePick(page.store, (state) => [state.curves.tracks.includes(id)] as const);
  return (
    <button
      type="button"
      class="plain pin curve-button"
      aria-pressed={isDrawn}
      aria-label={`Curve of ${name}`}
      title={isDrawn ? "Draw no curve any more (Y)" : "Draw as a curve with an axis (Y)"}
      onClick={() => page.store.update((state) => toggleCurve(state, id))}
    >
      ∿
    </button>
  );
}
