// Answers that the server sends with the page: those to the page's first requests, so that it need not wait for them.

import { Shape, ShapeFault } from "../model/json.ts";

/** The part of a document that the page needs here; tests have their own. */
export interface Leaf {
  getElementById(id: string): { readonly textContent: string | null; remove(): void } | null;
}

const ID = "told";

/** Answers by paths of the API; none where the server has told none, as to a page that comes back without the token in the URL. */
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
      // The page's own request finds out the fault of the server.
      return new Map();
    }
    throw error;
  }
}
