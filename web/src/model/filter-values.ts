// Which values a filter means, on rows that show several: threads on rows of CPUs, states, names of durations and calls. Bars of other values are
// paler. Values are tested by what they are: a chosen thread leaves states as they are, a chosen state leaves threads, and durations.

import type { Catalogue, TrackValue } from "./catalogue.ts";
import { tester, type Choice } from "./choice.ts";
import type { Filter } from "./filter.ts";

/** The kinds of values that are chosen as threads and events; all others are chosen by their names. */
const THREAD = "thread";
const EVENT = "event";

/** The name by which a filter chooses a state, a duration, a call: names of different kinds have nothing to do with each other. */
export function stateKey({ kind, label }: Pick<TrackValue, "kind" | "label">): string {
  return `${kind}:${label}`;
}

/** The part of such a name to show. */
export function stateLabel(key: string): string {
  return key.slice(key.indexOf(":") + 1);
}

/** The number of a thread that is a value; `null`: it is none, as the idle task. */
export function threadOf({ kind, label, track }: Pick<TrackValue, "kind" | "label" | "track">, tracks: Catalogue["tracks"]): number | null {
  if (kind !== THREAD) {
    return null;
  }
  const likely = track == null ? undefined : tracks[track];
  const known = track == null || likely?.number === track ? likely : tracks.find(({ number }) => number === track);
  const written = /\((\d+)\)$/.exec(label)?.[1];
  return known?.tid ?? (written === undefined ? null : Number(written));
}

/** Tests values; `null`: all are meant. */
export function valueTest(filter: Filter, { tracks }: Catalogue): ((value: TrackValue) => boolean) | null {
  const { threads, applications, processes, states } = filter;
  if (threads === null && applications === null && processes === null && states === null) {
    return null;
  }
  const [isThread, isApplication, isProcess] = [tester(threads), tester(applications), tester(processes)];
  const isState = stateTest(states);
  return (value) => {
    if (value.kind === EVENT) {
      return true;
    }
    if (value.kind !== THREAD) {
      return isState(value);
    }
    const thread = threadOf(value, tracks);
    if (thread === null) {
      return true;
    }
    const { process, application } = value.owner ?? { process: null, application: null };
    // A thread of an unknown owner is none of those that were named.
    const isOwned = (choice: Choice<string> | null, own: string | null, test: (item: string) => boolean): boolean => choice === null || (own === null ? choice.only === null : test(own));
    return isThread(thread) && isOwned(processes, process, isProcess) && isOwned(applications, application, isApplication);
  };
}

function stateTest(choice: Choice<string> | null): (value: TrackValue) => boolean {
  if (choice === null) {
    return () => true;
  }
  const { only, but } = choice;
  return (value) => {
    const key = stateKey(value);
    const isNamed = only === null || only.includes(key) || !only.some((other) => other.startsWith(`${value.kind}:`));
    return isNamed && !but.includes(key);
  };
}
