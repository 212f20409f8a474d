// The pages as `kymo view` serves them, with traces that were recorded: one of ours, and one of a kernel where the corpus is.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { complete, DEMO, KERNEL, picture, withRecorded } from "./stage.ts";

const TRACES = [
  { name: "demo", trace: DEMO },
  { name: "kernel", trace: KERNEL },
];

withRecorded("a page of %s", TRACES, (stage, { name }) => {
  const open = (hash: string, colorScheme: "light" | "dark", width: number): Promise<Page> => stage.open(`${stage.own}${hash}`, { colorScheme, width });

  async function settled(page: Page): Promise<void> {
    await page.waitForSelector(".badge.good");
    await complete(page);
  }

  /** How many colours the timeline has: what was not drawn has two. */
  function colours(page: Page): Promise<number> {
    return page.$eval(".area canvas", (canvas) => {
      const { width, height } = canvas as HTMLCanvasElement;
      const data = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
      return new Set(new Uint32Array(data.buffer)).size;
    });
  }

  test("is read to its end, moves, and can be opened again", async () => {
    const page = await open("", "light", 1600);
    await page.waitForSelector(".label");
    await picture(page, `${name}-first`);
    await settled(page);
    expect(await page.locator(".label.head").count()).toBeGreaterThan(0);
    expect(await colours(page)).toBeGreaterThan(3);
    await picture(page, `${name}-light`);
    for (const key of ["w", "w", "w", "w", "w", "w", "d", "w", "w"]) {
      await page.keyboard.press(key);
    }
    await settled(page);
    await rested(page);
    expect(await page.locator(".notice").count()).toBe(0);
    expect(await colours(page)).toBeGreaterThan(3);
    await picture(page, `${name}-near`);
    const again = await open(new URL(page.url()).hash, "dark", 420);
    await settled(again);
    expect(new URL(again.url()).hash).toBe(new URL(page.url()).hash);
    await picture(again, `${name}-narrow-dark`);
    await page.close();
    await again.close();
  });
});
