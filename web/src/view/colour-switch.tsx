// The switch of colors where CPUs run threads: by thread, or by application. It is not there where no application is known.

import type { JSX } from "preact";
import { recoloured } from "../state/viewer.ts";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";

export function ColourSwitch({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [colouring, hasAny] = usePick(store, (state) => [state.colouring, state.catalogue.values.some(({ owner }) => owner?.colour != null)] as const);
  if (!hasAny) {
    return null;
  }
  const isOn = colouring === "application";
  return (
    <button
      type="button"
      class="plain arrow-switch"
      aria-label="Colours of applications"
      aria-pressed={isOn}
      title={isOn ? "Threads of an application look alike; colour each by its own name (C)" : "Colour threads by their applications (C)"}
      onClick={() => store.update(recoloured)}
    >
      <svg width="14" height="14" viewBox="0 0 14 14" fill="currentColor" aria-hidden="true">
        <path d="M1 1h5v5h-5z" />
        <path d="M8 1h5v5h-5z" opacity={isOn ? 1 : 0.4} />
        <path d="M1 8h5v5h-5z" opacity="0.6" />
        <path d="M8 8h5v5h-5z" opacity={isOn ? 0.6 : 0.2} />
      </svg>
    </button>
  );
}
