// The names of the rows that are on the screen. They are elements, so that the keyboard reaches them and screen readers read them.

import type { JSX } from "preact";
import { choosesEvents } from "../model/filter.ts";
import { followsEvents } from "../model/filter-tracks.ts";
import { labelOf, nameOf, rowsBetween, type Row } from "../model/rows.ts";
import { toggleCurve, toggleFold, togglePin, type State } from "../state/viewer.ts";
import { usePick } from "./hooks.ts";
import { pickAtMeant } from "./item/point.ts";
import type { Page } from "./page.ts";

/** Names on rows that are lower are smaller. */
const LINE_HEIGHT = 15;

export function Labels({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [rows, scroll, size, cursor, isOfSome] = usePick(store, (state) => [state.rows, state.scroll, state.size, state.cursor?.row, choosesEvents(state.filter)] as const);
  const seen = rowsBetween(rows, scroll, scroll + size.height);
  const first = seen[0] === undefined ? 0 : rows.indexOf(seen[0]);
  return (
    <div class="labels" role="list" aria-label="Tracks">
      {seen.map((row, index) => (
        <Label key={row.key} page={page} row={row} place={{ "aria-posinset": first + index + 1, "aria-setsize": rows.length }} scroll={scroll} isBelow={row.key === cursor} isOfSome={isOfSome} />
      ))}
    </div>
  );
}

interface LabelOptions {
  readonly page: Page;
  readonly row: Row;
  /** Which one of how many rows it is, most of which are not there. */
  readonly place: { readonly "aria-posinset": number; readonly "aria-setsize": number };
  readonly scroll: State["scroll"];
  /** The pointer is on the row. */
  readonly isBelow: boolean;
  /** Only some events are meant. */
  readonly isOfSome: boolean;
}

function Label({ page, row, place: among, scroll, isBelow, isOfSome }: LabelOptions): JSX.Element {
  const { store } = page;
  const place = { top: `${row.top - scroll}px`, height: `${row.height}px`, ...(row.height < LINE_HEIGHT ? { fontSize: `${Math.round(row.height * 0.8)}px` } : {}) };
  const { track } = row;
  if (track === null) {
    return (
      <div class="label head" role="listitem" {...among} style={place}>
        <button type="button" class="plain" aria-expanded={!row.folded} onClick={() => store.update((state) => toggleFold(state, row.group))}>
          <span class="arrow" aria-hidden="true">
            {row.folded ? "▸" : "▾"}
          </span>
          {row.group} <span class="faint">{row.count}</span>
        </button>
      </div>
    );
  }
  const name = nameOf(track);
  // Rows that tell of events follow a filter of events; of all others the page says that they do not.
  const note = isOfSome && !followsEvents(track) ? "\nTold by all events, also those that the filter leaves out" : "";
  return (
    <div class={`label${track.parent === null ? "" : " nested"}${isBelow ? " below" : ""}${row.dimmed ? " dimmed" : ""}`} role="listitem" {...among} style={place} title={`${name}\n${track.id}${note}`}>
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
