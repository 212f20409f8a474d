// Takes a text out of the page: into the clipboard, or, where a page may not have that, into a file.

/** Says what became of it. */
export async function takeOut(text: string, name: string, type: string): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied.";
  } catch {
    save(new Blob([text], { type }), name);
    return `The browser gives no clipboard: saved as ${name}.`;
  }
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
