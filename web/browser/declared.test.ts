// What an own analysis declares, as `kymo view --own` shows it: components with their states, counters with their units, and these as curves.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBrowser, rested } from "./browser.ts";
import { PATIENCE_MS } from "./patience.ts";
import { proxied, type Proxy } from "./proxy.ts";

const executablePath = findBrowser();
const kymo = process.env["KYMO"];
const pictures = process.env["KYMO_PICTURES"];
const trace = join(import.meta.dirname, "../../examples/traces/demo");

const OWN = `
name = "jobs"
[[states]]
name = "worker"
key = "$ctx.vtid"
set = [{ event = "jobs:begin", to = "busy" }, { event = "jobs:chunk", to = "writing" }, { event = "jobs:end", to = "idle" }]
[[counters]]
name = "queue"
unit = "jobs"
change = { event = "jobs:submit", to = { field = "queue_depth" } }
[[counters]]
name = "written"
unit = "bytes"
change = { event = "jobs:end", add = 1000 }
[[counters]]
name = "failed"
unit = "jobs"
change = { event = "jobs:end", when = "result < 0", add = 1 }
`;

/** An event, as `kymo print` writes it. */
interface Printed {
  readonly time: bigint;
  readonly event: string;
  readonly vtid: number;
}

function printed(): Printed[] {
  const lines = execFileSync(kymo ?? "", ["print", "--format", "json", trace], { encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  return lines.map((line) => {
    const { event, common_context } = JSON.parse(line) as { event: string; common_context: { vtid: number } };
    return { time: BigInt(/^\{"time":(\d+)/.exec(line)?.[1] ?? 0), event, vtid: common_context.vtid };
  });
}

describe.runIf(executablePath !== null && kymo !== undefined)("what is declared", () => {
  let browser: Browser;
  let server: ChildProcess;
  let proxy: Proxy;
  let url: string;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "kymo-declared-"));
    writeFileSync(join(folder, "jobs.toml"), OWN);
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
    server = spawn(kymo ?? "", ["view", "--no-browser", "--own", join(folder, "jobs.toml"), trace], { env: { ...process.env, XDG_CACHE_HOME: folder }, stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface({ input: server.stdout ?? process.stdin })) {
      const told = new URL(line.trim());
      proxy = await proxied(join(import.meta.dirname, "../dist"), told.origin);
      url = `${proxy.url}/${told.search}`;
      return;
    }
  });
  afterAll(async () => {
    await browser?.close();
    await proxy?.end();
    const ended = new Promise((done) => server.once("exit", done));
    server.kill("SIGINT");
    await ended;
    rmSync(folder, { recursive: true });
  });

  async function open(hash: string, more: { readonly colorScheme?: "light" | "dark"; readonly width?: number } = {}): Promise<{ page: Page; faults: string[] }> {
    const faults: string[] = [];
    const page = await browser.newPage({ colorScheme: more.colorScheme ?? "light", viewport: { width: more.width ?? 1280, height: 860 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(`${url}${hash}`);
    await page.waitForSelector(".badge.good");
    await page.waitForSelector('main[data-complete="true"]');
    return { page, faults };
  }

  async function picture(page: Page, name: string): Promise<void> {
    if (pictures !== undefined) {
      mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `${name}.png`) });
    }
  }

  test("states of components are rows that can be picked", async () => {
    const { page, faults } = await open("#fold=Threads&fold=Events");
    const events = printed();
    const workers = [...new Set(events.filter(({ event }) => event !== "jobs:submit").map(({ vtid }) => vtid))];
    const names = await page.locator(".label .name").allTextContents();
    expect(names.filter((name) => name.startsWith("worker ")).sort()).toEqual(workers.map((tid) => `worker ${tid}`).sort());
    // The third state of a worker, in the middle of its time.
    const own = events.filter(({ event, vtid }) => event !== "jobs:submit" && vtid === workers[0]);
    const [from, until] = [own[2], own[3]];
    const label = { "jobs:begin": "busy", "jobs:chunk": "writing", "jobs:end": "idle" }[from?.event ?? ""];
    const time = ((from?.time ?? 0n) + (until?.time ?? 0n)) / 2n;
    const { page: picked, faults: others } = await open(`#fold=Threads&fold=Events&panels=inspector&item=${time}~own/jobs/worker ${workers[0]}`);
    await expect.poll(() => picked.locator(".inspector").textContent()).toContain(label ?? "?");
    await expect.poll(() => picked.locator(".inspector").textContent()).toContain(`worker ${workers[0]}`);
    await picture(picked, "declared-states");
    expect([...faults, ...others]).toEqual([]);
    await page.close();
    await picked.close();
  });

  test("counters are drawn as curves, which follow the timeline and lead it", async () => {
    const { page, faults } = await open("#fold=Threads&fold=Events");
    await page.locator('.label:has([data-row="track own/jobs/queue"])').hover();
    await page.getByRole("button", { name: "Curve of queue" }).click();
    await page.waitForSelector(".curve-plot canvas");
    await page.getByRole("combobox", { name: "Add a counter" }).selectOption("own/jobs/written");
    await expect.poll(() => page.locator(".curve-name").allTextContents()).toEqual(["queue", "written"]);
    await page.waitForSelector('main[data-complete="true"]');
    await rested(page);
    // It stands below the timeline, pixel for pixel.
    const [plot, timeline] = await Promise.all([page.locator(".curve-plot canvas").boundingBox(), page.locator(".area canvas").boundingBox()]);
    expect([plot?.x, plot?.width]).toEqual([timeline?.x, timeline?.width]);
    await picture(page, "curves");
    await page.mouse.move((plot?.x ?? 0) + 300, (plot?.y ?? 0) + 40);
    await page.mouse.down();
    await page.mouse.move((plot?.x ?? 0) + 500, (plot?.y ?? 0) + 60, { steps: 3 });
    await page.mouse.up();
    await expect.poll(() => page.locator(".status .selected").count()).toBe(1);
    await expect.poll(() => page.locator(".area .cursor").count()).toBe(1);
    await page.keyboard.press("z");
    await expect.poll(() => page.url()).toContain("at=");
    expect(faults).toEqual([]);
    const seen = page.url();
    await page.close();
    const { page: again, faults: others } = await open(new URL(seen).hash, { colorScheme: "dark", width: 700 });
    await expect.poll(() => again.locator(".curve-name").allTextContents()).toEqual(["queue", "written"]);
    await picture(again, "curves-dark-narrow");
    expect(others).toEqual([]);
    await again.close();
  });

  test("keys go from change to change, and say what stands there", async () => {
    const submits = printed().filter(({ event }) => event === "jobs:submit");
    const before = submits[200];
    // So near that each change has a bucket of its own.
    const { page, faults } = await open(`#at=${(before?.time ?? 0n) - 20_000n}~400000&fold=Threads&fold=Events&panels=drawer.counters&curve=own/jobs/queue&curve=own/jobs/written`);
    await page.locator(".curve-plot canvas").focus();
    const aloud = page.locator(".curve-plot [role=status]");
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => aloud.textContent()).toMatch(/queue \d+.* jobs, written .* bytes$/);
    const first = await aloud.textContent();
    await page.keyboard.press("Shift+ArrowRight");
    await expect.poll(() => aloud.textContent()).not.toBe(first);
    await expect.poll(() => page.locator(".status .selected").count()).toBe(1);
    expect(faults).toEqual([]);
    await page.close();
  });
});
