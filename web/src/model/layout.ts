// The user's layout of the tracks: which are shown, pinned, folded, in which order, how high. As plain lists of names, which a URL holds and
// which can be kept under a name.

import { cssPx, type CssPx } from "../units/screen.ts";
import type { Track } from "./catalogue.ts";

/** How high rows are. */
export type RowSize = "small" | "plain" | "large";

export const ROW_SIZES: readonly RowSize[] = ["small", "plain", "large"];

/** All of it stands in the URL, as far as it is short. */
export interface Layout {
  /** Ids of tracks that stand on top, in this order. */
  readonly pinned: readonly string[];
  /** Ids of tracks that are not shown. */
  readonly hidden: readonly string[];
  /** Groups of which only the head is shown. */
  readonly folded: readonly string[];
  /** Groups of which no track is shown but those in `shown`. A group may have ten thousands of tracks, which would be no list for a URL. */
  readonly closed: readonly string[];
  /** Ids of tracks that are shown although their group is not. */
  readonly shown: readonly string[];
  /** Groups in the order that the user has given them; others stand behind them, in their own order. */
  readonly groups: readonly string[];
  /** Ids of tracks with rows lower and higher than others. */
  readonly small: readonly string[];
  readonly large: readonly string[];
  /** How high all rows are. */
  readonly size: RowSize;
  /** Tracks in which nothing happens in the window are not shown, as far as that is known. */
  readonly active: boolean;
  /** How wide the column of names is; `null`: the user has not sized it. */
  readonly names: CssPx | null;
}

const NAMES_MIN = 72;
const NAMES_MAX = 1_200;

export const PLAIN_LAYOUT: Layout = { pinned: [], hidden: [], folded: [], closed: [], shown: [], groups: [], small: [], large: [], size: "plain", active: false, names: null };

/** Tests whether the user wants to see a track at all. */
export function shownTest(layout: Layout): (track: Track) => boolean {
  const [hidden, closed, shown] = [new Set(layout.hidden), new Set(layout.closed), new Set(layout.shown)];
  return (track) => !hidden.has(track.id) && (!closed.has(track.group) || shown.has(track.id));
}

/** Shows some tracks, or hides them. `all` are all tracks that there are: a group is hidden by its name as soon as all of it is. */
export function withShown(layout: Layout, tracks: readonly Track[], isShown: boolean, all: readonly Track[]): Layout {
  const ids = new Set(tracks.map((track) => track.id));
  const others = (list: readonly string[]): readonly string[] => (list.some((id) => ids.has(id)) ? list.filter((id) => !ids.has(id)) : list);
  const closed = new Set(layout.closed);
  const inClosed = tracks.filter((track) => closed.has(track.group)).map((track) => track.id);
  if (isShown) {
    const next = { ...layout, hidden: others(layout.hidden), shown: [...others(layout.shown), ...inClosed] };
    return tidied(next, tracks, all);
  }
  const inOpen = tracks.filter((track) => !closed.has(track.group)).map((track) => track.id);
  return tidied({ ...layout, hidden: [...others(layout.hidden), ...inOpen], shown: others(layout.shown) }, tracks, all);
}

/** Smaller groups are no long lists: tracks that come into them later are shown. */
const CLOSED_MIN = 8;

/** A group with all or none of its tracks hidden need not name them one by one. */
function tidied(layout: Layout, touched: readonly Track[], all: readonly Track[]): Layout {
  const isThere = shownTest(layout);
  let next = layout;
  for (const group of new Set(touched.map((track) => track.group))) {
    const tracks = all.filter((track) => track.group === group);
    const count = tracks.filter(isThere).length;
    if ((count === 0 && tracks.length >= CLOSED_MIN) || count === tracks.length) {
      const own = new Set(tracks.map((track) => track.id));
      const others = (list: readonly string[]): readonly string[] => list.filter((id) => !own.has(id));
      const closed = next.closed.filter((other) => other !== group);
      next = { ...next, hidden: others(next.hidden), shown: others(next.shown), closed: count === 0 ? [...closed, group] : closed };
    }
  }
  return next;
}

/** Everything is shown. */
export function allShown(layout: Layout): Layout {
  return { ...layout, hidden: [], closed: [], shown: [], active: false };
}

/** A list with an item in the place of another one, which comes behind it or, where it came from above, before it. */
export function movedTo(list: readonly string[], item: string, to: string): readonly string[] {
  const [from, place] = [list.indexOf(item), list.indexOf(to)];
  if (from < 0 || place < 0 || from === place) {
    return list;
  }
  const rest = list.filter((other) => other !== item);
  return [...rest.slice(0, place), item, ...rest.slice(place)];
}

