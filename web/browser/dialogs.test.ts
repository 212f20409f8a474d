// Dialogs, menus and panels: Esc closes the topmost one alone, and the focus goes back to where it was opened.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { BEGIN } from "./invented.ts";
import { complete, picture, withInvented } from "./stage.ts";

const LOST = JSON.stringify({
  findings: [{ severity: "warning", rule: "packet-truncated", message: "a packet is cut", place: "cpu_0", help: "record again", times: 1 }],
  losses: [],
  losses_omitted: 0,
});

withInvented("what is in front of the page", (stage) => {
  /** A page with a selection, which Esc would let go of. */
  async function open(): Promise<Page> {
    stage.server.findings = LOST;
    const page = await stage.visit(`#selected=${BEGIN + 1_000_000n}~1000000`);
    await page.waitForSelector(".badge.good");
    await complete(page);
    return page;
  }

  const focused = (page: Page): Promise<string> => page.evaluate(() => document.activeElement?.getAttribute("title") ?? document.activeElement?.textContent ?? "");
  const hasSelection = async (page: Page): Promise<boolean> => {
    await rested(page);
    return new URL(page.url()).hash.includes("selected=");
  };

  test("dialogs have the keys while they are open; Esc and their button close them and give the focus back", async () => {
    const page = await open();
    for (const name of ["1 finding", "?"]) {
      const opener = page.getByRole("button", { name, exact: true });
      for (const close of ["Escape", "Close"]) {
        await opener.focus();
        await page.keyboard.press("Enter");
        const dialog = page.locator("dialog");
        await dialog.waitFor();
        // Its title has the focus, and keys mean nothing behind it.
        expect(await page.evaluate(() => document.activeElement?.tagName)).toBe("H2");
        const before = new URL(page.url()).hash;
        await page.keyboard.press("w");
        await page.keyboard.press("b");
        await rested(page);
        expect([new URL(page.url()).hash, await page.locator(".rail").count()]).toEqual([before, 0]);
        for (let step = 0; step < 5; step++) {
          await page.keyboard.press("Tab");
          expect(await page.evaluate(() => document.activeElement === document.body || document.activeElement?.closest("dialog") !== null)).toBe(true);
        }
        if (close === "Escape") {
          await page.keyboard.press("Escape");
        } else {
          await dialog.getByRole("button", { name: "Close", exact: true }).click();
        }
        await dialog.waitFor({ state: "detached" });
        expect(await opener.evaluate((button) => document.activeElement === button)).toBe(true);
        expect(await hasSelection(page)).toBe(true);
      }
    }
    await page.keyboard.press("Escape");
    expect(await hasSelection(page)).toBe(false);
    await page.close();
  });

  test("the menu of images is closed by Esc, by a choice of something else, and by a click elsewhere", async () => {
    const page = await open();
    const [summary, choice] = [page.locator(".image-menu summary"), page.getByRole("button", { name: "SVG" })];
    await summary.focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await choice.waitFor();
    await page.keyboard.press("Escape");
    await choice.waitFor({ state: "hidden" });
    expect(await focused(page)).toBe("Save an image of the timeline");
    expect(await hasSelection(page)).toBe(true);
    for (const leave of [() => page.locator(".status").click(), () => page.getByRole("button", { name: "?", exact: true }).focus()]) {
      await summary.click();
      await choice.waitFor();
      await leave();
      await choice.waitFor({ state: "hidden" });
    }
    await page.close();
  });

  test("a panel that is closed leaves the focus on the button that opens it, the bar for saving on its own", async () => {
    const page = await open();
    await page.keyboard.press("q");
    await page.getByRole("button", { name: "Save…" }).click();
    await page.getByRole("button", { name: "JSON lines" }).focus();
    await page.keyboard.press("Escape");
    expect(await focused(page)).toBe("Save…");
    expect(await hasSelection(page)).toBe(true);
    await page.getByRole("button", { name: "Close: Lower panel" }).click();
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Lower panel");
    await picture(page, "dialogs");
    await page.close();
  });
});
