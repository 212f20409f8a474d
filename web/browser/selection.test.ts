// What is selected, and its sums, in a browser: drags across rows and along the ruler.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { BEGIN, INVENTED, SPAN } from "./invented.ts";
import { complete, picture, withInvented } from "./stage.ts";

/** Rows of the table with a title: their names and cells. */
function sumsOf(page: Page, title: string): Promise<string[][]> {
  return page.$$eval(".sums table", (tables, wanted) => {
    const table = tables.find((one) => one.querySelector("caption")?.textContent?.startsWith(wanted) ?? false);
    return [...(table?.querySelectorAll("tbody tr") ?? [])].map((row) => [...row.children].map((cell) => cell.textContent ?? ""));
  }, title);
}

/** Drags from a place of one row to a place of another one, in parts of the window's width. */
async function dragged(page: Page, from: readonly [row: string, at: number], to: readonly [row: string, at: number]): Promise<void> {
  const area = (await page.locator(".area").boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  const place = async ([row, at]: readonly [string, number]): Promise<readonly [number, number]> => {
    const label = await page.getByText(row, { exact: true }).first().boundingBox();
    return [area.x + area.width * at, (label?.y ?? 0) + (label?.height ?? 0) / 2];
  };
  await page.mouse.move(...(await place(from)));
  await page.mouse.down();
  await page.mouse.move(...(await place(to)), { steps: 5 });
  await page.mouse.up();
}

/** How much of a part of the time threads ran on the first CPUs, by their names. */
function truth(cpus: number, from: number, to: number): Map<string, number> {
  const times = new Map<string, number>();
  for (const { runs = [], track } of INVENTED.filter((one) => (one.track as { cpu: number | null }).cpu !== null && one.runs !== undefined).slice(0, cpus)) {
    expect((track as { group: string }).group).toBe("CPUs");
    for (const { begin, end, value } of runs) {
      const time = Math.max(0, Math.min(end, to * SPAN) - Math.max(begin, from * SPAN));
      times.set(String(value), (times.get(String(value)) ?? 0) + time / ((to - from) * SPAN * cpus));
    }
  }
  return times;
}

withInvented("selections", (stage) => {
  async function open(hash = ""): Promise<Page> {
    const page = await stage.visit(hash, { height: 900 });
    await page.waitForSelector(".badge.good");
    await complete(page);
    return page;
  }

  test("are of the rows between which they are drawn, and added up at once", async () => {
    const page = await open();
    await dragged(page, ["CPU 2", 0.6], ["CPU 0", 0.2]);
    await expect.poll(() => page.locator(".sums-title").textContent()).toMatch(/^\d+\.\d+ ms, 3 rows$/);
    await expect.poll(() => sumsOf(page, "Threads on CPUs").then((rows) => rows.length)).toBeGreaterThan(5);
    await expect.poll(() => page.locator(".sums").getAttribute("aria-busy")).toBe("false");
    const shown = (await sumsOf(page, "Threads on CPUs")).map(([, , part]) => Number.parseFloat(part ?? ""));
    const expected = [...truth(3, 0.2, 0.6).values()].map((part) => part * 100).sort((one, other) => other - one);
    shown.forEach((part, index) => expect(Math.abs(part - (expected[index] ?? 0))).toBeLessThan(1));
    expect((await sumsOf(page, "CPUs")).map(([name]) => name)).toEqual(["CPU 0", "CPU 1", "CPU 2"]);
    // Rounded sums are followed by exact ones: runs are counted then. A process has the time of its threads.
    const [threads, processes] = [await sumsOf(page, "Threads on CPUs"), await sumsOf(page, "Processes on CPUs")];
    expect([threads, processes].flat().filter(([, time = "", , count = ""]) => time.startsWith("~") || !/^[\d\u202f]+$/.test(count))).toEqual([]);
    const partIn = (rows: readonly string[][], name: string): number => Number.parseFloat(rows.find(([one]) => one === name)?.[2] ?? "");
    expect(partIn(processes, "make (1234)")).toBeCloseTo(partIn(threads, "make (1234)") + partIn(threads, "cc1 (1240)"), 0);
    expect(Math.abs(partIn(threads, "idle") - 100 * (truth(3, 0.2, 0.6).get("0") ?? 0))).toBeLessThan(0.2);
    // No number is cut: names give way, but not the numbers of threads.
    expect(await page.$eval(".sum-tables", ({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    expect(await page.$$eval(".sum-name > :last-child", (all) => all.filter((one) => one.scrollWidth > one.getBoundingClientRect().width + 1 || one.getBoundingClientRect().right > (one.closest("th, td")?.getBoundingClientRect().right ?? 0)).length)).toBe(0);
    await rested(page);
    await picture(page, "selection-rows");
    // The URL holds it, and Esc lets go of it.
    const again = await open(new URL(page.url()).hash);
    await expect.poll(() => again.locator(".sums-title").textContent()).toBe(await page.locator(".sums-title").textContent());
    await expect.poll(() => sumsOf(again, "CPUs").then((rows) => rows.length)).toBe(3);
    await again.keyboard.press("Escape");
    await again.locator(".sums").waitFor({ state: "detached" });
    await rested(again);
    expect(new URL(again.url()).hash).not.toMatch(/selected|on=/);
    await again.close();
    await page.close();
  });

  test("have no sums of another selection", async () => {
    const page = await open(`#selected=${BEGIN + BigInt(SPAN / 4)}~${SPAN / 2}`);
    await page.keyboard.press("i");
    await expect.poll(() => sumsOf(page, "Threads on CPUs").then((rows) => rows.length)).toBeGreaterThan(5);
    await expect.poll(() => page.locator(".sums").getAttribute("aria-busy")).toBe("false");
    const title = await page.locator(".sums-title").textContent();
    const before = await sumsOf(page, "Threads on CPUs");
    // The server answers once the page has shown the next selection.
    let answers = (): void => undefined;
    const shown = new Promise<void>((done) => (answers = done));
    await page.route("**/tiles?*", async (route) => {
      await shown;
      await route.continue();
    });
    await page.getByRole("slider", { name: "End of the selection" }).focus();
    await page.keyboard.press("Shift+ArrowRight");
    await page.locator(".sums-title", { hasNotText: title ?? "" }).waitFor();
    expect(await page.locator(".sums").evaluate((sums) => [sums.getAttribute("aria-busy"), sums.querySelectorAll("table").length, sums.querySelector(".faint")?.textContent])).toEqual(["true", 0, "Adding up…"]);
    answers();
    await expect.poll(() => sumsOf(page, "Threads on CPUs").then((rows) => rows.length)).toBeGreaterThan(5);
    await expect.poll(() => page.locator(".sums").getAttribute("aria-busy")).toBe("false");
    expect(await sumsOf(page, "Threads on CPUs")).not.toEqual(before);
    await page.close();
  });

  test("have names, also of values that the page has not heard of before", async () => {
    // The catalog lacks the last values until something asks for them. The panel is open before, so that no tiles come with it.
    stage.server.namedTo = 3;
    const page = await open();
    await page.keyboard.press("i");
    await page.locator(".inspector").waitFor();
    await rested(page);
    await complete(page);
    stage.server.namedTo = null;
    await dragged(page, ["CPU 2", 0.6], ["CPU 0", 0.2]);
    await expect.poll(() => sumsOf(page, "Threads on CPUs").then((rows) => rows.map(([name]) => name))).toContain("bash (801)");
    expect((await sumsOf(page, "Threads on CPUs")).some(([name]) => name?.includes("not named") === true)).toBe(false);
    await page.close();
  });

  test("end where the traces end: nothing is missing behind that", async () => {
    const half = SPAN / 2;
    const page = await open(`#selected=${BEGIN + BigInt(half)}~${2 * SPAN}`);
    await page.keyboard.press("i");
    await expect.poll(() => page.locator(".sums .faint").allTextContents()).toEqual(["1.00000 s of that are in the traces."]);
    await expect.poll(() => page.locator(".sums").getAttribute("aria-busy")).toBe("false");
    const parts = (await sumsOf(page, "Threads on CPUs")).map(([, , part]) => Number.parseFloat(part ?? ""));
    expect(Math.abs(parts.reduce((sum, part) => sum + part, 0) - 100)).toBeLessThan(1);
    await page.close();
  });

  test("are of all rows where they are drawn on the ruler, with events and counters", async () => {
    const page = await open();
    const ruler = (await page.locator("canvas.ruler").boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(ruler.x + ruler.width * 0.3, ruler.y + 10);
    await page.mouse.down();
    await page.mouse.move(ruler.x + ruler.width * 0.4, ruler.y + 10, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => page.locator(".sums-title").textContent()).toMatch(/, all rows$/);
    for (const title of ["Threads on CPUs", "States of threads", "Events of threads", "Events of streams", "Counters", "Arrows", "Row by row"]) {
      await expect.poll(() => sumsOf(page, title).then((rows) => rows.length)).toBeGreaterThan(0);
    }
    // Whoever closes the panel does not get it back with the next selection.
    await page.keyboard.press("i");
    await dragged(page, ["CPU 1", 0.5], ["CPU 1", 0.7]);
    await expect.poll(() => page.locator(".selected").count()).toBe(1);
    expect(await page.locator(".inspector").count()).toBe(0);
    await page.close();
  });
});
