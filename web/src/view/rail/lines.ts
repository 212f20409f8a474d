// Arrows go from line to line of a list. Each line has a box and a name: arrows go from box to box, from name to name.

import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";

export interface Lines {
  /** The element around the list; each line says its number in `data-line`. */
  readonly box: RefObject<HTMLDivElement | null>;
  /** The line that has to be seen; -1: any. */
  readonly shown: number;
  readonly step: (event: KeyboardEvent) => void;
}

export function useLines(count: number): Lines {
  const [shown, setShown] = useState(-1);
  const box = useRef<HTMLDivElement>(null);
  const step = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const line = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>("[data-line]") : null;
    if (by === 0 || line === null) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const next = Math.min(count - 1, Math.max(0, Number(line.dataset["line"]) + by));
    setShown(next);
    const isBox = event.target instanceof HTMLInputElement;
    // The line is there once it is scrolled to.
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-line="${next}"] ${isBox ? "input" : "button"}`)?.focus());
  };
  return { box, shown, step };
}
