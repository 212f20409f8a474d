import { expect, test } from "vitest";
import { PLAIN_PANELS, SIZE_MIN, decodePanels, encodePanels, openedPanel, sizedPanel, toggledPanel } from "./panels.ts";

test("a panel opens, changes its tab and closes", () => {
  const events = toggledPanel(PLAIN_PANELS, "drawer", "events");
  expect(events.drawer).toMatchObject({ isOpen: true, tab: "events" });
  const latency = toggledPanel(events, "drawer", "latency");
  expect(latency.drawer).toMatchObject({ isOpen: true, tab: "latency" });
  const closed = toggledPanel(latency, "drawer");
  expect(closed.drawer).toMatchObject({ isOpen: false, tab: "latency" });
  expect(toggledPanel(closed, "drawer").drawer).toEqual(latency.drawer);
});

test("what is open stands in the URL, and nothing else", () => {
  expect(encodePanels(PLAIN_PANELS)).toBe("");
  const open = openedPanel(sizedPanel(openedPanel(PLAIN_PANELS, "drawer", "events"), "drawer", 411.4), "inspector");
  expect(encodePanels(open)).toBe("drawer.events.411~inspector");
  expect(decodePanels(encodePanels(open))).toEqual(open);
  expect(encodePanels(openedPanel(PLAIN_PANELS, "drawer", "latency"))).toBe("drawer.latency");
  expect(decodePanels("drawer.latency").drawer.size).toBe(null);
  expect(decodePanels("cellar.events~drawer.<b>.1e9~~rail")).toEqual(openedPanel(openedPanel(PLAIN_PANELS, "drawer"), "rail"));
});

test("no size is absurd", () => {
  expect(decodePanels("rail..9999").rail.size).toBe(1200);
  expect(sizedPanel(PLAIN_PANELS, "rail", -5).rail.size).toBe(SIZE_MIN);
});
