// Which tracks a filter means. A track is tested by its own labels: one of a CPU says nothing of threads, so that threads that are
// chosen leave it as it is; tracks without an owner, as latencies are, are always meant.

import type { Track, TrackKind } from "./catalogue.ts";
import { tester } from "./choice.ts";
import type { Filter } from "./filter.ts";

/** Says of tracks whether they are meant; `null`: all are. */
export function trackTest(filter: Filter, tracks: readonly Track[]): ((track: Track) => boolean) | null {
  const { cpus, applications, processes, threads } = filter;
  if (cpus === null && applications === null && processes === null && threads === null) {
    return null;
  }
  const isOfApplication = applicationTest(filter);
  const [isCpu, isProcess, isThread] = [tester(cpus), tester(processes), tester(threads)];
  const processOf = processes === null ? () => null : processesOf(tracks);
  return (track) => {
    if ((track.cpu !== null && !isCpu(track.cpu)) || (track.tid !== null && !isThread(track.tid))) {
      return false;
    }
    if (!isOfApplication(track)) {
      return false;
    }
    if (processes === null || (track.tid === null && track.process === null)) {
      return true;
    }
    const process = processOf(track);
    // A thread of an unknown process is not one of those that were named.
    return process === null ? processes.only === null : isProcess(process);
  };
}

function applicationTest({ applications, owners }: Filter): (track: Track) => boolean {
  // While the owners are unknown, nothing is left out: it would come back a moment later.
  if (applications === null || owners === null) {
    return () => true;
  }
  const isMeant = tester(applications);
  return (track) => {
    if (track.tid === null && track.process === null) {
      return true;
    }
    const application = owners.applicationOf(track);
    return application === null ? applications.only === null : isMeant(application);
  };
}

const known = new WeakMap<readonly Track[], Map<string, string>>();

/** The process of a track: its own, else the one that another track of its thread names. */
export function processesOf(tracks: readonly Track[]): (track: Track) => string | null {
  let found = known.get(tracks);
  if (found === undefined) {
    found = new Map();
    for (const { host, tid, process } of tracks) {
      if (tid !== null && process !== null) {
        found.set(`${host ?? ""}/${tid}`, process);
      }
    }
    known.set(tracks, found);
  }
  const byThread = found;
  return ({ host, tid, process }) => process ?? (tid === null ? null : (byThread.get(`${host ?? ""}/${tid}`) ?? null));
}

const FOLLOWING: ReadonlySet<TrackKind> = new Set(["instants", "heat", "arrows"]);

/** Whether a track follows a choice of events: counts of events, latencies from one to another, wakeups and messages. */
export function followsEvents({ kind }: Pick<Track, "kind">): boolean {
  return FOLLOWING.has(kind);
}

const followingKnown = new WeakMap<readonly Track[], ReadonlySet<number>>();

/** Numbers of the tracks for which the server can restrict its answer to some events. */
export function followingTracks(tracks: readonly Track[]): ReadonlySet<number> {
  let found = followingKnown.get(tracks);
  if (found === undefined) {
    found = new Set(tracks.filter(followsEvents).map((track) => track.number));
    followingKnown.set(tracks, found);
  }
  return found;
}
