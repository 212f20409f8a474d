// How components read the state: each says which part it shows, and is drawn again when that part is another one.

import { useEffect, useReducer, useRef } from "preact/hooks";
import type { Store } from "../state/store.ts";

/** What `pick` takes from the state; two picks are the same if they are equal or, as lists, have equal entries. */
export function usePick<S, T>(store: Store<S>, pick: (state: S) => T): T {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const picked = pick(store.state);
  const latest = useRef({ pick, picked });
  latest.current = { pick, picked };
  useEffect(
    () =>
      store.subscribe(() => {
        const { pick: again, picked: before } = latest.current;
        if (!same(again(store.state), before)) {
          redraw(0);
        }
      }),
    [store],
  );
  return picked;
}

function same(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((entry, index) => Object.is(entry, other[index]));
  }
  return Object.is(one, other);
}
