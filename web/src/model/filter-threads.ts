// The threads that a filter means, for events that name neither a thread nor a process, as those of kernels: these are of the thread that their CPU
// ran, which the server knows.

import type { Track } from "./catalogue.ts";
import { trackTest } from "./filter-tracks.ts";
import { PLAIN_FILTER, unanswered, type Facet, type Filter } from "./filter.ts";

/** As many the server takes. */
const THREADS_MAX = 1_024;
/** Where no thread is meant: no thread has this number. */
const NO_THREAD = 2 ** 31 - 1;

const OF_THREADS: readonly Facet[] = ["applications", "processes", "threads"];

/** The chosen facets that no field of an event expresses, and that depend on the thread. */
function lackingOf(filter: Filter): readonly Facet[] {
  return unanswered(filter).filter((facet) => OF_THREADS.includes(facet));
}

/** The numbers of the threads that are meant where events do not name theirs; `null`: fields of events say it, or it cannot be asked. */
export function threadsMeant(filter: Filter, tracks: readonly Track[]): readonly number[] | null {
  const lacking = lackingOf(filter);
  if (lacking.length === 0 || !tracks.some(({ id }) => /^cpu\/\d+\/\d+\/thread$/.test(id))) {
    return null;
  }
  const chosen = Object.fromEntries(lacking.map((facet) => [facet, filter[facet]]));
  const isMeant = trackTest({ ...PLAIN_FILTER, owners: filter.owners, ...chosen }, tracks) ?? (() => true);
  const meant = new Set(tracks.filter((track) => track.tid !== null && track.kind === "states" && isMeant(track)).flatMap(({ tid }) => tid ?? []));
  return meant.size > THREADS_MAX ? null : meant.size === 0 ? [NO_THREAD] : [...meant].sort((one, other) => one - other);
}

/** The chosen facets that lists and statistics cannot follow: no field of an event expresses them, and neither do the threads that CPUs ran. */
export function unfollowed(filter: Filter, tracks: readonly Track[]): readonly Facet[] {
  const lacking = unanswered(filter);
  return threadsMeant(filter, tracks) === null ? lacking : lacking.filter((facet) => !OF_THREADS.includes(facet));
}
