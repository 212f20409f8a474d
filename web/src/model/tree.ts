// The tree of groups and tracks, as lines from top to bottom: pinned tracks, then each group with its tracks below it.

import type { Catalogue, Track } from "./catalogue.ts";
import { processesOf } from "./filter-tracks.ts";
import { groupsIn } from "./groups.ts";
import { shownTest, type Layout } from "./layout.ts";
import { pinnedTracks } from "./pins.ts";
import { PINNED_GROUP, nameOf } from "./rows.ts";
import { find, findable, isInside, wordsOf, type Findable } from "./search.ts";

/** A line of the tree. */
export type TreeLine =
  | {
      readonly kind: "group";
      readonly key: string;
      readonly group: string;
      readonly isFolded: boolean;
      /** Whether all, some or none of its tracks are shown. */
      readonly share: "all" | "some" | "none";
      /** Tracks that stand below it, were it not folded. */
      readonly tracks: readonly Track[];
    }
  | {
      readonly kind: "track";
      readonly key: string;
      readonly group: string;
      readonly track: Track;
      readonly isShown: boolean;
      readonly isPinned: boolean;
      /** It is part of the track above it. */
      readonly isNested: boolean;
    };

/** The wanted part of the tree. */
export interface TreeWish {
  readonly query: string;
  /** Of tracks that are left out; `null`: none is. */
  readonly leave: ((track: Track) => boolean) | null;
}

/** The lines. While something is searched, groups without a hit are not there, and none is folded. */
export function treeOf(catalogue: Catalogue, layout: Layout, { query, leave }: TreeWish): TreeLine[] {
  const { tracks } = catalogue;
  const isShown = shownTest(layout);
  const pinned = pinnedTracks(layout, tracks);
  const [pins, ownPins] = [new Set(pinned), new Set(layout.pinned)];
  const folded = new Set(layout.folded);
  const found = query.trim() === "" ? null : hitsOf(tracks, query);
  const isWanted = (track: Track): boolean => (found === null || found.has(track)) && leave?.(track) !== true;
  const lines: TreeLine[] = [];
  const add = (group: string, some: readonly Track[]): void => {
    const wanted = some.filter(isWanted);
    if (wanted.length === 0) {
      return;
    }
    const isFolded = found === null && folded.has(group);
    const count = wanted.filter(isShown).length;
    const isPins = group === PINNED_GROUP;
    lines.push({ kind: "group", key: `group ${group}`, group, isFolded, share: count === wanted.length ? "all" : count === 0 ? "none" : "some", tracks: wanted });
    if (!isFolded) {
      for (const track of wanted) {
        const key = `${isPins ? "pinned" : "track"} ${track.id}`;
        lines.push({ kind: "track", key, group, track, isShown: isShown(track), isPinned: pins.has(track), isNested: isPins ? !ownPins.has(track.id) : track.parent !== null });
      }
    }
  };
  add(PINNED_GROUP, pinned);
  groupsIn(tracks, layout).forEach(([group, some]) => add(group, some));
  return lines;
}

/** Tracks that are called like that; where some are, none that only has the letters. */
function hitsOf(tracks: readonly Track[], query: string): ReadonlySet<Track> {
  const hits = find(findableTracks(tracks), query);
  const words = wordsOf(query).length;
  const inside = hits.filter((hit) => isInside(hit.score / words));
  return new Set((inside.length > 0 ? inside : hits).map((hit) => hit.item));
}

const known = new WeakMap<readonly Track[], readonly Findable<Track>[]>();

/** Tracks by their names, by thread, process and id. Kept, as there are ten thousands of them. */
export function findableTracks(tracks: readonly Track[]): readonly Findable<Track>[] {
  let found = known.get(tracks);
  if (found === undefined) {
    const processOf = processesOf(tracks);
    found = tracks.map((track) => findable(track, [nameOf(track), track.group, track.tid, processOf(track), track.id].filter((part) => part !== null).join(" ")));
    known.set(tracks, found);
  }
  return found;
}

/** How deep a line stands, from 1 on. */
export function levelOf(line: TreeLine): 1 | 2 | 3 {
  return line.kind === "group" ? 1 : line.isNested ? 3 : 2;
}

/** Which one of how many lines at the same place of the tree a line is, from 1 on. */
export interface Place {
  readonly position: number;
  readonly size: number;
}

/** The places of all lines, in their order: only a few of the lines are on the screen, so that they cannot be counted there. */
export function placesOf(lines: readonly TreeLine[]): readonly Place[] {
  const found: { readonly position: number; size: number }[] = [];
  /** The places so far of the lines at each level, below the latest lines of the levels above. */
  const open: { readonly position: number; size: number }[][] = [[], [], []];
  const close = (level: number): void => {
    for (const places of open.slice(level)) {
      places.forEach((place) => (place.size = places.length));
      places.length = 0;
    }
  };
  for (const line of lines) {
    const level = levelOf(line);
    close(level);
    const place = { position: (open[level - 1]?.length ?? 0) + 1, size: 0 };
    open[level - 1]?.push(place);
    found.push(place);
  }
  close(0);
  return found;
}

/** The lines from one to another, in either order. */
export function between(lines: readonly TreeLine[], one: string, other: string): readonly TreeLine[] {
  const [first, second] = [lines.findIndex((line) => line.key === one), lines.findIndex((line) => line.key === other)];
  return first < 0 || second < 0 ? [] : lines.slice(Math.min(first, second), Math.max(first, second) + 1);
}

/** Tracks of some lines, each once; a group stands for all of its tracks. */
export function tracksOf(lines: readonly TreeLine[]): readonly Track[] {
  return [...new Set(lines.flatMap((line) => (line.kind === "group" ? line.tracks : [line.track])))];
}
