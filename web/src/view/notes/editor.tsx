// The box in which a note is written. Enter keeps it, so does going elsewhere; Escape does not.

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { notesAdvice } from "../../api/notes.ts";
import { titleOf } from "../../model/notes.ts";
import type { Editing } from "../../state/notes.ts";
import type { NotesDesk } from "./desk.ts";

export function Editor({ desk, editing }: { readonly desk: NotesDesk; readonly editing: Editing }): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  const { note, isNew, text, isSaving, fault } = editing;
  // At once, so that the next key that somebody presses is already for the box.
  useLayoutEffect(() => {
    box.current?.focus();
    box.current?.setSelectionRange(note.text.length, note.text.length);
  }, [note.id]);
  const press = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      desk.leave();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void desk.save();
    }
  };
  return (
    <>
      <textarea
        ref={box}
        class="field note-box"
        rows={2}
        aria-label={isNew ? "Text of the new note" : `Text of the note: ${titleOf(note)}`}
        aria-invalid={fault !== null}
        placeholder="What is to be said (Enter keeps it, Shift+Enter begins a line)"
        readOnly={isSaving}
        value={text}
        onInput={(event) => desk.type(event.currentTarget.value)}
        onKeyDown={press}
        // Whoever goes to another window comes back to the box.
        onBlur={(event) => (document.activeElement === event.currentTarget ? undefined : void desk.save())}
      />
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
    </>
  );
}
