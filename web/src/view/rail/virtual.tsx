// A list that renders only the lines on the screen: ten thousands of lines are as quick as ten.

import type { HTMLAttributes, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Lines above and below the visible ones that are there all the same, so that the focus can go there. */
const MARGIN = 4;

export interface VirtualOptions<T> {
  readonly items: readonly T[];
  /** CSS pixels of a line; all are as high. */
  readonly height: number;
  readonly keyOf: (item: T) => string;
  readonly render: (item: T, index: number) => JSX.Element;
  /** As high as so many lines at most; without it, as there is room. */
  readonly linesMax?: number;
  /** The line that has to be seen; it is brought there when it becomes another one. */
  readonly shown?: number;
  /** The line that is there even if it is not seen, so that the focus can go there and stay there. */
  readonly kept?: number;
  readonly role?: "group" | "tree" | "listbox";
  readonly label: string;
  readonly id?: string;
  readonly more?: HTMLAttributes<HTMLDivElement>;
}

export function VirtualList<T>(options: VirtualOptions<T>): JSX.Element {
  const { items, height, keyOf, render, linesMax, shown, kept = -1, role = "group", label, id, more } = options;
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const room = useHeight(scroller);
  useLayoutEffect(() => {
    const { current } = scroller;
    if (current !== null && shown !== undefined && shown >= 0) {
      bring(current, shown * height, height);
    }
  }, [shown, height]);
  const all = items.length * height;
  const seen = Math.min(top, Math.max(0, all - room));
  const first = Math.max(0, Math.floor(seen / height) - MARGIN);
  const last = Math.min(items.length, Math.ceil((seen + room) / height) + MARGIN);
  const lines = items.slice(first, last).map((item, index) => ({ item, index: first + index }));
  const apart = kept >= first && kept < last ? undefined : items[kept];
  if (apart !== undefined) {
    // In the order of lines, so that an element that has the focus is not moved, which would take it away.
    lines.splice(kept < first ? 0 : lines.length, 0, { item: apart, index: kept });
  }
  const limit = linesMax === undefined ? {} : { height: `${Math.min(all, linesMax * height)}px` };
  return (
    <div
      class="virtual"
      ref={scroller}
      role={role}
      aria-label={label}
      {...(id === undefined ? {} : { id })}
      style={limit}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      {...more}
    >
      <div class="virtual-all" role="presentation" style={{ height: `${all}px` }}>
        <div class="virtual-seen" role="presentation" style={{ transform: `translateY(${first * height}px)` }}>
          {lines.map(({ item, index }) => (
            <div key={keyOf(item)} class="virtual-line" role="presentation" style={{ top: `${(index - first) * height}px`, height: `${height}px` }}>
              {render(item, index)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** How high an element is. */
function useHeight(element: { readonly current: HTMLElement | null }): number {
  const [height, setHeight] = useState(0);
  useEffect(() => {
    const { current } = element;
    if (current === null) {
      return undefined;
    }
    const tell = (): void => setHeight(current.clientHeight);
    const observer = new ResizeObserver(tell);
    observer.observe(current);
    tell();
    return () => observer.disconnect();
  }, [element]);
  return height;
}

/** Scrolls no further than needed. */
function bring(scroller: HTMLElement, top: number, height: number): void {
  if (top < scroller.scrollTop) {
    scroller.scrollTop = top;
  } else if (top + height > scroller.scrollTop + scroller.clientHeight) {
    scroller.scrollTop = top + height - scroller.clientHeight;
  }
}
