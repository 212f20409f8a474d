// The timeline at work: pinned rows, names, colors, the selection and its edges, the way back; with a server that always says the same.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { complete, picture, withInvented, type Opened } from "./stage.ts";

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

withInvented("the timeline", (stage) => {
  const open = async (hash = "", options: Opened = {}): Promise<Page> => {
    const page = await stage.visit(hash, { height: 420, ...options });
    await complete(page);
    return page;
  };

  async function boxOf(page: Page, selector: string): Promise<Box> {
    return (await page.locator(selector).first().boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  }

  /** The names on the screen with their places, from top to bottom. */
  function names(page: Page): Promise<string[]> {
    return page.$$eval(".label", (labels) => labels.map((label) => label.querySelector(".name, button")?.textContent ?? ""));
  }

  const hashOf = async (page: Page): Promise<string> => {
    await rested(page);
    return new URL(page.url()).hash;
  };

  test("pinned rows stay on top while all others scroll, with the parts of the thread that is pinned", async () => {
    const page = await open("#arrows=hidden");
    await page.mouse.move(700, (await boxOf(page, ".label:has-text('nginx')")).y + 10);
    await page.keyboard.press("p");
    await expect.poll(() => names(page).then((all) => all.slice(0, 3))).toEqual(["▾Pinned 2", "nginx (4711)", "events"]);
    expect(await hashOf(page)).toContain("pin=thread/0/0/state");
    await page.mouse.wheel(0, 120);
    await page.waitForSelector(".pinned-edge.over");
    await complete(page);
    await picture(page, "pinned-scrolled");
    const [head, first] = [await boxOf(page, ".label.fixed"), await boxOf(page, ".label.fixed .name")];
    const area = await boxOf(page, ".area");
    expect([head.y, Math.round(first.y) >= area.y + 24]).toEqual([area.y, true]);
    // The pixels of the fixed rows are those of the same rows where nothing is scrolled.
    const pixels = (): Promise<number> =>
      page.$eval(".area canvas", (canvas) => (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 24, (canvas as HTMLCanvasElement).width, 18).data.reduce((sum, value) => (sum * 31 + value) % 1_000_000_007, 7) ?? 0);
    const scrolled = await pixels();
    // The pointer means the row that it is on.
    await page.mouse.move(area.x + 300, area.y + 34);
    await expect.poll(() => page.locator(".label.below .name").textContent()).toBe("nginx (4711)");
    await page.mouse.move(area.x + 300, area.y + 90);
    const meant = await page.locator(".label.below .name").textContent();
    expect(meant).not.toBe("nginx (4711)");
    expect(Math.abs((await boxOf(page, ".label.below")).y - (area.y + 90))).toBeLessThan(20);
    await page.mouse.move(area.x + 300, area.y - 40);
    await page.$eval(".scroller", (scroller) => (scroller.scrollTop = 0));
    await page.waitForSelector(".pinned-edge:not(.over)");
    await complete(page);
    expect(await pixels()).toBe(scrolled);
    // What is part of the thread goes with it.
    await page.getByRole("button", { name: "Unpin events" }).first().click();
    await page.waitForSelector(".label.fixed", { state: "detached" });
    await page.close();
  });

  test("the column of names is as wide as it is dragged, or as the longest name, and stays so", async () => {
    const page = await open();
    const edge = page.getByRole("separator", { name: "Size: names" });
    const width = (): Promise<number> => page.$eval(".labels", (labels) => labels.clientWidth);
    const before = await width();
    const at = await boxOf(page, ".names-edge .edge");
    await page.mouse.move(at.x + at.width / 2, at.y + 150);
    await page.mouse.down();
    await page.mouse.move(at.x + at.width / 2 + 60, at.y + 150, { steps: 3 });
    await page.mouse.up();
    await expect.poll(width).toBe(before + 60);
    // The ruler goes along, and the canvas is as wide as there is room.
    await complete(page);
    expect(await page.$eval(".area canvas", (canvas) => (canvas as HTMLCanvasElement).width - canvas.clientWidth)).toBe(0);
    expect((await boxOf(page, ".ruler")).x).toBe((await boxOf(page, ".area")).x);
    const wide = await width();
    expect(await hashOf(page)).toContain(`names=${wide + 1}`);
    await page.reload();
    await complete(page);
    expect(await width()).toBe(wide);
    await edge.dblclick();
    await expect.poll(width).toBeLessThan(before);
    const cut = await page.$$eval(".label .name", (all) => all.filter((name) => name.scrollWidth > name.clientWidth).length);
    expect(cut).toBe(0);
    const fitted = await width();
    await edge.focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(width).toBe(fitted - 16);
    await page.keyboard.press("Enter");
    await expect.poll(width).toBe(fitted);
    await page.close();
  });
});
