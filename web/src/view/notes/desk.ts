// Reads and writes notes for a page. No message tells of other programs' changes: notes are read again when the user comes back to the page,
// and after each change.

import { askNotes, keepNote, removeNote } from "../../api/notes.ts";
import { ApiFault } from "../../api/client.ts";
import type { Fault } from "../../model/fault.ts";
import type { Note } from "../../model/notes.ts";
import { openedPanel } from "../../model/panels.ts";
import { NO_NOTES, edited, heard, marked, noteShown, placeMeant, withNote, withoutNote, writing, written, type Editing } from "../../state/notes.ts";
import { Store } from "../../state/store.ts";
import { withPanels } from "../../state/viewer.ts";
import type { Page } from "../page.ts";

/** The author of the latest note in this browser: the next note most likely has the same. */
export interface Author {
  get(): string | null;
  set(name: string | null): void;
}

export class NotesDesk {
  readonly store = new Store(NO_NOTES);
  private readonly page: Pick<Page, "client" | "store">;
  private readonly newId: () => string;
  private readonly author: Author;
  private asking: AbortController | null = null;
  /** Changes that are on their way. */
  private changes = 0;
  /** The act that begins when the note on its way is kept, or is not. */
  private next: (() => void) | null = null;

  constructor(page: Pick<Page, "client" | "store">, newId: () => string, author: Author) {
    this.page = page;
    this.author = author;
    this.newId = newId;
  }

  /** Reads notes now, when the user comes back to the page, and when the server is there again, until the caller calls the returned function. */
  begin(focus: Pick<EventTarget, "addEventListener" | "removeEventListener">): () => void {
    const again = (): void => void this.read();
    let before = this.page.store.state.connection;
    const end = this.page.store.subscribe(() => {
      const { connection } = this.page.store.state;
      const isBack = connection === "heard" && before === "lost";
      before = connection;
      if (isBack) {
        again();
      }
    });
    focus.addEventListener("focus", again);
    again();
    return () => {
      focus.removeEventListener("focus", again);
      end();
      this.asking?.abort();
      this.asking = null;
    };
  }

  /** Asks for all notes. An earlier request may be from before a change: its answer is not wanted any more. */
  async read(): Promise<void> {
    this.asking?.abort();
    this.asking = null;
    if (this.changes > 0) {
      return;
    }
    const asking = new AbortController();
    this.asking = asking;
    this.store.update((state) => ({ ...state, isAsking: true }));
    try {
      const file = await askNotes(this.page.client, asking.signal);
      if (!asking.signal.aborted) {
        this.store.update((state) => heard(state, file));
      }
    } catch (error) {
      if (!asking.signal.aborted) {
        this.store.update((state) => ({ ...state, isAsking: false, fault: faultOf(error) }));
      }
    }
  }

  /** Begins a note about the selection or the place of the pointer, and opens the panel with it. A note in the editor stays there; behind a note
   * on its way comes the next one. */
  make(): void {
    const { store } = this.page;
    const place = placeMeant(store.state);
    store.update((state) => withPanels(state, openedPanel(state.panels, "rail", "notes")));
    const begin = (): void => {
      const { editing, file } = this.store.state;
      // Without a file there is nothing to write to: the panel says why.
      if (place !== null && editing === null && file !== null) {
        const note: Note = { id: this.newId(), ...place, text: "", author: this.author.get(), colour: null, rest: [] };
        this.store.update((state) => writing(state, note, true));
      }
    };
    if (this.store.state.editing?.isSaving === true) {
      this.next = begin;
    } else {
      begin();
    }
  }

  edit(note: Note): void {
    this.store.update((state) => writing(state, note, false));
  }

  /** The texts in the boxes, or the chosen color, change. */
  type(change: Partial<Pick<Editing, "text" | "author" | "colour">>): void {
    this.store.update((state) => edited(state, change));
  }

  /** The changes in the editor are dropped. */
  leave(): void {
    this.store.update((state) => ({ ...state, editing: null }));
  }

  /** Keeps the text in the editor, if there is any. */
  async save(): Promise<void> {
    const { editing } = this.store.state;
    const note = written(this.store.state);
    if (editing === null || editing.isSaving) {
      return;
    }
    if (note === null) {
      this.leave();
      return;
    }
    this.store.update((state) => edited(state, { isSaving: true, fault: null }));
    // A change of another author's note does not make the user that author.
    if (editing.isNew || note.author !== editing.note.author) {
      this.author.set(note.author);
    }
    const fault = await this.change(() => keepNote(this.page.client, note));
    this.store.update((state) => (fault === null ? { ...withNote(state, note), editing: null } : edited(state, { isSaving: false, fault })));
    this.settle();
    this.next?.();
    this.next = null;
  }

  async remove(note: Note): Promise<void> {
    const fault = await this.change(() => removeNote(this.page.client, note.id));
    this.store.update((state) => (fault === null ? withoutNote(state, note) : { ...state, fault }));
    this.settle(fault);
  }

  /** The note removed last is there again. */
  async putBack(): Promise<void> {
    const { removed } = this.store.state;
    if (removed === null) {
      return;
    }
    const fault = await this.change(() => keepNote(this.page.client, removed));
    this.store.update((state) => (fault === null ? { ...withNote(state, removed), removed: null, chosen: removed.id } : { ...state, fault }));
    this.settle(fault);
  }

  /** Shows the place of a note on the timeline. */
  show(note: Note): void {
    this.store.update((state) => ({ ...state, chosen: note.id }));
    this.page.store.update((state) => noteShown(state, note));
  }

  /** Does it, and returns the fault. */
  private async change(act: () => Promise<void>): Promise<Fault | null> {
    this.changes++;
    try {
      await act();
      return null;
    } catch (error) {
      return faultOf(error);
    } finally {
      this.changes--;
    }
  }

  /** A change is done: the file is read again, unless that would hide the fault. */
  private settle(fault: Fault | null = null): void {
    if (fault === null) {
      void this.read();
    }
  }
}

function faultOf(error: unknown): Fault {
  const { kind, message } = error instanceof ApiFault ? error : new ApiFault("nonsense", error instanceof Error ? error.message : String(error));
  return { kind, message };
}

const all = new WeakMap<Page, NotesDesk>();

/** The desk of a page's notes: one for all components that show them. */
export function notesOf(page: Page): NotesDesk {
  let found = all.get(page);
  if (found === undefined) {
    found = new NotesDesk(page, randomId, keptAuthor);
    all.set(page, found);
  }
  return found;
}

/** The notes that are marked on lines of time. */
export function notesShown(page: Page): readonly Note[] {
  return marked(notesOf(page).store.state);
}

const AUTHOR_KEY = "kymo-author";

const keptAuthor: Author = {
  get: () => localStorage.getItem(AUTHOR_KEY),
  set: (name) => {
    try {
      if (name === null) {
        localStorage.removeItem(AUTHOR_KEY);
      } else {
        localStorage.setItem(AUTHOR_KEY, name);
      }
    } catch {
      // The browser keeps nothing: it is asked for again.
    }
  },
};

/** An id that is unique. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return `n${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
