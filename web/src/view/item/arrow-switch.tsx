// Shows and hides all arrows between rows. It is absent where traces have none.

import type { JSX } from "preact";
import { arrowTracks } from "../../model/arrows.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import "./item.css";

export function ArrowSwitch({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [isOn, hasAny] = usePick(store, (state) => [state.arrows, arrowTracks(state.catalogue.tracks).length > 0] as const);
  if (!hasAny) {
    return null;
  }
  return (
    <button
      type="button"
      class="plain arrow-switch"
      aria-label="Arrows between rows"
      aria-pressed={isOn}
      title={isOn ? "Hide the arrows between rows (V)" : "Show arrows between rows: wakeups and messages (V)"}
      onClick={() => store.update((state) => ({ ...state, arrows: !state.arrows }))}
    >
      <svg width="18" height="14" viewBox="0 0 18 14" fill="none" stroke="currentColor" stroke-width="1.6" aria-hidden="true">
        <path d="M1 2h4l7 10h4M13 9.500l3 2.500-3 2" />
      </svg>
    </button>
  );
}
