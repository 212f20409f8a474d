// What is shown, and how well it is known: the traces by name, and a badge that says how far the server is.

import type { JSX } from "preact";
import type { Status } from "../model/catalogue.ts";
import { duration } from "../model/clock.ts";
import { isRecording } from "../model/live.ts";
import { advice } from "../model/fault.ts";
import type { State } from "../state/viewer.ts";
import { minus, nanos } from "../units/time.ts";
import { Doors } from "./doors.tsx";
import { FilterChips } from "./filter-chips.tsx";
import { usePick } from "./hooks.ts";
import { COMMANDS } from "./keys.ts";
import { ImageMenu } from "./image-menu.tsx";
import { LiveChip, useFlash } from "./live-chip.tsx";
import { Omnibox } from "./omnibox.tsx";
import type { Page } from "./page.ts";

export function Header({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [traces, status, connection, isFiltering] = usePick(store, (state) => [state.traces, state.status, state.connection, state.isFiltering] as const);
  return (
    <header class="header">
      <h1 class="mark">Kymograph</h1>
      <ul class="chips" aria-label="Traces">
        {traces.map((trace) => (
          <li class="chip" key={trace.path ?? trace.name} title={trace.path ?? trace.name}>
            {trace.name}
          </li>
        ))}
      </ul>
      <Omnibox page={page} commands={COMMANDS} />
      <FilterChips page={page} />
      <Badge status={status} connection={connection} isFiltering={isFiltering} />
      <LiveChip page={page} />
      <Doors page={page} />
      <ImageMenu page={page} />
      <button type="button" class="button" title="Keys and mouse (?)" onClick={() => store.update((state) => ({ ...state, help: true }))}>
        ?
      </button>
    </header>
  );
}

interface BadgeOptions {
  readonly status: Status | null;
  readonly connection: State["connection"];
  readonly isFiltering: boolean;
}

function Badge({ status, connection, isFiltering }: BadgeOptions): JSX.Element {
  if (connection === "lost" || connection === "refused") {
    return (
      <span class="badge bad" role="status" title={advice(connection === "lost" ? "unreachable" : "token")}>
        {connection === "lost" ? "no answer" : "not allowed"}
      </span>
    );
  }
  if (status === null) {
    return (
      <span class="badge" role="status">
        opening
      </span>
    );
  }
  const span = duration(minus(status.extent.end, status.extent.begin));
  const events = status.events === null ? "" : ` · ${status.events.toLocaleString("en")} events`;
  return (
    <>
      <span class="facts">
        {span}
        {events}
      </span>
      <Losses lost={status.lost} />
      <Reading status={status} isFiltering={isFiltering} />
    </>
  );
}

/** What is recorded is read several times a second: that is told of where it takes so long at least. */
const LONG_MS = 2_000;

/** How far reading is. Of what is recorded nothing is complete: how far behind that is, is said beside it. */
function Reading({ status, isFiltering }: { readonly status: Status; readonly isFiltering: boolean }): JSX.Element | null {
  if (isFiltering && status.state === "complete") {
    return (
      <span class="badge busy" role="status" title="All of the traces has been read, but what the filter means is still looked for where it is hatched.">
        filtering
      </span>
    );
  }
  if (isRecording(status) && status.state !== "failed" && (status.etaMs ?? 0) < LONG_MS) {
    return null;
  }
  return (
    <span class={`badge ${TONES[status.state]}`} role="status" title={status.failure ?? WORDS[status.state]}>
      {status.state === "building" ? progress(status) : status.state}
    </span>
  );
}

/** What is missing of the traces; nothing if nothing is. That more is missing than before is seen for a moment. */
function Losses({ lost }: { readonly lost: Status["lost"] }): JSX.Element | null {
  const flash = useFlash(lost);
  if (lost === 0n) {
    return null;
  }
  const many = lost === null ? "events" : lost.toLocaleString("en");
  return (
    <span class={`badge bad lost ${flash}`} role="status" title="The tracer had no room for these events: what they would have changed is not seen.">
      {many} lost
    </span>
  );
}

const TONES: Readonly<Record<Status["state"], string>> = { building: "busy", complete: "good", failed: "bad" };
const WORDS: Readonly<Record<Status["state"], string>> = {
  building: "What is hatched is not read yet; you can look around meanwhile.",
  complete: "All of the traces has been read: what is shown is exact.",
  failed: "Reading ended early.",
};

/** How much is read, and how long the rest takes. */
export function progress(status: Status): string {
  const percent = status.totalBytes === 0 ? 0 : Math.floor((100 * status.doneBytes) / status.totalBytes);
  const rest = status.etaMs === null ? "" : `, ${duration(nanos(Math.round(status.etaMs) * 1_000_000), 2)} left`;
  return `${percent} % read${rest}`;
}
