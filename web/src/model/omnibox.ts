// The finds of the box in the header: tracks, threads, processes, events and notes by their names, commands behind `>`, times behind `@`.

import type { Catalogue, Track } from "./catalogue.ts";
import { timeText } from "./clock.ts";
import { peopleOf } from "./facets.ts";
import { processesOf } from "./filter-tracks.ts";
import { titleOf, whenText, type Note } from "./notes.ts";
import { nameOf } from "./rows.ts";
import { find, findable, type Findable } from "./search.ts";
import { readTime, type TimeContext } from "./times.ts";
import { findableTracks } from "./tree.ts";
import type { Nanos } from "../units/time.ts";

/** The effect of choosing a hit. */
export type Goal =
  | { readonly kind: "track"; readonly track: Track }
  | { readonly kind: "event"; readonly name: string }
  | { readonly kind: "note"; readonly note: Note }
  | { readonly kind: "time"; readonly time: Nanos }
  /** The place of a command in the list that was given. */
  | { readonly kind: "command"; readonly index: number }
  /** Another query. */
  | { readonly kind: "query"; readonly query: string };

export interface OmniHit {
  readonly key: string;
  /** The kind of the hit, in a word. */
  readonly what: string;
  readonly label: string;
  readonly detail: string;
  readonly goal: Goal;
}

export interface OmniAnswer {
  readonly hits: readonly OmniHit[];
  /** The message where there is nothing to choose. */
  readonly note: string | null;
}

/** Where is searched. */
export interface OmniWorld {
  readonly catalogue: Catalogue;
  readonly events: readonly string[];
  readonly notes: readonly Note[];
  readonly commands: readonly { readonly keys: string; readonly what: string }[];
  /** `null` while the extent of the traces is unknown. */
  readonly times: TimeContext | null;
}

const HITS_MAX = 40;
/** As many of each kind at most, so that ten thousands of threads leave room for other items of that name. */
const KIND_MAX = 20;

export function answerTo(query: string, world: OmniWorld): OmniAnswer {
  const text = query.trimStart();
  if (text.startsWith(">")) {
    return commandsFor(text.slice(1), world);
  }
  if (text.startsWith("@")) {
    return timeFor(text.slice(1), world);
  }
  if (text.startsWith("?")) {
    return { hits: HELP, note: null };
  }
  return text.trim() === "" ? { hits: HELP, note: null } : namesFor(text, world);
}

const HELP: readonly OmniHit[] = [
  { key: "help >", what: ">", label: "commands", detail: "all commands and their keys", goal: { kind: "query", query: ">" } },
  { key: "help @", what: "@", label: "times", detail: "@+1.5ms  @-200us  @1.25s  @12:18:50.43  @2016-03-04 17:46:22", goal: { kind: "query", query: "@" } },
  { key: "help names", what: "name", label: "tracks, threads, processes, events, notes", detail: "Enter goes to a track or a note, or shows one event only", goal: { kind: "query", query: "" } },
];

function commandsFor(text: string, { commands }: OmniWorld): OmniAnswer {
  const all = commands.map((command, index) => findable({ command, index }, `${command.what} ${command.keys}`));
  const hits = find(all, text).map(
    ({ item: { command, index } }): OmniHit => ({ key: `command ${index}`, what: "command", label: command.what, detail: command.keys.replaceAll("  ", " or "), goal: { kind: "command", index } }),
  );
  return { hits, note: hits.length === 0 ? "No command is called like that." : null };
}

function timeFor(text: string, { times }: OmniWorld): OmniAnswer {
  if (times === null) {
    return { hits: [], note: "The traces are being opened. This takes a moment." };
  }
  const found = readTime(text, times);
  if ("fault" in found) {
    return { hits: [], note: `${found.fault.slice(0, 1).toUpperCase()}${found.fault.slice(1)}.` };
  }
  return { hits: [{ key: "time", what: "time", label: timeText(times.clock, found.time), detail: found.what, goal: { kind: "time", time: found.time } }], note: null };
}

