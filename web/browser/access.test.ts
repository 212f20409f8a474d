// Who cannot see the pages, or has no mouse: rules that axe checks, and a walk through the main tasks by keys alone.

import type { Locator, Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { findings } from "./axe.ts";
import { rested } from "./browser.ts";
import { withInvented } from "./stage.ts";

withInvented("for everybody", (stage) => {
  beforeEach(() => {
    stage.server.read = 1;
    stage.server.refusal = null;
  });

  async function open(colorScheme: "light" | "dark", width = 1280, hash = "", height = 900): Promise<Page> {
    const page = await stage.visit(hash, { colorScheme, width, height });
    await complete(page);
    return page;
  }

  async function complete(page: Page): Promise<void> {
    await page.waitForSelector('main[data-complete="true"]');
    await rested(page);
  }

  /** Opens a tab of a panel by its name. */
  async function show(page: Page, name: string): Promise<void> {
    await page.getByRole("tab", { name, exact: true }).click();
  }

  test.each([
    ["light", 1280],
    ["dark", 1280],
    ["light", 420],
    ["dark", 420],
  ] as const)("nothing is seriously wrong in the %s, %d wide, with all panels open", async (theme, width) => {
    const page = await open(theme, width, "#item=1795219372500000000~cpu/0/1/thread&event=sched_wakeup");
    expect(await findings(page), "the timeline alone").toEqual([]);
    await page.keyboard.press("b");
    await page.keyboard.press("Alt+1");
    await page.waitForSelector(".event-body .event-row");
    await page.keyboard.press("Escape");
    await page.locator("main").click({ position: { x: 2, y: 2 } });
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await page.keyboard.press("i");
    await page.locator(".panel.inspector").waitFor();
    await show(page, "Tracks");
    await page.getByRole("tree").waitFor();
    expect(await findings(page), "tracks, events, nothing picked").toEqual([]);
    await show(page, "Filters");
    await page.getByText("Subsystems").first().waitFor();
    await page.getByRole("button", { name: "Save…" }).click();
    expect(await findings(page), "filters, events that are saved").toEqual([]);
    await show(page, "Latency");
    await page.waitForSelector(".drawer .plot canvas");
    await rested(page);
    expect(await findings(page), "latencies").toEqual([]);
    await show(page, "Statistics");
    await page.waitForSelector('.drawer [role="gridcell"]');
    await rested(page);
    expect(await findings(page), "statistics").toEqual([]);
    await show(page, "Notes");
    await rested(page);
    expect(await findings(page), "notes").toEqual([]);
    await page.close();
  });

  test.each(["light", "dark"] as const)("nothing is seriously wrong in the %s with what is picked, the box, the help and a fault", async (theme) => {
    const page = await open(theme, 1280, "#item=1795219372500000000~cpu/0/1/thread");
    await page.keyboard.press("i");
    await page.locator(".inspected h2").first().waitFor();
    expect(await findings(page), "what is picked").toEqual([]);
    await page.keyboard.press("/");
    await page.keyboard.type("CPU");
    await page.getByRole("option").first().waitFor();
    expect(await findings(page), "the box").toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.locator("dialog.help").waitFor();
    expect(await findings(page), "the help").toEqual([]);
    await page.keyboard.press("Escape");
    stage.server.refusal = 500;
    for (let step = 0; step < 6; step++) {
      await page.keyboard.press("w");
    }
    await page.locator(".notice.bad").waitFor();
    expect(await findings(page), "a fault").toEqual([]);
    await page.close();
    stage.expectFaults(/status of 500/);
  });

  /** Presses Tab until something has the focus. */
  async function tabTo(page: Page, goal: Locator): Promise<void> {
    const isThere = (): Promise<boolean> => goal.evaluate((element) => element === document.activeElement).catch(() => false);
    for (let step = 0; step < 150 && !(await isThere()); step++) {
      await page.keyboard.press("Tab");
    }
    expect(await isThere(), `${String(goal)} is reached by Tab`).toBe(true);
  }

  async function partOf(page: Page, name: string): Promise<string | null> {
    await rested(page);
    return new URLSearchParams(new URL(page.url()).hash.slice(1)).get(name);
  }

  test("all main tasks are done by keys alone", async () => {
    const page = await open("light");
    // Finds a track.
    await page.keyboard.press("/");
    await page.keyboard.type("postgres");
    await expect.poll(() => page.getByRole("option", { selected: true }).textContent()).toContain("postgres");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".label.below .name").textContent()).toContain("postgres");
    // Zooms, selects what is there then, and goes to that from elsewhere.
    for (let step = 0; step < 12; step++) {
      await page.keyboard.press("w");
    }
    await complete(page);
    const near = await partOf(page, "at");
    await page.keyboard.press("x");
    await expect.poll(() => page.locator(".selected").textContent()).toMatch(/^Δ .* ms/);
    await page.keyboard.press("Home");
    expect(await partOf(page, "at")).toBeNull();
    await page.keyboard.press("z");
    expect(await partOf(page, "at")).toBe(near);
    // Filters, in the panel, and takes it back at its chip.
    await page.keyboard.press("b");
    await tabTo(page, page.getByRole("tab", { name: "Filters" }));
    await page.keyboard.press("Enter");
    await tabTo(page, page.getByRole("checkbox", { name: "1", exact: true }).or(page.getByRole("checkbox", { name: "CPU 1", exact: true })));
    await page.keyboard.press("Space");
    const chip = page.getByRole("button", { name: /^Remove filter: / });
    await chip.waitFor();
    await expect.poll(() => page.locator(".label.dimmed .name").allTextContents()).toContain("CPU 1");
    await tabTo(page, chip);
    await page.keyboard.press("Enter");
    await expect.poll(() => chip.count()).toBe(0);
    await page.keyboard.press("b");
    await page.locator(".panel.rail").waitFor({ state: "detached" });
    // Picks what a row shows, goes along its track, and along an arrow to its cause and back.
    await tabTo(page, page.locator(".label button.name", { hasText: "postgres" }).first());
    await page.keyboard.press("Enter");
    const title = page.locator(".inspected h2").first();
    await title.waitFor();
    for (let step = 0; step < 30 && (await title.textContent()) !== "running on CPU 0"; step++) {
      const before = await partOf(page, "item");
      await page.keyboard.press(".");
      await expect.poll(() => partOf(page, "item")).not.toBe(before);
      await expect.poll(() => page.locator(".inspected").getAttribute("aria-busy")).toBe("false");
    }
    const run = await partOf(page, "item");
    await page.keyboard.press("Shift+X");
    await expect.poll(() => page.locator(".selected").textContent()).toMatch(/^Δ /);
    await page.keyboard.press("[");
    await page.locator(".inspected h2", { hasText: "wakes postgres (4712)" }).waitFor();
    await page.keyboard.press("]");
    await expect.poll(() => partOf(page, "item")).toBe(run);
    // Opens the lists: of events, whose rows are gone through; of latencies, whose chart is read aloud.
    await page.keyboard.press("Alt+1");
    await page.waitForSelector(".event-body .event-row");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => page.locator('.event-row[aria-selected="true"]').count()).toBe(1);
    await page.keyboard.press("Alt+2");
    await page.waitForSelector(".drawer .plot canvas");
    await tabTo(page, page.locator(".drawer .plot").first());
    const aloud = page.locator(".drawer .chart").first().getByRole("status");
    expect(await aloud.textContent()).toBe("");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => aloud.textContent()).toMatch(/\d/);
    await page.keyboard.press("Alt+3");
    await page.waitForSelector('.drawer [role="gridcell"]');
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe("SELECT");
    // Letters choose from the list there; Esc leaves it, and Tab goes on from it.
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("q");
    await page.waitForSelector(".drawer", { state: "detached" });
    await page.close();
  });

  test("the tree of tracks keeps the focus wherever it is scrolled", async () => {
    const page = await open("light", 1280, "#panels=rail.tracks", 480);
    const [tree, focused] = [page.getByRole("tree"), page.locator(":focus")];
    // Esc clears the box to search in, then leaves it.
    const search = page.getByRole("searchbox");
    await search.fill("x");
    await page.keyboard.press("Escape");
    await expect.poll(() => search.inputValue()).toBe("");
    expect(await focused.count()).toBe(1);
    await page.keyboard.press("Escape");
    await expect.poll(() => focused.count()).toBe(0);
    await tabTo(page, page.getByRole("treeitem").first());
    const name = await focused.getAttribute("aria-label");
    const last = await tree.evaluate((element) => {
      element.scrollTop = element.scrollHeight;
      return element.scrollTop;
    });
    expect(last).toBeGreaterThan(100);
    // What is seen now is there, and what has the focus still is.
    await page.getByRole("treeitem", { name: /wakeups|events of CPU 3/ }).first().waitFor();
    expect(await focused.getAttribute("aria-label")).toBe(name);
    expect(await page.locator('[role="treeitem"][tabindex="0"]').count()).toBe(1);
    expect(await page.getByRole("treeitem", { name: "events of CPU 3" }).getAttribute("aria-posinset")).toBe("4");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => tree.evaluate((element) => element.scrollTop)).toBeLessThan(last);
    await expect.poll(() => focused.getAttribute("aria-label")).toBe("CPU 0");
    await page.close();
  });
});
