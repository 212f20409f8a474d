// The threads that a filter means, for events that name neither a thread nor a process, as those of kernels: these are of the thread that their CPU
// ran, which the server knows.

import type { Track } from "./catalogue.ts";
import type { EventQuestion } from "./events.ts";
import { trackTest } from "./filter-tracks.ts";
import { expressionOf, PLAIN_FILTER, questionOf, unanswered, type Facet, type Filter } from "./filter.ts";

/** As many ranges the server takes, in a URL of 16 KiB that has an expression, names and columns as well; and as many numbers in a question to an analysis. */
const RANGES_MAX = 1_024;
const ENCODED_MAX = 8_000;
const THREADS_MAX = 20_000;
/** Where no thread is meant: no thread has this number. */
const NO_THREAD = 999_999_999;

/** Threads that a filter means: their numbers in order, and the same in few words, `7,100-2150`. */
export interface Meant {
  readonly numbers: readonly number[];
  readonly ranges: string;
}

const OF_THREADS: readonly Facet[] = ["applications", "processes", "threads"];

/** The chosen facets that no field of an event expresses, and that depend on the thread. */
function lackingOf(filter: Filter): readonly Facet[] {
  return unanswered(filter).filter((facet) => OF_THREADS.includes(facet));
}

/** The threads that are meant where events do not name theirs; `null`: fields of events say it, or it cannot be asked. */
export function threadsMeant(filter: Filter, tracks: readonly Track[]): Meant | null {
  return threadsOf(filter, tracks, lackingOf(filter));
}

/** The threads that are meant, whether or not events name theirs; `null`: no thread, process or application is chosen, or it cannot be asked. */
export function threadsChosen(filter: Filter, tracks: readonly Track[]): Meant | null {
  return threadsOf(filter, tracks, threadFacets(filter));
}

/** The chosen facets that are about threads. */
export function threadFacets(filter: Filter): readonly Facet[] {
  return OF_THREADS.filter((facet) => filter[facet] !== null);
}

function threadsOf(filter: Filter, tracks: readonly Track[], lacking: readonly Facet[]): Meant | null {
  if (lacking.length === 0 || !knowsRuns(tracks)) {
    return null;
  }
  const chosen = Object.fromEntries(lacking.map((facet) => [facet, filter[facet]]));
  const isMeant = trackTest({ ...PLAIN_FILTER, owners: filter.owners, ...chosen }, tracks) ?? (() => true);
  // No thread of a kernel has a number below 0, and the server refuses to be asked for one.
  const threads = tracks.filter(({ tid, kind }) => tid !== null && tid >= 0 && kind === "states");
  const meant = new Set(threads.filter(isMeant).map(({ tid }) => tid ?? 0));
  const known = [...new Set(threads.map(({ tid }) => tid ?? 0))].sort((one, other) => one - other);
  const ranges = rangesOf(known, meant);
  const text = ranges.join(",");
  if (ranges.length > RANGES_MAX || encodeURIComponent(text).length > ENCODED_MAX || meant.size > THREADS_MAX) {
    return null;
  }
  const numbers = known.filter((tid) => meant.has(tid));
  return numbers.length === 0 ? { numbers: [NO_THREAD], ranges: `${NO_THREAD}` } : { numbers, ranges: text };
}

/** The wanted ones of some numbers, as few ranges: between the ends of one there is no other known number. */
function rangesOf(known: readonly number[], wanted: ReadonlySet<number>): readonly string[] {
  const ranges: string[] = [];
  let first: number | null = null;
  known.forEach((number, index) => {
    if (!wanted.has(number)) {
      return;
    }
    first ??= number;
    const next = known[index + 1];
    if (next === undefined || !wanted.has(next)) {
      ranges.push(first === number ? `${number}` : `${first}-${number}`);
      first = null;
    }
  });
  return ranges;
}

/** Whether CPUs tell which threads they ran. */
export function knowsRuns(tracks: readonly Track[]): boolean {
  return tracks.some(({ id }) => /^cpu\/\d+\/\d+\/thread$/.test(id));
}

/** The chosen facets that lists and statistics cannot follow: no field of an event expresses them, and neither do the threads that CPUs ran. */
export function unfollowed(filter: Filter, tracks: readonly Track[]): readonly Facet[] {
  const followed = halfFollowed(filter, tracks);
  return unanswered(filter).filter((facet) => !followed.includes(facet));
}

/** The chosen facets that lists and statistics follow by the threads that CPUs ran; tiles cannot: rows of events and the overview count all threads. */
export function halfFollowed(filter: Filter, tracks: readonly Track[]): readonly Facet[] {
  return threadsMeant(filter, tracks) === null ? [] : lackingOf(filter);
}

/** The question for the events that a filter selects; unless empty, `names` take the place of the names in the filter. */
export function eventQuestion(filter: Filter, tracks: readonly Track[], names: readonly string[] = []): EventQuestion {
  const threads = threadsMeant(filter, tracks);
  const { filter: expression, event } = names.length === 0 ? questionOf(filter) : { filter: expressionOf(filter), event: names };
  return { filter: expression === undefined || expression === "" ? null : expression, names: event ?? [], ...(threads === null ? {} : { threads: threads.ranges }) };
}
