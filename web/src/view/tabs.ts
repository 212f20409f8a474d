// The tabs of the panels. A tab is a component that has the page; it asks for and shows its content.

import type { JSX } from "preact";
import type { Side } from "../model/panels.ts";
import { Inspector } from "./item/inspector.tsx";
import { EventsTab } from "./events/tab.tsx";
import { later } from "./later.tsx";
import { Notes } from "./notes/tab.tsx";
import type { State } from "../state/viewer.ts";
import type { Page } from "./page.ts";
import { Filters } from "./rail/filters.tsx";
import { Tracks } from "./rail/tracks.tsx";

export interface Tab {
  /** Small letters; stands in the URL. */
  readonly id: string;
  readonly title: string;
  /** The purpose of the tab, and its keys. */
  readonly hint: string;
  readonly view: (props: { readonly page: Page }) => JSX.Element;
  /** Whether there is anything that it could show; without it, there always is. */
  readonly isThere?: (state: State) => boolean;
}

/** The tabs of each panel, in their order. A panel without any is not there. */
export const TABS: Readonly<Record<Side, readonly Tab[]>> = {
  rail: [
    { id: "tracks", title: "Tracks", hint: "Which tracks are shown, and where (B)", view: Tracks },
    { id: "filters", title: "Filters", hint: "What is seen of the traces (B)", view: Filters },
    { id: "notes", title: "Notes", hint: "What people have to say about the traces (M makes one)", view: Notes },
    { id: "record", title: "Record", hint: "The session that records these traces: which events, filters, snapshots, its end (B)", view: later(async () => (await import("./record/tab.tsx")).Record), isThere: (state) => state.recording !== null },
  ],
  drawer: [
    { id: "events", title: "Events", hint: "All events in the order of time (Alt+1)", view: EventsTab },
    { id: "latency", title: "Latency", hint: "How long what takes, and when: the longest, their distribution, statistics (Alt+2)", view: later(async () => (await import("./analyses/latency.tsx")).Latency) },
    { id: "statistics", title: "Statistics", hint: "Analyses as tables and charts, of all, of the window, of the selection (Alt+3)", view: later(async () => (await import("./analyses/statistics.tsx")).Statistics) },
    { id: "counters", title: "Counters", hint: "Counters as curves with axes, over the window (Alt+4; Y adds the one below the pointer)", view: later(async () => (await import("./curves/tab.tsx")).CurvesTab) },
  ],
  inspector: [{ id: "item", title: "Item", hint: "The sums of what is selected, and all that is known of what is picked (I)", view: Inspector }],
};

/** The tabs that a panel has now, by their ids, which are the same text as long as they are the same. */
export function tabsThere(side: Side, state: State): string {
  return TABS[side].filter(({ isThere }) => isThere?.(state) ?? true).map(({ id }) => id).join();
}
