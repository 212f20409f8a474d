// The state of the view, as the part of the URL behind `#`: opening it shows the same view.
//
// Times are whole nanoseconds on the axis of the traces, tracks are called by their stable ids. Unknown parts are left out, as
// a URL may come from an older or newer page. The token is never part of it.

import { nanos, type Nanos } from "../units/time.ts";
import type { TimeStyle } from "./clock.ts";
import { curveParts, readCurves, type Curves } from "./curves.ts";
import { filterParts, readFilter } from "./filter-url.ts";
import type { Filter } from "./filter.ts";
import type { Item } from "./items.ts";
import { layoutParts, readLayout, type Layout } from "./layout.ts";
import { decodeLens, encodeLens, type Lens } from "./lens.ts";
import { listedParts, readListed, type Listed } from "./listed.ts";
import type { Colouring } from "./palette.ts";
import { FOLLOW_SPAN } from "./follow.ts";
import { decodePanels, encodePanels, type Panels } from "./panels.ts";
import type { Selection } from "./selection.ts";
import type { Viewport } from "./viewport.ts";

/** Everything about a page that a URL holds. */
export interface Seen {
  readonly view: Viewport | null;
  /** How much is seen while the window goes along with traces that grow; `null`: everything. Where there is a window, it is held back. */
  readonly follow: Nanos | null;
  readonly selection: Selection | null;
  readonly item: Item | null;
  /** When the list of events is. */
  readonly mark: Nanos | null;
  /** Whether arrows are drawn between rows. */
  readonly arrows: boolean;
  /** The things that have colors of their own where CPUs run threads. */
  readonly colouring: Colouring;
  /** Whether the legend of colors is shown. */
  readonly legend: boolean;
  readonly layout: Layout;
  readonly filter: Filter;
  readonly panels: Panels;
  readonly lens: Lens;
  readonly listed: Listed;
  /** Which counters are drawn as curves. */
  readonly curves: Curves;
  readonly timeStyle: TimeStyle;
  /** How far down the rows are scrolled, in CSS pixels. */
  readonly scroll: number;
}

/** The text behind `#`, without it. */
export function encode(seen: Seen): string {
  const parts = new URLSearchParams();
  if (seen.view !== null) {
    parts.set("at", windowText(seen.view));
  }
  if (seen.view === null && seen.follow !== FOLLOW_SPAN) {
    parts.set("follow", seen.follow === null ? "all" : String(seen.follow));
  }
  if (seen.selection !== null) {
    parts.set("selected", windowText(seen.selection));
    Object.values(seen.selection.rows ?? {}).forEach((key: string) => parts.append("on", key));
  }
  if (seen.item !== null) {
    parts.set("item", `${seen.item.time}~${seen.item.track}`);
  }
  if (seen.mark !== null) {
    parts.set("mark", String(seen.mark));
  }
  if (!seen.arrows) {
    parts.set("arrows", "hidden");
  }
  if (seen.colouring !== "thread") {
    parts.set("colours", seen.colouring);
  }
  if (seen.legend) {
    parts.set("legend", "1");
  }
  layoutParts(seen.layout).forEach(([name, text]) => parts.append(name, text));
  filterParts(seen.filter).forEach(([name, text]) => parts.append(name, text));
  const panels = encodePanels(seen.panels);
  if (panels !== "") {
    parts.set("panels", panels);
  }
  encodeLens(seen.lens).forEach(([name, text]) => parts.append(name, text));
  listedParts(seen.listed).forEach(([name, text]) => parts.append(name, text));
  curveParts(seen.curves).forEach(([name, text]) => parts.append(name, text));
  if (seen.timeStyle !== "relative") {
    parts.set("time", seen.timeStyle);
  }
  if (seen.scroll > 0) {
    parts.set("down", String(Math.round(seen.scroll)));
  }
  // These are plain characters behind `#`, and easier to read than their codes.
  return parts.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%7E", "~").replaceAll("%2C", ",");
}

/** The view that a text behind `#` describes. */
export function decodeUrl(text: string): Seen {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const scroll = Number(parts.get("down") ?? 0);
  return {
    view: readWindow(parts.get("at")),
    follow: readFollow(parts.get("follow")),
    selection: readSelection(parts),
    item: readItem(parts.get("item")),
    mark: readTime(parts.get("mark")),
    arrows: parts.get("arrows") !== "hidden",
    colouring: parts.get("colours") === "application" ? "application" : "thread",
    legend: parts.get("legend") === "1",
    layout: readLayout(parts),
    filter: readFilter(parts),
    panels: decodePanels(parts.get("panels") ?? ""),
    lens: decodeLens(parts),
    listed: readListed(parts),
    curves: readCurves(parts),
    timeStyle: parts.get("time") === "absolute" ? "absolute" : "relative",
    scroll: Number.isFinite(scroll) && scroll > 0 ? Math.round(scroll) : 0,
  };
}

function readTime(text: string | null): Nanos | null {
  return /^-?\d{1,19}$/.test(text ?? "") ? nanos(BigInt(text ?? 0)) : null;
}

function readFollow(text: string | null): Nanos | null {
  const span = /^[1-9]\d{0,18}$/.test(text ?? "") ? nanos(BigInt(text ?? 0)) : FOLLOW_SPAN;
  return text === "all" ? null : span;
}

function windowText(view: Viewport): string {
  return `${view.begin}~${view.span}`;
}

function readWindow(text: string | null): Viewport | null {
  const found = /^(-?\d{1,19})~(\d{1,19})$/.exec(text ?? "");
  const [, begin, span] = found ?? [];
  return begin === undefined || span === undefined ? null : { begin: nanos(BigInt(begin)), span: nanos(BigInt(span)) };
}

function readSelection(parts: URLSearchParams): Selection | null {
  const [window, [from, to]] = [readWindow(parts.get("selected")), parts.getAll("on")];
  return window === null || from === undefined || to === undefined ? window : { ...window, rows: { from, to } };
}

function readItem(text: string | null): Item | null {
  const [, time, track] = /^(-?\d{1,19})~(.+)$/s.exec(text ?? "") ?? [];
  return time === undefined || track === undefined ? null : { track, time: nanos(BigInt(time)) };
}
