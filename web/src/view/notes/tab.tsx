// The tab of notes: all notes of people on the traces, in the order of time.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { notesAdvice } from "../../api/notes.ts";
import { colourOf, notesWith, titleOf, whenText, type Note, type NotesProblem } from "../../model/notes.ts";
import { css } from "../../model/palette.ts";
import { nameOf } from "../../model/rows.ts";
import type { Editing, NotesState } from "../../state/notes.ts";
import { trackOf } from "../../state/item.ts";
import { clockOf } from "../../state/viewer.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { VirtualList } from "../rail/virtual.tsx";
import { notesOf, type NotesDesk } from "./desk.ts";
import { Editor } from "./editor.tsx";
import "../rail/rail.css";
import "./notes.css";
import { counted } from "../../units/counted.ts";

const LINE_HEIGHT = 64;
/** Lines that are no notes are told one by one up to here. */
const PROBLEMS_MAX = 20;

export function Notes({ page }: { readonly page: Page }): JSX.Element {
  const desk = notesOf(page);
  const state = usePick(desk.store, (now) => now);
  const { file, editing, removed, fault } = state;
  const [query, setQuery] = useState("");
  const all = file?.notes ?? [];
  const found = notesWith(all, query);
  if (file === null && fault?.kind === "absent") {
    return (
      <div class="rail-tab filled">
        <p class="hint" role="status">
          These traces have no notes: the sample and uploaded traces are copies that <code>kymo view</code> removes when it ends. With <code>kymo view --notes FILE</code> they have some, and a trace that is opened by its path always has.
        </p>
      </div>
    );
  }
  const words = all.length === 0 ? emptyWords(state) : "No note says that: take a word away.";
  return (
    <div class="rail-tab filled">
      {all.length === 0 ? null : (
        <input class="field wide" type="search" placeholder="Search notes: text, author, track" aria-label="Search notes" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      )}
      <div class="rail-bar">
        <button type="button" class="button small" title="About the selection, else at the pointer or the mark (M)" disabled={file === null || editing !== null} onClick={() => desk.make()}>
          New note
        </button>
        <span class="faint">{all.length === 0 ? "" : `${found.length === all.length ? "" : `${found.length.toLocaleString("en")} of `}${countText(all.length)}`}</span>
      </div>
      <Failure state={state} desk={desk} />
      {removed === null ? null : (
        <p class="hint" role="status">
          Removed: {titleOf(removed)}.{" "}
          <button type="button" class="plain link" onClick={() => void desk.putBack()}>
            Put it back
          </button>
        </p>
      )}
      {editing === null || !editing.isNew ? null : <New page={page} desk={desk} editing={editing} />}
      {found.length > 0 ? <List page={page} desk={desk} notes={found} state={state} /> : words === "" ? null : <p class="hint">{words}</p>}
      {file === null || file.problems.length === 0 ? null : <Problems file={file.file} problems={file.problems} />}
      {file === null ? null : (
        <p class="hint notes-file">
          <kbd>M</kbd>makes one, <kbd>Enter</kbd>shows it, <kbd>F2</kbd>changes it, <kbd>Del</kbd>removes it. They are kept in {file.file}
        </p>
      )}
    </div>
  );
}

function countText(count: number): string {
  return counted(count, "note");
}

/** The text where there is no note. */
function emptyWords({ file, fault, editing }: NotesState): string {
  if (file === null) {
    return fault === null ? "The notes are being read." : "";
  }
  return editing === null ? "There are no notes yet: M makes one at the pointer, or about the selection." : "";
}

function Failure({ state, desk }: { readonly state: NotesState; readonly desk: NotesDesk }): JSX.Element | null {
  const { fault, isAsking } = state;
  return fault === null ? null : (
    <p class="bad-text" role="alert">
      {fault.message}. {notesAdvice(fault.kind)}{" "}
      <button type="button" class="plain link" disabled={isAsking} onClick={() => void desk.read()}>
        Read again
      </button>
    </p>
  );
}

/** The note that is being made, above all others: its box is there at once, however long the list is. */
function New({ page, desk, editing }: { readonly page: Page; readonly desk: NotesDesk; readonly editing: Editing }): JSX.Element {
  return (
    <section class="note-new" aria-label="New note">
      <When page={page} note={editing.note} />
      <Editor desk={desk} editing={editing} theme={page.store.state.theme} />
    </section>
  );
}

/** When a note is, and about which track. */
function When({ page, note }: { readonly page: Page; readonly note: Note }): JSX.Element {
  const [begin, style, tracks] = usePick(page.store, (state) => [state.status?.extent.begin, state.timeStyle, state.catalogue.tracks] as const);
  const track = tracks.length === 0 || note.track === null ? null : trackOf(page.store.state, note.track);
  const about = note.track === null ? "" : track === null ? note.track : nameOf(track);
  return (
    <span class="note-when" data-style={style} data-begin={String(begin)}>
      {whenText(clockOf(page.store.state), note)}
      {about === "" ? null : <span class="note-track"> · {about}</span>}
      {note.author === null ? null : <span> · {note.author}</span>}
    </span>
  );
}

