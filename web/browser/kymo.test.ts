// The pages as `kymo view` serves them, with traces that were recorded: one of ours, and one of a kernel where the corpus is.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBrowser, rested } from "./browser.ts";

const executablePath = findBrowser();
const kymo = process.env["KYMO"];
const pictures = process.env["KYMO_PICTURES"];
const root = join(import.meta.dirname, "../..");

/** What is looked at, and how the picture is called. */
const TRACES: ReadonlyArray<readonly [string, string]> = [
  ["demo", join(root, "examples/traces/demo")],
  ["kernel", join(process.env["KYMO_CORPUS"] ?? "/nowhere", "ctf/tracecompass/many-threads")],
];

/** A server that runs, and where its page is. */
interface Served {
  readonly url: string;
  readonly process: ChildProcess;
}

async function serve(trace: string, cache: string): Promise<Served> {
  const environment = { ...process.env, XDG_CACHE_HOME: cache };
  const child = spawn(kymo ?? "", ["view", "--no-browser", trace], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    return { url: line.trim(), process: child };
  }
  throw new Error("kymo view ended before it said where it is");
}

async function end({ process: child }: Served): Promise<void> {
  const ended = new Promise((done) => child.once("exit", done));
  child.kill("SIGINT");
  await ended;
}

describe.runIf(executablePath !== null && kymo !== undefined).each(TRACES.filter(([, path]) => existsSync(path)))("a page of %s", (name, trace) => {
  let browser: Browser;
  let served: Served;
  let cache: string;

  beforeAll(async () => {
    cache = mkdtempSync(join(tmpdir(), "kymo-view-"));
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
    served = await serve(trace, cache);
  });
  afterAll(async () => {
    await browser?.close();
    await end(served);
    rmSync(cache, { recursive: true });
  });

  async function open(hash: string, colorScheme: "light" | "dark", width: number): Promise<{ page: Page; faults: string[] }> {
    const faults: string[] = [];
    const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } });
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(`${served.url}${hash}`);
    return { page, faults };
  }

  async function settled(page: Page): Promise<void> {
    await page.waitForSelector(".badge.good");
    await page.waitForSelector('main[data-complete="true"]');
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }

  async function picture(page: Page, what: string): Promise<void> {
    if (pictures !== undefined) {
      mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `${name}-${what}.png`) });
    }
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
    const { page, faults } = await open("", "light", 1600);
    await page.waitForSelector(".label");
    await picture(page, "first");
    await settled(page);
    expect(await page.locator(".label.head").count()).toBeGreaterThan(0);
    expect(await colours(page)).toBeGreaterThan(3);
    await picture(page, "light");
    for (const key of ["w", "w", "w", "w", "w", "w", "d", "w", "w"]) {
      await page.keyboard.press(key);
    }
    await settled(page);
    await rested(page);
    expect(await page.locator(".notice").count()).toBe(0);
    expect(await colours(page)).toBeGreaterThan(3);
    await picture(page, "near");
    const again = await open(new URL(page.url()).hash, "dark", 420);
    await settled(again.page);
    expect(new URL(again.page.url()).hash).toBe(new URL(page.url()).hash);
    await picture(again.page, "narrow-dark");
    expect([...faults, ...again.faults]).toEqual([]);
    await page.close();
    await again.page.close();
  });
});
