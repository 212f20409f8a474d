// Puts a text on the clipboard, also where the browser trusts the page's address too little to hand out its own way of doing so.

/** Whether that went well. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // There is no clipboard, or it is not for pages like this one: by the selection of an element it goes everywhere.
    return copyFrom(text);
  }
}

function copyFrom(text: string): boolean {
  const area = document.createElement("textarea");
  const before = document.activeElement;
  area.value = text;
  area.className = "offscreen";
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) {
    before.focus();
  }
  return isDone;
}
