// Pinned tracks: which rows stand on top. Pinning a track pins its parts as well, such as the calls and durations of a thread, so that the layout
// names only the track itself: parts that come later while traces grow are pinned, too.

import type { Track } from "./catalogue.ts";
import { groupsOf } from "./groups.ts";
import type { Layout } from "./layout.ts";

interface Family {
  /** All parts of a track, by its number, in the order of rows. */
  readonly parts: ReadonlyMap<number, readonly Track[]>;
  readonly byId: ReadonlyMap<string, Track>;
  readonly byNumber: ReadonlyMap<number, Track>;
}

/** Kept, because traces have ten thousands of tracks. */
const families = new WeakMap<readonly Track[], Family>();

function familyOf(tracks: readonly Track[]): Family {
  let family = families.get(tracks);
  if (family === undefined) {
    const [byId, byNumber] = [new Map(tracks.map((track) => [track.id, track])), new Map(tracks.map((track) => [track.number as number, track]))];
    const parts = new Map<number, Track[]>();
    for (const track of groupsOf(tracks).flatMap(([, some]) => some)) {
      for (const above of ancestorsIn(byNumber, track)) {
        const list = parts.get(above.number);
        if (list === undefined) {
          parts.set(above.number, [track]);
        } else {
          list.push(track);
        }
      }
    }
    family = { parts, byId, byNumber };
    families.set(tracks, family);
  }
  return family;
}

/** The tracks that a track is part of, the nearest first. */
function ancestorsIn(byNumber: ReadonlyMap<number, Track>, track: Track): readonly Track[] {
  const found: Track[] = [];
  let above = track.parent === null ? undefined : byNumber.get(track.parent);
  // Tracks that are part of each other have an end all the same.
  while (above !== undefined && above !== track && !found.includes(above)) {
    found.push(above);
    above = above.parent === null ? undefined : byNumber.get(above.parent);
  }
  return found;
}

/** Pinned tracks from top to bottom, each followed by its parts. */
export function pinnedTracks({ pinned }: Layout, tracks: readonly Track[]): readonly Track[] {
  if (pinned.length === 0) {
    return [];
  }
  const { byId, parts } = familyOf(tracks);
  return [...new Set(pinned.flatMap((id) => byId.get(id) ?? []).flatMap((track) => [track, ...(parts.get(track.number) ?? [])]))];
}

/** Tests whether a track stands on top: itself, or as part of another one. */
export function pinnedTest(layout: Layout, tracks: readonly Track[]): (track: Track) => boolean {
  const all = new Set(pinnedTracks(layout, tracks));
  return (track) => all.has(track);
}

/** Pins some tracks behind those that are pinned, or takes them from there. A part of a pinned track is taken from there with all of that track. */
export function withPinned(layout: Layout, some: readonly Track[], isPinned: boolean, tracks: readonly Track[]): Layout {
  const { byId, byNumber } = familyOf(tracks);
  const above = (track: Track): readonly string[] => ancestorsIn(byNumber, track).map(({ id }) => id);
  if (!isPinned) {
    const gone = new Set(some.flatMap((track) => [track.id, ...above(track)]));
    return { ...layout, pinned: layout.pinned.filter((id) => !gone.has(id)) };
  }
  const all = [...new Set([...layout.pinned, ...some.map(({ id }) => id)])];
  const known = new Set(all);
  const isPart = (id: string): boolean => {
    const track = byId.get(id);
    return track !== undefined && above(track).some((other) => known.has(other));
  };
  return { ...layout, pinned: all.filter((id) => !isPart(id)) };
}
