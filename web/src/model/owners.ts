// Threads belong to processes, both to applications. An application has the name of a process' first thread, else that of the named thread
// with the lowest number; a thread of an unknown process is an application by itself. Of a name the part before its first slash counts:
// `kworker/0:1`. docs/analyses.md has the same rule for the server's counts. The names of threads come from their tracks, and where
// these have none, as of many programs, from the counts. Counts also name processes, which are known by that name even where the first thread has
// no track: then the name of another thread is only a guess.

import type { Track } from "./catalogue.ts";
import type { Whose } from "./counts.ts";
import { processesOf } from "./filter-tracks.ts";

/** Those of an application. */
export interface Members {
  readonly threads: readonly number[];
  /** By number; text that is no number is a name. */
  readonly processes: readonly string[];
}

export interface Owners {
  /** `null`: the track has no owner, or its owner is unknown. */
  readonly applicationOf: (track: Track) => string | null;
  readonly members: ReadonlyMap<string, Members>;
  /** A process has the name of a later thread, or none: counts may know a better one. */
  readonly isGuess: boolean;
}

const known = new WeakMap<readonly Track[], { readonly whose: Whose | null; readonly owners: Owners }>();

/** Ranks of names before those of later threads, which rank by their numbers. */
const OF_COUNTS = -2;
const OF_FIRST = -1;

/** Kept, as there may be ten thousands of tracks. */
export function ownersOf(tracks: readonly Track[], whose: Whose | null): Owners {
  const before = known.get(tracks);
  if (before !== undefined && before.whose === whose) {
    return before.owners;
  }
  const owners = findOwners(tracks, whose);
  known.set(tracks, { whose, owners });
  return owners;
}

interface Thread {
  readonly host: string;
  readonly tid: number;
  name: string | null;
  process: string | null;
}

function findOwners(tracks: readonly Track[], whose: Whose | null): Owners {
  const threads = threadsOf(tracks, whose);
  const { programs, isGuess } = programsOf(threads, whose);
  const ofProcess = (host: string, process: string): string | null => (/^\d+$/.test(process) ? (programs.get(`${host}/${process}`) ?? null) : process);
  const ofThread = new Map<string, string>();
  const members = new Map<string, { threads: Set<number>; processes: Set<string> }>();
  for (const [key, { host, tid, name, process }] of threads) {
    const application = process !== null ? ofProcess(host, process) : name === null ? null : kindOf(name);
    if (application === null) {
      continue;
    }
    ofThread.set(key, application);
    const own = members.get(application) ?? { threads: new Set(), processes: new Set() };
    members.set(application, own);
    own.threads.add(tid);
    if (process !== null) {
      own.processes.add(process);
    }
  }
  const applicationOf = ({ host, tid, process }: Track): string | null =>
    tid !== null ? (ofThread.get(`${host ?? ""}/${tid}`) ?? null) : process === null ? null : ofProcess(host ?? "", process);
  return { applicationOf, members: new Map([...members].map(([name, own]) => [name, { threads: [...own.threads], processes: [...own.processes] }])), isGuess };
}

function threadsOf(tracks: readonly Track[], whose: Whose | null): ReadonlyMap<string, Thread> {
  const processOf = processesOf(tracks);
  const threads = new Map<string, Thread>();
  for (const track of tracks) {
    const { tid } = track;
    if (tid === null) {
      continue;
    }
    const host = track.host ?? "";
    const thread = threads.get(`${host}/${tid}`) ?? { host, tid, name: null, process: processOf(track) };
    threads.set(`${host}/${tid}`, thread);
    thread.name ??= nameIn(track, tid);
  }
  for (const [tid, { name, pid }] of whose?.byThread ?? []) {
    const thread = threads.get(`/${tid}`) ?? { host: "", tid, name: null, process: null };
    threads.set(`/${tid}`, thread);
    thread.name ??= name;
    thread.process ??= pid === null ? null : String(pid);
  }
  return threads;
}

/** The name of a thread, if its track says that: `bash (17)`. */
function nameIn(track: Track, tid: number): string | null {
  const number = ` (${tid})`;
  return track.parent === null && track.depth === null && track.name.endsWith(number) ? track.name.slice(0, -number.length) : null;
}

/** The names of processes, by machine and number: those of the counts, as these list applications by them; else those of threads. */
function programsOf(threads: ReadonlyMap<string, Thread>, whose: Whose | null): { readonly programs: ReadonlyMap<string, string>; readonly isGuess: boolean } {
  const best = new Map<string, { readonly rank: number; readonly name: string }>();
  const numbers = new Set<string>();
  for (const { host, tid, name, process } of threads.values()) {
    if (process === null || !/^\d+$/.test(process)) {
      continue;
    }
    const key = `${host}/${process}`;
    numbers.add(key);
    const rank = String(tid) === process ? OF_FIRST : tid;
    const before = best.get(key);
    if (name !== null && (before === undefined || rank < before.rank)) {
      best.set(key, { rank, name });
    }
  }
  for (const [process, { name }] of whose?.byProcess ?? []) {
    if (name !== null) {
      best.set(`/${process}`, { rank: OF_COUNTS, name });
    }
  }
  const isGuess = [...numbers].some((key) => (best.get(key)?.rank ?? Infinity) > OF_FIRST);
  return { programs: new Map([...best].map(([key, { name }]) => [key, kindOf(name)])), isGuess };
}

/** Threads of the kernel are named after their job, and behind that after their instance. */
function kindOf(name: string): string {
  const [kind = ""] = name.split("/", 1);
  return kind === "" ? name : kind;
}