interface Scored {
  readonly hit: OmniHit;
  readonly score: number;
}

function namesFor(text: string, { catalogue, events, notes, times }: OmniWorld): OmniAnswer {
  const tracks = catalogue.tracks;
  const all: Scored[] = [
    ...found(findableTracks(tracks), text, (track) => trackHit(track)),
    ...found(findableProcesses(tracks), text, processHit(tracks)),
    ...found(findableNotes(notes), text, (note) => noteHit(note, times)),
    ...found(findableEvents(events), text, (name) => ({ key: `event ${name}`, what: "event", label: name, detail: "only this event", goal: { kind: "event", name } })),
  ];
  // A hit that is alone with its score says more than one of ten thousands of threads.
  const hits = all.sort((one, other) => other.score - one.score).slice(0, HITS_MAX).map(({ hit }) => hit);
  return { hits, note: hits.length === 0 ? "No track, thread, process, event or note is called like that." : null };
}

function found<T>(all: readonly Findable<T>[], text: string, hitOf: (item: T) => OmniHit | null): Scored[] {
  return find(all, text, KIND_MAX).flatMap(({ item, score }) => {
    const hit = hitOf(item);
    return hit === null ? [] : [{ hit, score }];
  });
}

function trackHit(track: Track): OmniHit {
  const isThread = track.tid !== null && track.parent === null && track.kind === "states" && track.depth === null;
  return { key: `track ${track.id}`, what: isThread ? "thread" : "track", label: nameOf(track), detail: isThread ? "" : track.group, goal: { kind: "track", track } };
}

const processesKnown = new WeakMap<readonly Track[], readonly Findable<{ readonly key: string; readonly label: string; readonly detail: string }>[]>();

/** Processes of several threads; of others the thread is found. */
function findableProcesses(tracks: readonly Track[]): readonly Findable<{ readonly key: string; readonly label: string; readonly detail: string }>[] {
  let all = processesKnown.get(tracks);
  if (all === undefined) {
    all = peopleOf(tracks).processes.filter((process) => process.detail !== "").map((process) => findable(process, `${process.label} ${process.key}`));
    processesKnown.set(tracks, all);
  }
  return all;
}

/** A process is where its first thread is. */
function processHit(tracks: readonly Track[]): (process: { readonly key: string; readonly label: string; readonly detail: string }) => OmniHit | null {
  const processOf = processesOf(tracks);
  return ({ key, label, detail }) => {
    const own = tracks.filter((track) => track.tid !== null && processOf(track) === key);
    const track = own.find((one) => String(one.tid) === key && one.kind === "states") ?? own[0];
    return track === undefined ? null : { key: `process ${key}`, what: "process", label, detail, goal: { kind: "track", track } };
  };
}

const eventsKnown = new WeakMap<readonly string[], readonly Findable<string>[]>();

function findableEvents(events: readonly string[]): readonly Findable<string>[] {
  let all = eventsKnown.get(events);
  if (all === undefined) {
    all = events.map((name) => findable(name, name));
    eventsKnown.set(events, all);
  }
  return all;
}

const notesKnown = new WeakMap<readonly Note[], readonly Findable<Note>[]>();

/** Notes by all their text, and by their authors. */
function findableNotes(notes: readonly Note[]): readonly Findable<Note>[] {
  let all = notesKnown.get(notes);
  if (all === undefined) {
    all = notes.map((note) => findable(note, `${note.text} ${note.author ?? ""}`));
    notesKnown.set(notes, all);
  }
  return all;
}

function noteHit(note: Note, times: TimeContext | null): OmniHit {
  return { key: `note ${note.id} ${note.begin}`, what: "note", label: titleOf(note), detail: times === null ? "" : whenText(times.clock, note), goal: { kind: "note", note } };
}
