// The shown traces, and how well they are known: their names, and a badge that says how far the server is.

import type { JSX } from "preact";
import { plain } from "../model/plain.ts";
import { Doors } from "./doors.tsx";
import { FilterChips } from "./filter-chips.tsx";
import { Badge } from "./health.tsx";
import { usePick } from "./hooks.ts";
import { COMMANDS } from "./keys.ts";
import { ImageMenu } from "./image-menu.tsx";
import { CopyLink } from "./link.tsx";
import { LiveChip } from "./live-chip.tsx";
import { Omnibox } from "./omnibox.tsx";
import type { Page } from "./page.ts";

export function Header({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [traces] = usePick(store, (state) => [state.traces] as const);
  return (
    <header class="header">
      <h1 class="mark">Kymograph</h1>
      <ul class="chips" aria-label="Traces" tabIndex={0}>
        {traces.map((trace) => (
          <li class="chip" key={trace.path ?? trace.name} title={plain(trace.path ?? trace.name)}>
            {plain(trace.name)}
          </li>
        ))}
      </ul>
      <Omnibox page={page} commands={COMMANDS} />
      <FilterChips page={page} />
      <Badge page={page} />
      <LiveChip page={page} />
      <Doors page={page} />
      <ImageMenu page={page} />
      <CopyLink page={page} />
      <button type="button" class="button" title="Keys and mouse (?)" onClick={() => store.update((state) => ({ ...state, help: true }))}>
        ?
      </button>
    </header>
  );
}
