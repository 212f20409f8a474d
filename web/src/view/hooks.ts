// How components read the state: each picks a part of it, and is drawn again when that part changes.

import { useEffect, useReducer, useRef } from "preact/hooks";
import type { Store } from "../state/store.ts";

/** The part that `pick` takes from the state; two picks are the same if they are equal or, as lists, have equal entries. */
export function usePick<S, T>(store: Store<S>, pick: (state: S) => T): T {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const picked = pick(store.state);
  const latest = useRef({ pick, picked });
  latest.current = { pick, picked };
  useEffect(() => watch(store, () => same(latest.current.pick(store.state), latest.current.picked), () => redraw(0)), [store]);
  return picked;
}

/** Calls `changed` whenever the drawing is not that of the state, until the caller calls the returned function. Between the drawing and this call, which comes
 * after the picture, the state may have changed already, and never change again. */
export function watch<S>(store: Store<S>, isDrawn: () => boolean, changed: () => void): () => void {
  const look = (): void => (isDrawn() ? undefined : changed());
  look();
  return store.subscribe(look);
}

function same(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((entry, index) => Object.is(entry, other[index]));
  }
  return Object.is(one, other);
}
