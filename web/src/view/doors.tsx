// The buttons that open the panels without a key: one for each in the header, and, while the lower panel is closed, its tabs in the line at the bottom.

import type { JSX } from "preact";
import { SIDES, openedPanel, toggledPanel, type Panels, type Side } from "../model/panels.ts";
import { withPanels } from "../state/viewer.ts";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";
import { TABS } from "./tabs.ts";

/** A panel's name, the key that opens it, and the part of the page that it takes. */
const DOORS: Readonly<Record<Side, { readonly name: string; readonly key: string; readonly part: string }>> = {
  rail: { name: "Left panel", key: "B", part: "M1.5 1.5h5v11h-5z" },
  drawer: { name: "Lower panel", key: "Q", part: "M1.5 8h15v4.5h-15z" },
  inspector: { name: "Right panel", key: "I", part: "M11.5 1.5h5v11h-5z" },
};

export function Doors({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [panels] = usePick(store, (state) => [state.panels] as const);
  const act = (change: (panels: Panels) => Panels): void => store.update((state) => withPanels(state, change(state.panels)));
  return (
    <div class="doors" role="group" aria-label="Panels">
      {SIDES.map((side) => {
        const { name, key, part } = DOORS[side];
        const { isOpen } = panels[side];
        const tabs = TABS[side].map(({ title }) => title.toLowerCase()).join(", ");
        return (
          <button key={side} type="button" class="plain door" data-door={side} aria-label={name} aria-pressed={isOpen} title={`${isOpen ? "Close" : "Open"}: ${tabs} (${key})`} onClick={() => act((now) => toggledPanel(now, side))}>
            <svg width="18" height="14" viewBox="0 0 18 14" fill="none" stroke="currentColor" aria-hidden="true">
              <path d="M1.5 1.5h15v11h-15z" />
              <path d={part} fill="currentColor" opacity={isOpen ? 1 : 0.4} />
            </svg>
          </button>
        );
      })}
    </div>
  );
}

/** The tabs of the lower panel where that is closed; a newcomer sees which there are. */
export function ClosedTabs({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [isOpen] = usePick(store, (state) => [state.panels.drawer.isOpen] as const);
  if (isOpen) {
    return null;
  }
  return (
    <span class="closed-tabs" role="group" aria-label="Lower panel">
      {TABS.drawer.map(({ id, title, hint }) => (
        <button key={id} type="button" class="plain" title={hint} onClick={() => store.update((state) => withPanels(state, openedPanel(state.panels, "drawer", id)))}>
          {title}
        </button>
      ))}
    </span>
  );
}

/** The focus goes to the button that opens a panel: the panel that had it is closed. */
export function focusDoor(side: Side): void {
  document.querySelector<HTMLElement>(`[data-door="${side}"]`)?.focus();
}
