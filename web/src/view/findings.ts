// Asks for the problems of the traces: when it is known which these are, again when all of them was read, and when more is lost.

import { ApiFault } from "../api/client.ts";
import { passes } from "../model/fault.ts";
import { readFindings } from "../model/findings.ts";
import type { Status } from "../model/catalogue.ts";
import type { Page } from "./page.ts";

/** A request that the server could not answer is sent again after that. */
const RETRY_MS = 2_000;

/** Keeps the findings in the state. */
export function keepFindings({ store, client }: Pick<Page, "store" | "client">): void {
  let [asked, isAsking] = ["", false];
  const look = (): void => {
    const now = occasionOf(store.state.status);
    if (isAsking || now === asked) {
      return;
    }
    [asked, isAsking] = [now, true];
    client.json("findings").then(
      (shape) => {
        isAsking = false;
        store.update((state) => ({ ...state, findings: readFindings(shape) }));
        look();
      },
      (error: unknown) => {
        isAsking = false;
        // Servers that are older do not know; other faults are shown elsewhere.
        if (error instanceof ApiFault && passes(error.kind)) {
          setTimeout(() => {
            asked = "";
            look();
          }, RETRY_MS);
        }
      },
    );
  };
  store.subscribe(look);
}

/** The parts of a status on which the server's findings depend. */
function occasionOf(status: Status | null): string {
  return status === null ? "" : `${status.instance} ${status.state} ${status.lost} ${status.failure ?? ""}`;
}
