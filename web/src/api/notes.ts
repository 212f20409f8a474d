// Asks the server for notes, and has it keep and remove them.

import { advice, type FaultKind } from "../model/fault.ts";
import { ShapeFault } from "../model/json.ts";
import { noteBody, readNotes, type Note, type NotesFile } from "../model/notes.ts";
import { ApiFault, type Client } from "./client.ts";

/** All notes that there are now. Throws an `ApiFault`. */
export async function askNotes(client: Client, signal: AbortSignal): Promise<NotesFile> {
  const text = await client.text("notes", signal);
  try {
    return readNotes(text);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ShapeFault) {
      throw new ApiFault("nonsense", error.message);
    }
    throw error;
  }
}

/** Keeps a note: a new one, or in the place of the one with its id. Throws an `ApiFault`. */
export async function keepNote(client: Client, note: Note): Promise<void> {
  await client.put(`notes/${encodeURIComponent(note.id)}`, noteBody(note));
}

/** Removes a note; one that another program has removed is gone, too. Throws an `ApiFault`. */
export async function removeNote(client: Client, id: string): Promise<void> {
  try {
    await client.remove(`notes/${encodeURIComponent(id)}`);
  } catch (error) {
    if (!(error instanceof ApiFault && error.kind === "absent")) {
      throw error;
    }
  }
}

/** The advice to a user if notes are not read or not kept. */
export function notesAdvice(kind: FaultKind): string {
  switch (kind) {
    case "traces":
      return "Mend the file, or name another one: `kymo view --notes FILE`.";
    case "absent":
      return "`kymo view TRACE` keeps them beside the trace, `--notes FILE` in any file.";
    case "refused":
      return "Write something else, or less of it.";
    case "busy":
    case "server":
    case "unreachable":
      return "Try again; the terminal output of `kymo view` may say more.";
    default:
      return advice(kind);
  }
}
