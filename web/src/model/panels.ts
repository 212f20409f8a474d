// The panels around the timeline: which are open, on which tab, and how large.

import { cssPx, type CssPx } from "../units/screen.ts";

/** Where a panel is: at the left, at the bottom, at the right. */
export type Side = "rail" | "drawer" | "inspector";

export interface Panel {
  /** The tab that is shown when it is open; `null`: the first one. */
  readonly tab: string | null;
  readonly isOpen: boolean;
  /** Its width, or its height at the bottom; `null`: the user has not sized it, and it is as large as the style has it in a window of that size. */
  readonly size: CssPx | null;
}

export type Panels = Readonly<Record<Side, Panel>>;

export const SIDES: readonly Side[] = ["rail", "drawer", "inspector"];
export const SIZE_MIN = cssPx(120);
const SIZE_MAX = cssPx(1200);

export const PLAIN_PANELS: Panels = {
  rail: { tab: null, isOpen: false, size: null },
  drawer: { tab: null, isOpen: false, size: null },
  inspector: { tab: null, isOpen: false, size: null },
};

function withPanel(panels: Panels, side: Side, change: Partial<Panel>): Panels {
  return { ...panels, [side]: { ...panels[side], ...change } };
}

/** Opens a panel, or closes it if it is open; with a tab it closes only if that one is shown. */
export function toggledPanel(panels: Panels, side: Side, tab: string | null = null): Panels {
  const now = panels[side];
  const isShown = now.isOpen && (tab === null || tab === now.tab);
  return withPanel(panels, side, { isOpen: !isShown, tab: tab ?? now.tab });
}

export function openedPanel(panels: Panels, side: Side, tab: string | null = null): Panels {
  return withPanel(panels, side, { isOpen: true, tab: tab ?? panels[side].tab });
}

/** A panel as large as the user wants it, within reason. */
export function sizedPanel(panels: Panels, side: Side, size: number): Panels {
  return withPanel(panels, side, { size: cssPx(Math.round(Math.min(SIZE_MAX, Math.max(SIZE_MIN, size)))) });
}

/** As a URL has them: the open panels, each with its tab and its size where the user has chosen these; empty: nothing is open. */
export function encodePanels(panels: Panels): string {
  const text = (side: Side): string[] => {
    const { isOpen, tab, size } = panels[side];
    return isOpen ? [[side, tab ?? "", size === null ? "" : String(size)].join(".").replace(/\.+$/, "")] : [];
  };
  return SIDES.flatMap(text).join("~");
}

/** Reads the output of [`encodePanels`]; parts that it does not understand are left out. */
export function decodePanels(text: string): Panels {
  let panels = PLAIN_PANELS;
  for (const part of text.split("~")) {
    const [name = "", tab = "", size = ""] = part.split(".");
    const side = SIDES.find((one) => one === name);
    if (side !== undefined) {
      panels = openedPanel(panels, side, /^[a-z]+$/.test(tab) ? tab : null);
      panels = /^\d{1,4}$/.test(size) ? sizedPanel(panels, side, Number(size)) : panels;
    }
  }
  return panels;
}
