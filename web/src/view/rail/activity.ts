// Finds out in which tracks nothing happens while only active ones are wanted: whenever tiles have come or the window is another one, but no
// more often than a user would notice.

import { activityOf, bucketsOf } from "../../model/idle.ts";
import { levelFor, tilesIn } from "../../model/wanted.ts";
import { withIdle } from "../../state/tracks.ts";
import { widthOf } from "../../state/viewer.ts";
import type { Page } from "../page.ts";

const PACE_MS = 200;

export function keepActivity({ store, tiles }: Page): void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let before = store.state;
  const look = (): void => {
    if (timer !== null) {
      clearTimeout(timer);
      timer = null;
    }
    const { status, view, layout, catalogue } = store.state;
    const width = widthOf(store.state);
    if (!layout.active || status === null || view === null || width <= 0) {
      store.update((state) => withIdle(state, null));
      return;
    }
    const range = tilesIn(view, status.extent, levelFor(view.span, width, status.levels));
    const { idle, busy } = activityOf(tiles, range, bucketsOf(view, status.extent.begin, range.level), catalogue);
    store.update((state) => withIdle(state, idle, busy));
  };
  store.subscribe(() => {
    const now = store.state;
    const isSwitched = now.layout.active !== before.layout.active;
    const isOther = now.arrivals !== before.arrivals || now.view !== before.view || now.size !== before.size;
    before = now;
    if (isSwitched) {
      // At once, so that no picture shows rows that are known to be idle.
      look();
    } else if (isOther && (now.layout.active || now.idle !== null)) {
      timer ??= setTimeout(look, PACE_MS);
    }
  });
}
