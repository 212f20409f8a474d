// Arrows of what programs send to each other, in the sample: calls of its clients, which workers serve and answer.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { complete, picture, SAMPLE, withRecorded } from "./stage.ts";

withRecorded("messages of %s", [{ name: "the sample", trace: SAMPLE }], (stage) => {
  const title = (page: Page): Promise<string | null> => page.locator(".inspected h2").first().textContent();

  async function asked(path: string): Promise<string> {
    return (await fetch(`${stage.url}/api/v1/${path}`, { headers: { Authorization: `Bearer ${stage.token}` } })).text();
  }

  test("a call is followed by keys to who serves it, and its answer back", async () => {
    const first = await stage.visit();
    await first.waitForSelector(".badge.good");
    await first.close();
    const { tracks } = JSON.parse(await asked("catalogue")) as { tracks: ReadonlyArray<{ number: number; id: string; kind: string }> };
    const messages = tracks.find(({ id }) => id.startsWith("messages/"));
    expect(messages?.kind).toBe("arrows");
    const begin = BigInt(/"begin_ns":(\d+)/.exec(await asked("timeline"))?.[1] ?? 0) + 30_000_000n;
    const [, left] = /"kind":"arrow","begin_ns":(\d+)/.exec(await asked(`items?track=${messages?.number}&begin=${begin}&end=${begin + 20_000_000n}&limit=1`)) ?? [];
    const page = await stage.visit(`#at=${BigInt(left ?? 0) - 100_000n}~600000&item=${left}~${messages?.id}&panels=inspector`);
    await complete(page);
    await expect.poll(() => title(page)).toMatch(/^page: server \(\d+\) → server \(\d+\)$/);
    const [, from, to] = /\((\d+)\) → server \((\d+)\)/.exec((await title(page)) ?? "") ?? [];
    expect(await page.locator(".inspected").textContent()).toMatch(/sent.*received.*latency/s);
    await picture(page, "messages");
    // With arrows the timeline is another one than without.
    const drawn = (): Promise<string> => page.$eval(".area canvas", (canvas) => (canvas as HTMLCanvasElement).toDataURL());
    const withArrows = await drawn();
    await page.keyboard.press("v");
    await complete(page);
    expect(await drawn()).not.toBe(withArrows);
    await page.keyboard.press("v");
    // To who serves it, and from there back along the same arrow to who called.
    await page.keyboard.press("]");
    await expect.poll(() => title(page)).toBe("kymo:rpc_dispatch");
    expect(await page.locator(".inspected").textContent()).toContain(`(${to})`);
    await page.keyboard.press("[");
    await expect.poll(() => title(page)).toBe(`page: server (${from}) → server (${to})`);
    await page.keyboard.press("[");
    await expect.poll(() => title(page)).toBe("kymo:rpc_call");
    expect(await page.locator(".inspected").textContent()).toContain(`(${from})`);
    await page.close();
  });
});
