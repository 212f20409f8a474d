// What is picked, in a browser: by mouse and by keys, with all that is known of it in the panel at the right.

import type { Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { rested } from "./browser.ts";
import { complete, picture as pictureOf, withInvented, type Opened } from "./stage.ts";

withInvented("what is picked", (stage) => {
  beforeEach(() => {
    stage.server.itemsRefusal = null;
  });

  async function open(hash = "", options: Opened = {}): Promise<Page> {
    const page = await stage.visit(hash, { height: 720, ...options });
    await complete(page);
    return page;
  }

  const picture = (page: Page, name: string): Promise<void> => pictureOf(page, `item-${name}`);

  /** Clicks on a row, so many CSS pixels from its left end. */
  async function click(page: Page, row: string, x: number): Promise<void> {
    const place = await placeOf(page, row, x);
    await page.mouse.click(place.x, place.y);
  }

  async function placeOf(page: Page, row: string, x: number): Promise<{ x: number; y: number }> {
    const [label, area] = [await page.locator(".label", { hasText: row }).first().boundingBox(), await page.locator(".area").boundingBox()];
    return { x: (area?.x ?? 0) + x, y: (label?.y ?? 0) + (label?.height ?? 0) / 2 };
  }

  function itemOf(page: Page): Promise<string | null> {
    return rested(page).then(() => new URLSearchParams(new URL(page.url()).hash.slice(1)).get("item"));
  }

  /** Presses a key that goes to something else, and waits until that is picked. */
  async function stepped(page: Page, key: string): Promise<string> {
    const before = await itemOf(page);
    await page.keyboard.press(key);
    await expect.poll(() => itemOf(page)).not.toBe(before);
    await expect.poll(() => page.locator(".inspected").getAttribute("aria-busy")).toBe("false");
    return (await itemOf(page)) ?? "";
  }

  const timeOf = (item: string | null): bigint => BigInt(item?.split("~")[0] ?? 0);

  /** The facts of the panel, as lines. */
  function facts(page: Page): Promise<string[]> {
    return page.locator(".inspected tr").evaluateAll((rows) => rows.map((row) => [...row.children].slice(0, 2).map((cell) => cell.textContent?.trim()).join(": ")));
  }

  const title = (page: Page): Promise<string | null> => page.locator(".inspected h2").first().textContent();

  test("is told in a panel that opens by itself, and let go of", async () => {
    const page = await open("#at=1795219372300000000~20000000");
    expect(await page.locator(".panel.inspector").count()).toBe(0);
    await click(page, "CPU 1", 300);
    await page.locator(".inspected h2").waitFor();
    expect(await title(page)).toMatch(/^(idle|\S+ \(\d+\))$/);
    const lines = await facts(page);
    expect(lines.map((line) => line.split(":")[0])).toEqual(["begin", "end", "duration", "is a", "track", "group", "CPU"]);
    expect(lines).toContain("track: CPU 1");
    await picture(page, "run");
    const item = await itemOf(page);
    expect(item).toMatch(/^17952193723\d{8}~cpu\/0\/1\/thread$/);
    await page.keyboard.press("Escape");
    await page.locator(".inspected .words", { hasText: "Nothing is picked." }).waitFor();
    expect(await itemOf(page)).toBeNull();
    // Somebody has closed the panel: it stays so.
    await page.keyboard.press("i");
    await click(page, "CPU 1", 300);
    expect(await itemOf(page)).not.toBeNull();
    expect(await page.locator(".panel.inspector").count()).toBe(0);
    await page.close();
  });

  test("has neighbours that keys go to, the window follows, and the URL leads back to it", async () => {
    const page = await open("#at=1795219372300000000~20000000");
    await click(page, "CPU 1", 300);
    await page.locator(".inspected h2").waitFor();
    const first = await itemOf(page);
    const second = await stepped(page, ".");
    const third = await stepped(page, ".");
    expect(timeOf(third)).toBeGreaterThan(timeOf(second));
    expect(timeOf(second)).toBeGreaterThan(timeOf(first));
    expect(await stepped(page, ",")).toBe(second);
    let last = second;
    for (let step = 0; step < 20; step++) {
      last = await stepped(page, ".");
    }
    const at = /at=(\d+)~(\d+)/.exec(page.url());
    expect(BigInt(at?.[1] ?? 0)).toBeGreaterThan(1_795_219_372_300_000_000n);
    expect(timeOf(last) - BigInt(at?.[1] ?? 0)).toBeLessThan(20_000_000n);
    await page.keyboard.press("f");
    await complete(page);
    await picture(page, "shown");
    const again = await open(new URL((await rested(page), page.url())).hash);
    await again.locator(".inspected h2").waitFor();
    expect(await facts(again)).toEqual(await facts(page));
    await page.close();
    await again.context().close();
  });

  test("is an event with all its fields, which can be copied one by one and as a whole", async () => {
    const page = await open("#at=1795219372300000000~20000000", { colorScheme: "dark" });
    await click(page, "events of CPU 1", 300);
    await page.locator(".inspected .fields-of").waitFor();
    const lines = await facts(page);
    expect(lines).toContain("next_tid: 4711 integer");
    expect(lines).toContain("kind: CUSTOM (5) enumeration");
    expect(lines).toContain("ratio: 0.5 real number");
    expect(lines).toContain("pages: [1, 2, 3] list of 3");
    expect(lines).toContain("ip: 0x4010A4 integer");
    expect(lines).toContain("procname: bash text");
    await page.getByRole("button", { name: "Copy next_comm" }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe("nginx");
    await page.getByRole("button", { name: "Copy time" }).first().click();
    const item = (await itemOf(page))?.split("~")[0];
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(item);
    await page.getByRole("button", { name: "Copy all as JSON" }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain('"next_comm": "nginx"');
    await picture(page, "event-dark");
    await page.close();
  });

  test("is nothing where nothing is, and what goes wrong is said", async () => {
    const page = await open("#at=1795219372300000000~20000000&item=1795219372300000001~nowhere/0&panels=inspector");
    await page.locator(".words", { hasText: "There is no track “nowhere/0”" }).waitFor();
    await click(page, "queue", 300);
    await page.locator(".words", { hasText: "adds up" }).waitFor();
    await page.close();
    stage.server.itemsRefusal = 500;
    const other = await open("#at=1795219372300000000~20000000&panels=inspector");
    await click(other, "CPU 1", 300);
    await other.locator(".words.bad", { hasText: "The disk is full." }).waitFor();
    await picture(other, "refused");
    await other.close();
    stage.expectFaults(/status of 500/);
  });

  test("is picked by keys alone", async () => {
    const page = await open("#at=1795219372300000000~20000000");
    await page.getByRole("button", { name: "CPU 2", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.locator(".inspected h2").waitFor();
    expect(await facts(page)).toContain("track: CPU 2");
    expect(await itemOf(page)).toMatch(/~cpu\/0\/2\/thread$/);
    await page.close();
  });

  test("is an arrow between rows, which is followed and switched off", async () => {
    const page = await open("#at=1795219372300000000~20000000&pin=thread/0/1/state");
    await picture(page, "arrows");
    const asked = (): number => stage.server.asked.length;
    // The pixels between two rows: a column with an arrow differs from those without.
    const drawn = (): Promise<number> =>
      page.$eval(".area canvas", (canvas) => {
        const { width } = canvas as HTMLCanvasElement;
        const data = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 48, width, 20).data ?? new Uint8ClampedArray();
        return new Set(new Uint32Array(data.buffer)).size;
      });
    const withArrows = await drawn();
    await page.keyboard.press("v");
    await complete(page);
    await rested(page);
    expect(new URL(page.url()).hash).toContain("arrows=hidden");
    expect(await drawn()).toBeLessThan(withArrows);
    const before = asked();
    await page.getByRole("button", { name: "Arrows between rows" }).click();
    await complete(page);
    expect(await drawn()).toBe(withArrows);
    expect(asked()).toBe(before);
    // From a thread that runs back to what woke it, and forth again.
    await page.locator(".label", { hasText: "postgres" }).first().locator("button.name").click();
    await page.locator(".inspected h2").waitFor();
    await page.keyboard.press("]");
    await page.locator(".inspected .note", { hasText: "No arrow leaves from here." }).waitFor();
    await expect(page.locator(".inspected h2").textContent()).resolves.toMatch(/running|blocked|waiting|uninterruptible/);
    for (let step = 0; step < 30 && (await title(page)) !== "running on CPU 0"; step++) {
      await stepped(page, ".");
    }
    const run = await itemOf(page);
    await page.keyboard.press("[");
    await page.locator(".inspected h2", { hasText: "wakes postgres (4712)" }).waitFor();
    expect(await facts(page)).toContain("latency: 40.000 µs");
    await picture(page, "arrow");
    await page.keyboard.press("]");
    await page.locator(".inspected h2", { hasText: "running on CPU 0" }).waitFor();
    await expect.poll(() => itemOf(page)).toBe(run);
    await page.close();
  });

  test("is an arrow that somebody clicks on, and then what is below it", async () => {
    const page = await open("#at=1795219372300000000~20000000&pin=thread/0/1/state");
    await page.locator(".label", { hasText: "postgres" }).first().locator("button.name").click();
    await page.locator(".inspected h2").waitFor();
    for (let step = 0; step < 30 && (await title(page)) !== "running on CPU 0"; step++) {
      await stepped(page, ".");
    }
    await page.keyboard.press("[");
    await page.locator(".inspected h2", { hasText: "wakes postgres (4712)" }).waitFor();
    await page.keyboard.press("f");
    await complete(page);
    const arrow = await itemOf(page);
    const cpu = (await facts(page)).find((line) => line.startsWith("from: "))?.slice(6) ?? "";
    await picture(page, "arrow-shown");
    await page.keyboard.press("Escape");
    expect(await itemOf(page)).toBeNull();
    // It has two thirds of the window, from the middle of one row to the lower edge of the other.
    const area = (await page.locator(".area").boundingBox()) ?? { x: 0, width: 0 };
    const [from, to] = [await placeOf(page, cpu, 0), await page.locator(".label", { hasText: "postgres" }).first().boundingBox()];
    const y = (from.y + (to?.y ?? 0) + (to?.height ?? 0) - 2) / 2;
    const x = area.x + area.width / 2;
    await page.mouse.move(x, y);
    await page.locator(".tooltip", { hasText: "wakes postgres (4712)" }).waitFor();
    await page.mouse.click(x, y);
    await expect.poll(() => itemOf(page)).toBe(arrow);
    await page.mouse.click(x, y);
    await expect.poll(() => itemOf(page)).not.toBe(arrow);
    await page.close();
  });

  test("is told beside the pointer when it rests, with all fields, and not any more when it goes on", async () => {
    const page = await open("#at=1795219372300000000~20000000");
    const place = await placeOf(page, "events of CPU 1", 300);
    await page.mouse.move(place.x, place.y);
    const tip = page.getByRole("tooltip");
    await tip.locator("tr", { hasText: "next_comm" }).waitFor();
    expect(await tip.textContent()).toContain("events of CPU 1: ");
    expect(await tip.locator("tr", { hasText: "kind" }).textContent()).toContain("CUSTOM (5)");
    await picture(page, "tooltip");
    const box = (await tip.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    expect(place.x > box.x && place.x < box.x + box.width && place.y > box.y && place.y < box.y + box.height).toBe(false);
    // It is in nobody's way: what is below it can be pointed at.
    expect(await page.evaluate(([x, y]) => document.elementFromPoint(x ?? 0, y ?? 0)?.closest(".tooltip") === null, [box.x + 5, box.y + 5])).toBe(true);
    await page.mouse.move(place.x + 40, place.y);
    await expect.poll(async () => ((await tip.count()) === 0 ? 0 : ((await tip.boundingBox())?.x ?? 0))).toBeGreaterThan(box.x + 30);
    await page.mouse.wheel(0, 1);
    await expect.poll(() => tip.count()).toBe(0);
    await page.mouse.move(place.x, place.y);
    await tip.waitFor();
    await page.keyboard.press("d");
    await expect.poll(() => tip.count()).toBe(0);
    // Of a row that keys have reached.
    await page.mouse.move(2, 2);
    await page.getByRole("button", { name: "CPU 2", exact: true }).focus();
    await page.keyboard.press("Shift");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Shift+Tab");
    await tip.waitFor();
    expect(await tip.textContent()).toContain("CPU 2: ");
    expect(await page.getByRole("button", { name: "CPU 2", exact: true }).getAttribute("aria-describedby")).toBe("tooltip");
    await page.keyboard.press("Tab");
    await expect.poll(() => tip.count()).toBe(0);
    await page.close();
  });

  test("fits a narrow screen", async () => {
    const page = await open("#at=1795219372300000000~20000000", { width: 420, ratio: 2, colorScheme: "dark" });
    await click(page, "CPU 1", 100);
    await page.locator(".inspected h2").waitFor();
    await complete(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(420);
    expect((await page.locator(".area").boundingBox())?.width).toBeGreaterThan(250);
    await picture(page, "narrow-dark");
    await page.close();
  });
});
