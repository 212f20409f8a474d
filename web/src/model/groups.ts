// Groups of tracks, from top to bottom, with their tracks in order: parts of a track stand below it.

import type { Track } from "./catalogue.ts";
import type { Layout } from "./layout.ts";

/** Where groups stand; all others lie between the first and the last ones, in the order in which they were met. */
const GROUPS_FIRST = ["CPUs", "Threads"];
const GROUPS_LAST = ["Latencies", "Arrows", "Events"];

/** Ids with how long a number is before each, so that they are in the order of numbers. Kept, because traces have ten thousands of tracks. */
const sortKeys = new WeakMap<Track, string>();

function sortKey(track: Track): string {
  let key = sortKeys.get(track);
  if (key === undefined) {
    key = track.id.replace(/\d+/g, (digits) => String.fromCharCode(digits.length) + digits);
    sortKeys.set(track, key);
  }
  return key;
}

/** Groups with their tracks, of the last lists that were asked for: putting ten thousands of tracks in order takes longer than a frame. */
const ordered = new WeakMap<readonly Track[], readonly (readonly [string, readonly Track[]])[]>();

/** Groups from top to bottom, with all of their tracks from top to bottom. */
export function groupsOf(tracks: readonly Track[]): readonly (readonly [string, readonly Track[]])[] {
  let groups = ordered.get(tracks);
  if (groups === undefined) {
    const sorted = [...grouped(tracks)].sort(([one], [other]) => rankOf(one) - rankOf(other));
    groups = sorted.map(([group, some]) => [group, nestedOrder(some)] as const);
    ordered.set(tracks, groups);
  }
  return groups;
}

/** The same in the order that the layout says. */
export function groupsIn(tracks: readonly Track[], { groups }: Layout): readonly (readonly [string, readonly Track[]])[] {
  const all = groupsOf(tracks);
  if (groups.length === 0) {
    return all;
  }
  const place = new Map(groups.map((group, index) => [group, index]));
  const placeOf = (group: string): number => place.get(group) ?? groups.length;
  return [...all].sort(([one], [other]) => placeOf(one) - placeOf(other));
}

function rankOf(group: string): number {
  const [first, last] = [GROUPS_FIRST.indexOf(group), GROUPS_LAST.indexOf(group)];
  return first >= 0 ? first - GROUPS_FIRST.length : last >= 0 ? last + 1 : 0;
}

function grouped(tracks: readonly Track[]): Map<string, Track[]> {
  const groups = new Map<string, Track[]>();
  for (const track of tracks) {
    const group = groups.get(track.group);
    if (group === undefined) {
      groups.set(track.group, [track]);
    } else {
      group.push(track);
    }
  }
  return groups;
}

/** Tracks with those that are part of them right below, in the order of depth. */
function nestedOrder(unordered: readonly Track[]): Track[] {
  const keyed = unordered.map((track) => ({ track, key: sortKey(track) }));
  const tracks = keyed.sort((one, other) => (one.key < other.key ? -1 : 1)).map(({ track }) => track);
  const inside = new Set(tracks.map((track) => track.number));
  const parts = new Map<number, Track[]>();
  const tops: Track[] = [];
  for (const track of tracks) {
    if (track.parent !== null && inside.has(track.parent) && track.parent !== track.number) {
      parts.set(track.parent, [...(parts.get(track.parent) ?? []), track]);
    } else {
      tops.push(track);
    }
  }
  const ordered: Track[] = [];
  const seen = new Set<number>();
  const add = (track: Track): void => {
    if (seen.has(track.number)) {
      return;
    }
    seen.add(track.number);
    ordered.push(track);
    const below = [...(parts.get(track.number) ?? [])].sort((one, other) => (one.depth ?? 0) - (other.depth ?? 0));
    below.forEach(add);
  };
  tops.forEach(add);
  // Tracks that are part of each other would hide one another.
  tracks.forEach(add);
  return ordered;
}
