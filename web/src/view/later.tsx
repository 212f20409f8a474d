// Parts of the page that are fetched when they are shown first, as charts are: opening a trace needs less.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Page } from "./page.ts";

type View = (props: { readonly page: Page }) => JSX.Element;

/** A part of the page that `load` fetches once. Where that fails, the page tells so in its place, and the user may try again. */
export function later(load: () => Promise<View>): View {
  let found: View | null = null;
  return function Later({ page }) {
    const [Part, show] = useState<View | null>(() => found);
    const [fault, fail] = useState<Error | null>(null);
    useEffect(() => {
      let isOver = false;
      if (Part === null) {
        load().then(
          (view) => {
            found = view;
            return isOver ? undefined : show(() => view);
          },
          (error: unknown) => (isOver ? undefined : fail(error instanceof Error ? error : new Error(String(error)))),
        );
      }
      return () => {
        isOver = true;
      };
    }, []);
    if (fault !== null) {
      throw fault;
    }
    return Part === null ? <p class="hint" role="status">One moment…</p> : <Part page={page} />;
  };
}
