// What the server tells with the page: answers to what a page asks first, so that it need not wait for them.

import { Shape, ShapeFault } from "../model/json.ts";

/** What of a document is needed here; tests have their own. */
export interface Leaf {
  getElementById(id: string): { readonly textContent: string | null; remove(): void } | null;
}

const ID = "told";

/** Answers by paths of the API; none where the server has told none, as to whoever comes back without the token in the URL. */
export function takeTold(leaf: Leaf): ReadonlyMap<string, string> {
  const element = leaf.getElementById(ID);
  element?.remove();
  const text = element?.textContent ?? "";
  if (text === "") {
    return new Map();
  }
  try {
    return new Map(new Shape(JSON.parse(text), ID).members().map(([path, answer]) => [path, answer.text()]));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ShapeFault) {
      // Whoever asks finds out what is wrong with the server.
      return new Map();
    }
    throw error;
  }
}
