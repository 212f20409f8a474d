// Export from the page: a text to the clipboard, a file that the browser saves. All exports go through here.

import type { Page } from "./page.ts";

/** The browser has begun to read a file by then. */
const READ_MS = 60_000;

/**
 * Puts a text on the clipboard; whether that went well. A page that has come over a network without encryption gets no clipboard by itself: there
 * the browser's copy event takes the text.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByEvent(text);
  }
}

function copyByEvent(text: string): boolean {
  let isTaken = false;
  const listener = (event: ClipboardEvent): void => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    isTaken = event.clipboardData !== null;
  };
  document.addEventListener("copy", listener, { once: true });
  const isDone = document.execCommand("copy");
  document.removeEventListener("copy", listener);
  return isDone && isTaken;
}

/** Copies a text, or saves it where nothing can be copied; returns a message about the result. */
export async function takeOut(text: string, name: string, type: string): Promise<string> {
  if (await copyText(text)) {
    return "Copied.";
  }
  saveFile(new Blob([text], { type }), name);
  return `The browser gives no clipboard: saved as ${name}.`;
}

/** Has the browser save something. */
export function saveFile(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), READ_MS);
}

/** The names of files: after the traces. */
export function traceName(page: Pick<Page, "store">): string {
  const name = page.store.state.traces.map((trace) => trace.name).join("+");
  return name.replace(/[^\w.+-]+/g, "_").slice(0, 80) || "trace";
}