/** A list in which an item stands so many places further down. */
export function movedBy(list: readonly string[], item: string, by: number): readonly string[] {
  const from = list.indexOf(item);
  const to = list[Math.min(list.length - 1, Math.max(0, from + by))];
  return from < 0 || to === undefined ? list : movedTo(list, item, to);
}

/** The size of a track's rows, of three. */
export function sizeOf(layout: Layout): (track: Track) => RowSize {
  const [small, large] = [new Set(layout.small), new Set(layout.large)];
  const plain = ROW_SIZES.indexOf(layout.size);
  return (track) => stepped(plain + (large.has(track.id) ? 1 : small.has(track.id) ? -1 : 0));
}

function stepped(step: number): RowSize {
  return ROW_SIZES[Math.min(ROW_SIZES.length - 1, Math.max(0, step))] ?? "plain";
}

/** All rows a step higher, or lower. */
export function withSize(layout: Layout, by: 1 | -1): Layout {
  const size = stepped(ROW_SIZES.indexOf(layout.size) + by);
  return size === layout.size ? layout : { ...layout, size };
}

/** Some tracks' rows are of another size than all. */
export function withTrackSize(layout: Layout, ids: readonly string[], size: RowSize): Layout {
  const touched = new Set(ids);
  const others = (list: readonly string[]): readonly string[] => list.filter((id) => !touched.has(id));
  const own = (of: RowSize, list: readonly string[]): readonly string[] => (size === of ? [...others(list), ...ids] : others(list));
  return { ...layout, small: own("small", layout.small), large: own("large", layout.large) };
}

/** The column of names is as wide as the user wants it, within reason. */
export function withNamesWidth(layout: Layout, width: number): Layout {
  const names = cssPx(Math.round(Math.min(NAMES_MAX, Math.max(NAMES_MIN, width))));
  return names === layout.names ? layout : { ...layout, names };
}

/** Lists that are longer are not kept in a URL. */
const URL_MAX = 400;
const LISTS = { pin: "pinned", hide: "hidden", fold: "folded", close: "closed", show: "shown", group: "groups", small: "small", large: "large" } as const;

/** As members of a URL; or of a text that may be longer. */
export function layoutParts(layout: Layout, itemsMax = URL_MAX): [string, string][] {
  const lists = Object.entries(LISTS).flatMap(([name, member]) => (layout[member].length > itemsMax ? [] : layout[member].map((item): [string, string] => [name, item])));
  const { size, active, names } = layout;
  const others: [string, string | null][] = [["rows", size === "plain" ? null : size], ["active", active ? "1" : null], ["names", names === null ? null : String(names)]];
  return [...lists, ...others.flatMap(([name, text]): [string, string][] => (text === null ? [] : [[name, text]]))];
}

/** Reads the output of [`layoutParts`]; parts that it does not understand are left out. */
export function readLayout(parts: URLSearchParams): Layout {
  const list = (name: keyof typeof LISTS): readonly string[] => [...new Set(parts.getAll(name))];
  const names = /^\d{1,4}$/.test(parts.get("names") ?? "") ? withNamesWidth(PLAIN_LAYOUT, Number(parts.get("names"))).names : null;
  return {
    pinned: list("pin"),
    hidden: list("hide"),
    folded: list("fold"),
    closed: list("close"),
    shown: list("show"),
    groups: list("group"),
    small: list("small"),
    large: list("large"),
    size: ROW_SIZES.find((one) => one === parts.get("rows")) ?? "plain",
    active: parts.get("active") === "1",
    names,
  };
}

/** Layouts by the names that the user gave them, as one text. */
export function encodeLayouts(layouts: ReadonlyMap<string, Layout>): string {
  return JSON.stringify([...layouts].map(([name, layout]) => [name, new URLSearchParams(layoutParts(layout, Infinity)).toString()]));
}

/** Reads the output of [`encodeLayouts`]; parts that it does not understand are left out. */
export function readLayouts(text: string | null): ReadonlyMap<string, Layout> {
  const found = new Map<string, Layout>();
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    for (const entry of Array.isArray(list) ? list : []) {
      const [name, parts] = Array.isArray(entry) ? (entry as unknown[]) : [];
      if (typeof name === "string" && typeof parts === "string") {
        found.set(name, readLayout(new URLSearchParams(parts)));
      }
    }
  } catch {
    // Other code wrote there: it is as if nothing was kept.
  }
  return found;
}
