// Asks once which fields the traces' events have, as soon as a filter or the panel of filters needs to know it: not before, as the user of
// a new page wants to see tiles first.

import { askNames } from "../api/filter.ts";
import { ApiFault } from "../api/client.ts";
import { passes } from "../model/fault.ts";
import { needsNames } from "../model/filter.ts";
import { withNames } from "../state/filter.ts";
import type { State } from "../state/viewer.ts";
import type { Page } from "./page.ts";

/** A request that the server could not answer is sent again after that. */
const RETRY_MS = 2_000;

/** Has names asked for when they are needed. */
export function keepNames({ store, client }: Pick<Page, "store" | "client">): void {
  let isAsking = false;
  const look = (): void => {
    if (isAsking || !isNeeded(store.state)) {
      return;
    }
    isAsking = true;
    askNames(client).then(
      (names) => store.update((state) => withNames(state, names)),
      (error: unknown) => {
        // Other faults of the server are shown elsewhere.
        if (error instanceof ApiFault && passes(error.kind)) {
          setTimeout(() => {
            isAsking = false;
            look();
          }, RETRY_MS);
        }
      },
    );
  };
  store.subscribe(look);
  look();
}

function isNeeded({ filter, panels }: State): boolean {
  return filter.names === null && (needsNames(filter) || panels.rail.isOpen);
}