interface ListOptions {
  readonly page: Page;
  readonly desk: NotesDesk;
  readonly notes: readonly Note[];
  readonly state: NotesState;
}

function List({ page, desk, notes, state }: ListOptions): JSX.Element {
  const [went, go] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const { chosen, editing } = state;
  const focusOn = (index: number): void => {
    const next = Math.min(notes.length - 1, Math.max(0, index));
    go(next);
    // The line is there once it is scrolled to.
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-line="${next}"] .note-show`)?.focus());
  };
  const remove = async (note: Note, index: number): Promise<void> => {
    await desk.remove(note);
    focusOn(index);
  };
  const press = (event: KeyboardEvent): void => {
    const line = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>("[data-line]") : null;
    const index = Number(line?.dataset["line"] ?? -1);
    const note = notes[index];
    if (note === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const acts: Readonly<Record<string, () => void>> = {
      ArrowDown: () => focusOn(index + 1),
      ArrowUp: () => focusOn(index - 1),
      Home: () => focusOn(0),
      End: () => focusOn(notes.length - 1),
      F2: () => desk.edit(note),
      Delete: () => void remove(note, index),
    };
    const act = acts[event.key];
    if (act !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  };
  const at = notes.findIndex(({ id }) => id === chosen);
  return (
    <div class="notes" ref={box} onKeyDown={press}>
      <VirtualList
        items={notes}
        height={LINE_HEIGHT}
        keyOf={(note) => keyOf(notes, note)}
        label="Notes"
        shown={at < 0 ? (went ?? -1) : at}
        render={(note, index) => (
          <Line
            page={page}
            desk={desk}
            note={note}
            index={index}
            isChosen={note.id === chosen}
            editing={editing !== null && !editing.isNew && editing.note.id === note.id ? editing : null}
            remove={() => void remove(note, index)}
          />
        )}
      />
    </div>
  );
}

/** Where git could not know better, two notes may have the same id. */
function keyOf(notes: readonly Note[], note: Note): string {
  return `${note.id} ${notes.filter(({ id, begin }) => id === note.id && begin < note.begin).length}`;
}

interface LineOptions {
  readonly page: Page;
  readonly desk: NotesDesk;
  readonly note: Note;
  readonly index: number;
  readonly isChosen: boolean;
  readonly editing: Editing | null;
  readonly remove: () => void;
}

function Line({ page, desk, note, index, isChosen, editing, remove }: LineOptions): JSX.Element {
  const title = titleOf(note);
  const [theme] = usePick(page.store, (state) => [state.theme] as const);
  if (editing !== null) {
    return (
      <div class="note-line edited" data-line={index}>
        <Editor desk={desk} editing={editing} theme={page.store.state.theme} />
      </div>
    );
  }
  return (
    <div class={`note-line${isChosen ? " chosen" : ""}`} data-line={index} style={{ "--note": css(colourOf([note.colour], theme)) }}>
      <button type="button" class="plain note-show" title={note.text} {...(isChosen ? { "aria-current": "true" as const } : {})} onClick={() => desk.show(note)}>
        <When page={page} note={note} />
        {note.text.trim() === "" ? <span class="note-text faint">{title}</span> : <span class="note-text">{note.text}</span>}
      </button>
      <button type="button" class="plain note-act" aria-label={`Change: ${title}`} title="Change it: text, author, colour (F2)" onClick={() => desk.edit(note)}>
        ✎
      </button>
      <button type="button" class="plain note-act" aria-label={`Remove: ${title}`} title="Remove it (Del)" onClick={remove}>
        ×
      </button>
    </div>
  );
}

/** Lines of the file that are no notes, as where two people's could not be merged. */
function Problems({ file, problems }: { readonly file: string; readonly problems: readonly NotesProblem[] }): JSX.Element {
  const rest = problems.length - PROBLEMS_MAX;
  return (
    <details class="note-problems" open>
      <summary>
        {problems.length === 1 ? "A line" : `${problems.length.toLocaleString("en")} lines`} of the file {problems.length === 1 ? "is no note and stays" : "are no notes and stay"} there
      </summary>
      <ul aria-label={`What is wrong in ${file}`}>
        {problems.slice(0, PROBLEMS_MAX).map(({ line, message }) => (
          <li key={line}>
            line {line}: {message}
          </li>
        ))}
        {rest > 0 ? <li>and {rest.toLocaleString("en")} more</li> : null}
      </ul>
    </details>
  );
}
