// The boxes in which a note is written: its text, its author, its color. Enter keeps it, so does going elsewhere; Escape does not.

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { notesAdvice } from "../../api/notes.ts";
import { NOTE_COLOURS, PLAIN_COLOUR, colourOf, titleOf } from "../../model/notes.ts";
import { css, type Theme } from "../../model/palette.ts";
import type { Editing } from "../../state/notes.ts";
import type { NotesDesk } from "./desk.ts";

interface EditorOptions {
  readonly desk: NotesDesk;
  readonly editing: Editing;
  readonly theme: Theme;
}

export function Editor({ desk, editing, theme }: EditorOptions): JSX.Element {
  const all = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLTextAreaElement>(null);
  const { note, isNew, text, author, isSaving, fault } = editing;
  // At once, so that the next key press is already for the box.
  useLayoutEffect(() => {
    box.current?.focus();
    box.current?.setSelectionRange(note.text.length, note.text.length);
  }, [note.id]);
  const press = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      desk.leave();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !(event.target instanceof HTMLButtonElement)) {
      event.preventDefault();
      void desk.save();
    }
  };
  // A user that goes to another window comes back to the box; one that goes from one box to the next one goes on.
  const leave = (event: FocusEvent): void => {
    const next = event.relatedTarget;
    const isInside = next instanceof Node && all.current?.contains(next) === true;
    if (!isInside && document.activeElement !== event.target) {
      void desk.save();
    }
  };
  return (
    <div class="note-editor" ref={all} onKeyDown={press} onFocusOut={leave}>
      <textarea
        ref={box}
        class="field note-box"
        rows={2}
        aria-label={isNew ? "Text of the new note" : `Text of the note: ${titleOf(note)}`}
        aria-invalid={fault !== null}
        placeholder="What is to be said (Enter keeps it, Shift+Enter begins a line)"
        readOnly={isSaving}
        value={text}
        onInput={(event) => desk.type({ text: event.currentTarget.value })}
      />
      <div class="note-more">
        <input class="field note-author" type="text" aria-label="Who says it" placeholder="Who says it" readOnly={isSaving} value={author} onInput={(event) => desk.type({ author: event.currentTarget.value })} />
        <Colours desk={desk} editing={editing} theme={theme} />
      </div>
      {fault === null ? null : (
        <p class="bad-text" role="alert">
          {fault.message}. {notesAdvice(fault.kind)}{" "}
          <button type="button" class="plain link" onClick={() => void desk.save()}>
            Keep it
          </button>{" "}
          <button type="button" class="plain link" onClick={() => desk.leave()}>
            Discard it
          </button>
        </p>
      )}
    </div>
  );
}

/** Which color the note has; one that another program gave it stays until the user chooses another one. */
function Colours({ desk, editing, theme }: EditorOptions): JSX.Element {
  const { colour } = editing;
  const chosen = colour ?? PLAIN_COLOUR;
  const names = Object.hasOwn(NOTE_COLOURS, chosen) ? Object.keys(NOTE_COLOURS) : [...Object.keys(NOTE_COLOURS), chosen];
  return (
    <span class="note-colours" role="radiogroup" aria-label="Colour">
      {names.map((name) => (
        <button
          key={name}
          type="button"
          role="radio"
          class="note-colour"
          aria-label={name}
          title={name}
          aria-checked={name === chosen}
          style={{ background: css(colourOf([name], theme)) }}
          onClick={() => desk.type({ colour: name === PLAIN_COLOUR && editing.note.colour === null ? null : name })}
        />
      ))}
    </span>
  );
}
