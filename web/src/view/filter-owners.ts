// Keeps for the filter which threads are of which application, while applications are chosen. Tracks tell that; only where they do not know one that
// was chosen, or guess the name of a process, events are counted for it.

import { ownersOf } from "../model/owners.ts";
import { refiltered } from "../state/filter.ts";
import type { Page } from "./page.ts";
import { countingOf } from "./rail/counting.ts";

export function keepOwners(page: Page): void {
  const { store } = page;
  const counting = countingOf(page);
  let release: (() => void) | null = null;
  const look = (): void => {
    const { filter, catalogue, isCatalogued, status } = store.state;
    if (filter.applications === null || !isCatalogued) {
      release?.();
      release = null;
      return;
    }
    const owners = ownersOf(catalogue.tracks, counting.store.state.all?.whose ?? null);
    if (owners !== filter.owners) {
      store.update((state) => refiltered(state, { owners }));
      return;
    }
    const chosen = [...(filter.applications.only ?? []), ...filter.applications.but];
    // Tracks may still become known while traces are read.
    if (release === null && status?.state === "complete" && (owners.isGuess || chosen.some((name) => !owners.members.has(name)))) {
      release = counting.want();
    }
  };
  store.subscribe(look);
  counting.store.subscribe(look);
  look();
}
