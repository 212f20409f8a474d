// `kymo view` without a trace, as somebody uses it for the first time: looks around, types a path, drops files, opens the sample. The pages are those that
// are built here, the answers those of a true server.

import { spawn, type ChildProcess } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findings } from "./axe.ts";
import { findBrowser } from "./browser.ts";
import { PATIENCE_MS } from "./patience.ts";
import { proxied, type Proxy } from "./proxy.ts";

const executablePath = findBrowser();
const kymo = process.env["KYMO"];
const pictures = process.env["KYMO_PICTURES"];
const root = join(import.meta.dirname, "../..");

describe.runIf(executablePath !== null && kymo !== undefined)("before a trace is open", () => {
  let browser: Browser;
  let place: string;
  let running: ChildProcess[];
  let proxies: Proxy[];
  let faults: string[];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
  });
  afterAll(() => browser?.close());
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "kymo-start-"));
    mkdirSync(join(place, "home"));
    cpSync(join(root, "examples/traces/demo"), join(place, "home/mine"), { recursive: true });
    [running, proxies, faults] = [[], [], []];
  });
  afterEach(async () => {
    // A page whose server has ended would go on asking for it.
    await Promise.all(browser.contexts().map((context) => context.close()));
    await Promise.all(running.map(end));
    await Promise.all(proxies.map((proxy) => proxy.end()));
    rmSync(place, { recursive: true });
  });

  /** The address of a server that runs, with the pages that are built here. */
  async function serve(...traces: string[]): Promise<string> {
    const environment = { ...process.env, XDG_CACHE_HOME: join(place, "cache"), HOME: join(place, "home") };
    const child = spawn(kymo ?? "", ["view", "--no-browser", ...traces], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
    running.push(child);
    for await (const line of createInterface({ input: child.stdout })) {
      const url = new URL(line.trim());
      const proxy = await proxied(join(import.meta.dirname, "../dist"), url.origin);
      proxies.push(proxy);
      return `${proxy.url}/${url.search}`;
    }
    throw new Error("kymo view ended before it said where it is");
  }

  async function end(child: ChildProcess): Promise<void> {
    if (child.exitCode === null) {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGINT");
      await ended;
    }
  }

  async function open(url: string, colorScheme: "light" | "dark" = "light", width = 1280): Promise<Page> {
    const page = await browser.newPage({ colorScheme, viewport: { width, height: 900 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("console", (message) => message.type() === "error" && faults.push(`${message.text()} ${new URL(message.location().url).pathname}`));
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(url);
    await page.getByRole("heading", { name: "Kymograph" }).waitFor();
    return page;
  }

  /** The timeline of a trace is there, to its end. */
  async function shows(page: Page, name: string): Promise<void> {
    await page.waitForSelector(".badge.good");
    await page.waitForSelector('main[data-complete="true"]');
    expect(await page.locator(".chips .chip").allTextContents()).toEqual([name]);
    expect(await page.locator(".label").count()).toBeGreaterThan(0);
    expect(await page.locator(".notice").count()).toBe(0);
  }

  async function picture(page: Page, name: string): Promise<void> {
    if (pictures !== undefined) {
      mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `start-${name}.png`) });
    }
  }

  test("the sample is opened by keys alone, and the page goes on to the timeline", async () => {
    const page = await open(await serve());
    await picture(page, "first");
    const sample = page.getByRole("button", { name: "Open the sample" });
    for (let step = 0; step < 20 && !(await sample.evaluate((button) => button === document.activeElement)); step++) {
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Enter");
    await shows(page, "server");
    await picture(page, "sample");
    // Keys mean what they mean there, and a reload leads there again.
    await page.keyboard.press("?");
    await page.locator("dialog.help").waitFor();
    await page.reload();
    await shows(page, "server");
    // It has no notes, as it does not stay.
    expect(faults.filter((fault) => !/404 .*\/notes$/.test(fault))).toEqual([]);
  });

  test("a wrong path says why, the right one is opened, and is there the next time", async () => {
    const page = await open(await serve());
    const field = page.getByLabel("Path on the machine where kymo runs");
    await field.fill("~/nothing");
    await field.press("Enter");
    const failure = page.getByRole("alert");
    await expect.poll(() => failure.textContent()).toContain("nothing");
    expect(await failure.textContent()).toContain("a folder with a `metadata` file");
    await picture(page, "wrong");
    expect(await findings(page, 10), "with what went wrong").toEqual([]);
    expect(await field.inputValue()).toBe("~/nothing");
    await field.fill("~/mine");
    await page.getByRole("button", { name: "Open", exact: true }).click();
    await shows(page, "mine");
    // The one that was refused stands in the console of the browser, as it should.
    expect(faults.filter((fault) => !/400 .*\/start\/open$/.test(fault))).toEqual([]);

    await serve(join(root, "examples/traces/demo"));
    const again = await open(await serve());
    const entries = again.locator(".start-entry");
    expect(await entries.locator(".start-name").allTextContents()).toEqual(["demo", "mine"]);
    await entries.first().focus();
    await again.keyboard.press("ArrowDown");
    await picture(again, "recent");
    await again.keyboard.press("Enter");
    await shows(again, "mine");
  });

  test("traces that are gone say so, and are not opened", async () => {
    const first = await open(await serve());
    await first.getByLabel("Path on the machine where kymo runs").fill("~/mine");
    await first.keyboard.press("Enter");
    await shows(first, "mine");
    renameSync(join(place, "home/mine"), join(place, "home/other"));
    const page = await open(await serve(), "dark", 700);
    const entry = page.locator(".start-entry");
    expect(await entry.textContent()).toContain("not there any more");
    expect(await entry.getAttribute("aria-disabled")).toBe("true");
    await entry.focus();
    await page.keyboard.press("Enter");
    expect(await page.locator(".start-busy").count()).toBe(0);
    await picture(page, "gone-dark-narrow");
  });

  test("a folder is dropped as from a desktop, and opened", async () => {
    const page = await open(await serve());
    const browserOf = await page.context().newCDPSession(page);
    const zone = await page.locator(".start-drop").boundingBox();
    const at = { x: Math.round((zone?.x ?? 0) + 40), y: Math.round((zone?.y ?? 0) + 20) };
    const data = { items: [], files: [join(place, "home/mine")], dragOperationsMask: 1 };
    await browserOf.send("Input.dispatchDragEvent", { type: "dragEnter", ...at, data });
    await browserOf.send("Input.dispatchDragEvent", { type: "dragOver", ...at, data });
    await page.getByText("Let go to open it.").waitFor();
    await picture(page, "drop");
    await browserOf.send("Input.dispatchDragEvent", { type: "drop", ...at, data });
    await shows(page, "mine");
    expect(faults.filter((fault) => !/404 .*\/notes$/.test(fault))).toEqual([]);
  });

  test("files and folders are picked; what is no trace says so, and something else can be opened", async () => {
    const page = await open(await serve());
    await page.getByLabel("The files of a trace").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no trace") }]);
    await expect.poll(() => page.getByRole("alert").textContent()).toContain("Drop the whole folder of a trace");
    // An archive is one file.
    await page.getByLabel("The files of a trace").setInputFiles(join(root, "examples/traces/server.tar.gz"));
    await shows(page, "server");
    const other = await open(await serve());
    await other.getByLabel("The folder of a trace").setInputFiles(join(place, "home/mine"));
    await shows(other, "mine");
    expect(faults.filter((fault) => !/400 .*\/start\/open$|404 .*\/notes$/.test(fault))).toEqual([]);
  });

  test("a page that looks on goes to the timeline, too, when another one has opened a trace", async () => {
    const url = await serve();
    const [page, other] = [await open(url), await open(url)];
    await page.getByRole("button", { name: "Open the sample" }).click();
    await shows(page, "server");
    // Whoever comes back to it, or chooses there, sees what is open.
    await other.getByRole("button", { name: "Open the sample" }).click();
    await shows(other, "server");
  });

  test.each([
    ["light", 1280],
    ["dark", 1280],
    ["light", 420],
    ["dark", 420],
  ] as const)("nothing is seriously wrong in the %s, %d wide", async (theme, width) => {
    await serve(join(place, "home/mine"));
    const page = await open(await serve(), theme, width);
    expect(await findings(page, 10)).toEqual([]);
    await picture(page, `${theme}-${width}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    const copy = page.getByRole("button", { name: "Copy kymo record -- ./app" });
    await copy.click();
    await expect.poll(() => copy.textContent()).toBe("Copied");
  });
});
