// Learns which fields events have, when the user begins to write an expression: from the columns of a list of events.

import { readRows } from "../../model/arrow.ts";
import { fieldOffers } from "../../model/completion.ts";
import type { Page } from "../page.ts";
import { countingOf } from "./counting.ts";

const asked = new WeakSet<Page>();

/** Asks once. Where that fails, nothing but words of the language is offered. */
export function learnFields(page: Page): void {
  if (asked.has(page)) {
    return;
  }
  asked.add(page);
  page.client.bytes("events?limit=1", null).then(
    (answer) => {
      if (answer !== "unchanged") {
        const fields = fieldOffers(readRows(answer.bytes).columns.map((column) => column.name));
        countingOf(page).store.update((state) => ({ ...state, vocabulary: { ...state.vocabulary, fields } }));
      }
    },
    () => asked.delete(page),
  );
}
