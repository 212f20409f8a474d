// Colors of threads: those of one process are as different as there are colors.
//
// A hash of the process picks the color of its first thread, and each next thread, in the order of their numbers, has the next color. Neighbors in
// that order have different hues, and no two of the first 21 threads of a process have the same color; after that colors come again, as far apart
// as can be. This follows from the list of tracks alone: in which order threads are looked at does not matter, and a thread that starts later has
// a higher number, so that it changes no other color. Threads of different processes may have the same color.
//
//     hash("4711") = 5      thread  4711  4712  4720  4731 …
//                           color      5     6     7     8 …      of 21: seven hues in a row, then these in another lightness

import type { Track } from "./catalogue.ts";
import { processesOf } from "./filter-tracks.ts";
import { SLOTS, slotOf, type Coloured, type Colouring } from "./palette.ts";

/** A value that a track may stand for, as the row of a thread. */
export interface Owned extends Coloured {
  readonly kind: string;
  readonly track?: number | null;
}

/** Kept, because traces have ten thousands of threads. */
const known = new WeakMap<readonly Track[], ReadonlyMap<number, number>>();

/** The color's number of each track of a thread whose process is known. */
export function slotsOf(tracks: readonly Track[]): ReadonlyMap<number, number> {
  let slots = known.get(tracks);
  if (slots === undefined) {
    slots = distributed(tracks);
    known.set(tracks, slots);
  }
  return slots;
}

function distributed(tracks: readonly Track[]): ReadonlyMap<number, number> {
  const processOf = processesOf(tracks);
  const processes = new Map<string, Map<number, Track[]>>();
  for (const track of tracks) {
    const process = processOf(track);
    if (track.tid === null || process === null) {
      continue;
    }
    const key = `${track.host ?? ""}/${process}`;
    const threads = processes.get(key) ?? new Map<number, Track[]>();
    processes.set(key, threads);
    threads.set(track.tid, [...(threads.get(track.tid) ?? []), track]);
  }
  const slots = new Map<number, number>();
  for (const [process, threads] of processes) {
    const first = slotOf(hashed(process));
    [...threads].sort(([one], [other]) => one - other).forEach(([, own], index) => own.forEach(({ number }) => slots.set(number, (first + index) % SLOTS)));
  }
  return slots;
}

/** The number of a value's color. */
export function slotOfValue({ kind, colour, owner, track }: Owned, by: Colouring, tracks: readonly Track[]): number {
  if (by === "application" && owner?.colour != null) {
    return slotOf(owner.colour);
  }
  const own = kind === "thread" && track != null ? slotsOf(tracks).get(track) : undefined;
  return own ?? slotOf(colour);
}

/** A number of 32 bits for a text (FNV-1a). */
function hashed(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
