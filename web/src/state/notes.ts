// The notes that a page knows, the one in the editor, and how that changes. Every function takes a state and returns another one.

import type { Fault } from "../model/fault.ts";
import { ordered, type Note, type NotesFile } from "../model/notes.ts";
import { endOf } from "../model/viewport.ts";
import { minus, nanos, plus, type Nanos } from "../units/time.ts";
import { trackOf } from "./item.ts";
import { trackSeen } from "./tracks.ts";
import { markShown, wentTo, type State } from "./viewer.ts";

/** A note in the editor. */
export interface Editing {
  /** As it is kept, or would be. */
  readonly note: Note;
  readonly isNew: boolean;
  /** The texts in the boxes, and the chosen color. */
  readonly text: string;
  readonly author: string;
  readonly colour: string | null;
  readonly isSaving: boolean;
  /** Why it was not kept. */
  readonly fault: Fault | null;
}

export interface NotesState {
  /** `null`: the server has not said it yet. */
  readonly file: NotesFile | null;
  readonly isAsking: boolean;
  /** Why notes are not there, or no newer ones. */
  readonly fault: Fault | null;
  /** The id of the one that was shown last. */
  readonly chosen: string | null;
  readonly editing: Editing | null;
  /** The note removed last, which can be put back. */
  readonly removed: Note | null;
}

export const NO_NOTES: NotesState = { file: null, isAsking: false, fault: null, chosen: null, editing: null, removed: null };

/** The server has said which notes there are. */
export function heard(state: NotesState, file: NotesFile): NotesState {
  return { ...state, file, isAsking: false, fault: null };
}

/** A note is kept: it stands where it belongs before the server is asked again. */
export function withNote(state: NotesState, note: Note): NotesState {
  const { file } = state;
  if (file === null) {
    return state;
  }
  const isThere = file.notes.some(({ id }) => id === note.id);
  const notes = isThere ? file.notes.map((one) => (one.id === note.id ? note : one)) : [...file.notes, note];
  return { ...state, file: { ...file, notes: ordered(notes) } };
}

/** A note is gone; it can be put back. */
export function withoutNote(state: NotesState, note: Note): NotesState {
  const file = state.file === null ? null : { ...state.file, notes: state.file.notes.filter(({ id }) => id !== note.id) };
  return { ...state, file, removed: note, chosen: state.chosen === note.id ? null : state.chosen };
}

/** The user begins to write. */
export function writing(state: NotesState, note: Note, isNew: boolean): NotesState {
  return { ...state, editing: { note, isNew, text: note.text, author: note.author ?? "", colour: note.colour, isSaving: false, fault: null }, chosen: note.id };
}

/** The note in the editor changes. */
export function edited(state: NotesState, change: Partial<Editing>): NotesState {
  return state.editing === null ? state : { ...state, editing: { ...state.editing, ...change } };
}

/** The note with the user's changes, and all else as the server last said it; `null`: there is nothing to keep. */
export function written({ file, editing }: NotesState): Note | null {
  if (editing === null) {
    return null;
  }
  const { note, isNew, colour } = editing;
  const [text, author] = [editing.text.trim(), editing.author.trim()];
  const changed: Partial<Note> = {
    ...(text === note.text.trim() ? {} : { text }),
    ...(author === (note.author ?? "") ? {} : { author: author === "" ? null : author }),
    ...(colour === note.colour ? {} : { colour }),
  };
  // The user does not mean to take all of a text away; notes that others left without one may stay so.
  if (changed.text === "" || (isNew && text === "") || (Object.keys(changed).length === 0 && !isNew)) {
    return null;
  }
  return { ...(file?.notes.find(({ id }) => id === note.id) ?? note), ...changed };
}

/** All notes, and the one that is being made. */
export function marked({ file, editing }: Pick<NotesState, "file" | "editing">): readonly Note[] {
  const notes = file?.notes ?? [];
  const isMade = editing !== null && editing.isNew && !notes.some(({ id }) => id === editing.note.id);
  return isMade ? ordered([...notes, { ...editing.note, text: editing.text, colour: editing.colour }]) : notes;
}

/** The place of a new note: the selection, else the time and the track below the pointer, else the mark or the middle. */
export function placeMeant({ selection, cursor, mark, view, rows }: State): Pick<Note, "begin" | "end" | "track"> | null {
  if (selection !== null) {
    return { begin: selection.begin, end: endOf(selection), track: null };
  }
  if (cursor !== null) {
    return { begin: cursor.time, end: null, track: rows.find((row) => row.key === cursor.row)?.track?.id ?? null };
  }
  const time = mark ?? (view === null ? null : nanos(view.begin + view.span / 2n));
  return time === null ? null : { begin: time, end: null, track: null };
}

/** A range is seen well if it has so much of the window. */
const SEEN_PART = 20n;

/** Shows the place of a note: marks a moment, selects a range, and scrolls to its track. One can go back. */
export function noteShown(state: State, { begin, end, track: id }: Note): State {
  const there = end === null || end === begin ? markShown({ ...state, selection: null }, begin) : rangeShown(state, begin, end);
  const track = id === null ? null : trackOf(state, id);
  return track === null ? there : trackSeen(there, track);
}

function rangeShown(state: State, begin: Nanos, end: Nanos): State {
  const { view } = state;
  const span = minus(end, begin);
  const next: State = { ...state, selection: { begin, span }, mark: null };
  const isSeen = view !== null && begin >= view.begin && end <= endOf(view) && span * SEEN_PART >= view.span;
  const margin = nanos(span / 4n);
  return isSeen ? next : wentTo(next, { begin: minus(begin, margin), span: plus(span, nanos(2n * margin)) });
}
