// A panel beside the timeline: tabs, the content of the chosen one, and an edge that can be dragged, also by keys.

import type { JSX, RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { openedPanel, sizedPanel, toggledPanel, type Panels, type Side } from "../model/panels.ts";
import { withPanels } from "../state/viewer.ts";
import { Boundary } from "./boundary.tsx";
import { useSize } from "./canvas.ts";
import { focusDoor } from "./doors.tsx";
import { Edge } from "./edge.tsx";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";
import { TABS, tabsThere } from "./tabs.ts";

const NAMES: Readonly<Record<Side, string>> = { rail: "Left panel", drawer: "Lower panel", inspector: "Right panel" };
/** Where the edge is that can be dragged, and in which direction the panel grows. */
const EDGES: Readonly<Record<Side, { readonly axis: "x" | "y"; readonly sign: 1 | -1 }>> = {
  rail: { axis: "x", sign: 1 },
  drawer: { axis: "y", sign: -1 },
  inspector: { axis: "x", sign: -1 },
};

export function PanelAt({ page, side }: { readonly page: Page; readonly side: Side }): JSX.Element | null {
  const { store } = page;
  const [panel, ids] = usePick(store, (state) => [state.panels[side], tabsThere(side, state)] as const);
  const section = useRef<HTMLElement>(null);
  const tabs = TABS[side].filter(({ id }) => ids.split(",").includes(id));
  const chosen = tabs.find((tab) => tab.id === panel.tab) ?? tabs[0];
  if (!panel.isOpen || chosen === undefined) {
    return null;
  }
  const act = (change: (panels: Panels) => Panels): void => store.update((state) => withPanels(state, change(state.panels)));
  const length = EDGES[side].axis === "x" ? "width" : "height";
  return (
    <section class={`panel ${side}`} ref={section} style={{ [length]: panel.size === null ? undefined : `${panel.size}px` }} aria-label={NAMES[side]}>
      <PanelEdge side={side} panel={section} resize={(size) => act((panels) => sizedPanel(panels, side, size))} />
      <div class="tabs">
        <div class="tab-list" role="tablist" aria-label={NAMES[side]}>
          {tabs.map((tab) => (
            <button
              key={tab.id}
              type="button"
              role="tab"
              id={`tab-${tab.id}`}
              class="tab"
              title={tab.hint}
              aria-selected={tab === chosen}
              aria-controls={`panel-${side}`}
              onClick={() => act((panels) => openedPanel(panels, side, tab.id))}
            >
              {tab.title}
            </button>
          ))}
        </div>
        <button
          type="button"
          class="plain close"
          aria-label={`Close: ${NAMES[side]}`}
          title="Close"
          onClick={() => {
            act((panels) => toggledPanel(panels, side));
            focusDoor(side);
          }}
        >
          ×
        </button>
      </div>
      <div class="content" role="tabpanel" id={`panel-${side}`} aria-labelledby={`tab-${chosen.id}`}>
        <Boundary key={chosen.id} what={`“${chosen.title}”`}>
          <chosen.view page={page} />
        </Boundary>
      </div>
    </section>
  );
}

interface PanelEdgeOptions {
  readonly side: Side;
  readonly panel: RefObject<HTMLElement | null>;
  readonly resize: (size: number) => void;
}

/** The edge between a panel and the timeline. */
function PanelEdge({ side, panel, resize }: PanelEdgeOptions): JSX.Element {
  const { axis, sign } = EDGES[side];
  const [size, measured] = useState(0);
  useSize(panel, () => measured((axis === "x" ? panel.current?.offsetWidth : panel.current?.offsetHeight) ?? 0));
  return <Edge name={NAMES[side]} axis={axis} sign={sign} size={size} resize={resize} />;
}
