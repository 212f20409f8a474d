// The pictures of the pages that docs have: made by these tests from traces of ours (`UPDATE=1 scripts/web.sh browser` writes them anew, to be looked at), and
// without that compared with what the pages show now: as large, made, and with all in them that they are shown for.

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { complete, ROOT, SAMPLE, withRecorded, type Opened, type Recorded } from "./stage.ts";

const SIZE = { width: 1280, height: 800 };
const BYTES_MAX = 220_000;
/** Where a picture is shown, from the root of the sources. */
const DOCS = ["README.md", "docs/viewer.md"];

/** Takes a picture, or says how the one that is there is another one. */
async function shown(page: Page, name: string): Promise<void> {
  // A cursor that blinks, or what an animation is about to be, would make another picture each time.
  const taken = await page.screenshot({ caret: "hide", animations: "disabled" });
  const path = join(ROOT, "docs/images", `viewer-${name}.png`);
  if (process.env["UPDATE"] === "1") {
    writeFileSync(path, taken);
  }
  expect(sizeOf(readFileSync(path))).toEqual(sizeOf(taken));
  expect(sizeOf(taken)).toEqual(SIZE);
  expect(statSync(path).size).toBeLessThan(BYTES_MAX);
  // Somebody sees it, and who does not is told what is on it.
  const texts = DOCS.map((doc) => readFileSync(join(ROOT, doc), "utf8"));
  const alt = texts.map((text) => new RegExp(`!\\[([^\\]]+)\\]\\([a-z/]*images/viewer-${name}\\.png\\)`).exec(text)?.[1] ?? "").join("");
  expect(alt.length, `docs that show viewer-${name}.png say what is on it`).toBeGreaterThan(20);
}

/** The size of a PNG: it stands at the begin of the file. */
function sizeOf(png: Buffer): { readonly width: number; readonly height: number } {
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20) };
}

/** How many colours the timeline has. */
function colours(page: Page): Promise<number> {
  return page.$eval(".area canvas", (canvas) => {
    const { width, height } = canvas as HTMLCanvasElement;
    const data = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
    return new Set(new Uint32Array(data.buffer)).size;
  });
}

/** What the server answers. As text, because times do not fit into doubles. */
async function asked(stage: Recorded, path: string): Promise<string> {
  return (await fetch(`${stage.url}/api/v1/${path}`, { headers: { Authorization: `Bearer ${stage.token}` } })).text();
}

async function beginOf(stage: Recorded): Promise<bigint> {
  return BigInt(/"begin_ns":(\d+)/.exec(await asked(stage, "timeline"))?.[1] ?? 0);
}

/** The first duration that begins in so many nanoseconds from a time on, as the URL names it. */
async function durationIn(stage: Recorded, begin: bigint, span: number): Promise<string> {
  const { tracks } = JSON.parse(await asked(stage, "catalogue")) as { tracks: ReadonlyArray<{ number: number; id: string }> };
  for (const { number, id } of tracks.filter(({ id }) => id.endsWith("/slices/0"))) {
    const items = await asked(stage, `items?track=${number}&begin=${begin}&end=${begin + BigInt(span)}&limit=1`);
    const [, found] = /"begin_ns":(\d+)/.exec(items) ?? [];
    if (found !== undefined) {
      return `${found}~${id}`;
    }
  }
  throw new Error("nothing has a duration there");
}

withRecorded("docs show %s", [{ name: "the sample", trace: SAMPLE }], (stage) => {
  /** The page, with so many microseconds of the trace from a time after its begin on, once all of the trace was read. */
  async function open([from, span]: readonly [number, number], panels: string, options: Opened = {}, picks = false): Promise<Page> {
    const first = await stage.visit("", { ...SIZE, ...options });
    await first.waitForSelector(".badge.good");
    await first.close();
    const begin = (await beginOf(stage)) + BigInt(from * 1_000);
    const item = picks ? `&item=${await durationIn(stage, begin + BigInt(span * 300), span * 700)}` : "";
    const page = await stage.visit(`#at=${begin}~${span * 1_000}${item}${panels}`, { ...SIZE, ...options });
    await page.waitForSelector(".badge.good");
    await complete(page);
    return page;
  }

  test.each(["light", "dark"] as const)("the whole page, %s", async (colorScheme) => {
    const page = await open([40_600, 1_000], "&panels=drawer.events.200~inspector..300", { colorScheme }, true);
    await expect.poll(() => page.locator(".inspected h2").first().textContent()).toContain("page");
    await page.waitForSelector(".event-body .event-row");
    await complete(page);
    expect(await page.locator(".label").count()).toBeGreaterThan(5);
    expect(await colours(page)).toBeGreaterThan(4);
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(Number(/\d+/.exec(background)?.[0]) < 128).toBe(colorScheme === "dark");
    await shown(page, colorScheme);
    await page.close();
  });

  test("latencies", async () => {
    const page = await open([0, 100_000], "&panels=drawer.latency.460");
    await page.waitForSelector(".drawer .grid-row");
    await expect.poll(() => page.locator(".drawer canvas").count()).toBeGreaterThan(1);
    await rested(page);
    expect(await page.locator(".drawer").textContent()).toMatch(/50 %.*99 %/s);
    await shown(page, "latency");
    await page.close();
  });

  test("filters", async () => {
    const page = await open([28_000, 12_000], "&panels=rail.filters.320&filter=id%20%25%203%20%3D%3D%200&mode=hide");
    await page.getByRole("button", { name: /Threads/ }).first().waitFor();
    await expect.poll(() => page.locator(".rail").textContent()).toMatch(/server \(\d+\)/);
    expect(await page.locator(".filter-chip").allTextContents()).toEqual([expect.stringContaining("id % 3 == 0")]);
    await complete(page);
    await shown(page, "filters");
    await page.close();
  });
});

withRecorded("docs show %s", [{ name: "the choice of a trace", trace: null }], (stage) => {
  test("the first page", async () => {
    const page = await stage.visit("", SIZE);
    await page.getByRole("button", { name: "Open the sample" }).waitFor();
    expect(await page.getByRole("heading").allTextContents()).toEqual(expect.arrayContaining(["Open a trace", "Record one"]));
    await shown(page, "start");
    await page.close();
  });
});
