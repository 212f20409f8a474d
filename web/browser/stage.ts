// The common parts of all tests in a browser: the browser, pages with their faults kept, pictures, servers of recorded traces. Where there is no
// browser, or no command or corpus, tests that need them are skipped, and `absent.ts` says so before the first one.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "vitest";
import { findBrowser } from "./browser.ts";
import { PATIENCE_MS } from "./patience.ts";
import { proxied, type Proxy } from "./proxy.ts";
import { TOKEN, serve, type StandIn } from "./server.ts";

/** The pages that are tested, and where the sources are. */
export const DIST = join(import.meta.dirname, "../dist");
export const ROOT = join(import.meta.dirname, "../..");
/** The command, where there is one. */
export const KYMO = process.env["KYMO"];
/** Where pictures of the pages go, for people to look at. */
const PICTURES = process.env["KYMO_PICTURES"];

/** Traces that were recorded: one of ours, and one of a kernel where the corpus is. */
export const DEMO = join(ROOT, "examples/traces/demo");
/** The sample that `kymo view` offers to users without traces. */
export const SAMPLE = join(ROOT, "examples/traces/server.tar.gz");
export const KERNEL = join(process.env["KYMO_CORPUS"] ?? "/nowhere", "ctf/tracecompass/many-threads");

export interface Opened {
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
  readonly height?: number;
  readonly ratio?: number;
}

/** A browser, and the faults of its pages. */
export class Stage {
  /** What the pages of a test complained of. */
  readonly faults: string[] = [];
  private readonly expected: RegExp[] = [];
  private launched: Browser | null = null;

  get browser(): Browser {
    if (this.launched === null) {
      throw new Error("the browser is there as long as tests run");
    }
    return this.launched;
  }

  async begin(): Promise<void> {
    this.launched = await chromium.launch({ executablePath: findBrowser() ?? "", args: ["--no-sandbox"], timeout: PATIENCE_MS });
  }

  async end(): Promise<void> {
    await this.launched?.close();
  }

  /** Closes the pages that a test has left open. */
  async closePages(): Promise<void> {
    await Promise.all(this.browser.contexts().map((context) => context.close()));
  }

  /** A page, which may be anything yet. */
  async open(url: string, { colorScheme = "light", width = 1280, height = 800, ratio = 1 }: Opened = {}): Promise<Page> {
    const page = await this.browser.newPage({ colorScheme, viewport: { width, height }, deviceScaleFactor: ratio, timezoneId: "Europe/Berlin", permissions: ["clipboard-read", "clipboard-write"] });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("console", (message) => message.type() === "error" && this.faults.push(message.text()));
    page.on("pageerror", (error) => this.faults.push(String(error)));
    await page.goto(url);
    return page;
  }

  /** The test brings about faults like this, one or several; some may come only while its pages are closed. */
  expectFaults(like: RegExp): void {
    this.expected.push(like);
  }

  /** Before a test. */
  forgetFaults(): void {
    this.faults.length = 0;
    this.expected.length = 0;
  }

  /** Behind a test, whose pages are closed: every fault is one that it expects, and it has brought about all that it expects. */
  judgeFaults(): void {
    expect(this.faults.filter((fault) => !this.expected.some((like) => like.test(fault)))).toEqual([]);
    expect(this.expected.filter((like) => !this.faults.some((fault) => like.test(fault)))).toEqual([]);
  }
}

/** A stage with a server that always says the same. */
export class Invented extends Stage {
  private standIn: StandIn | null = null;

  get server(): StandIn {
    if (this.standIn === null) {
      throw new Error("the server is there as long as tests run");
    }
    return this.standIn;
  }

  override async begin(): Promise<void> {
    await super.begin();
    this.standIn = await serve(DIST);
  }

  override async end(): Promise<void> {
    await super.end();
    await this.standIn?.end();
  }

  /** The page of the server, with the text behind `#`. */
  visit(hash = "", options: Opened = {}): Promise<Page> {
    return this.open(`${this.server.url}/?token=${TOKEN}${hash}`, options);
  }
}

/** A stage with a trace that was recorded, as the command tells of it; `null`: with none, so that the page asks which. */
export class Recorded extends Stage {
  /** How the page asks, with `?`. */
  query = "";
  /** Where the command serves pages that it was built with. */
  own = "";
  private readonly trace: string | null;
  private readonly cache = mkdtempSync(join(tmpdir(), "kymo-view-"));
  private child: ChildProcess | null = null;
  private proxy: Proxy | null = null;

  constructor(trace: string | null) {
    super();
    this.trace = trace;
  }

  /** Where the pages are that are tested. */
  get url(): string {
    return this.proxy?.url ?? "";
  }

  get token(): string {
    return new URLSearchParams(this.query).get("token") ?? "";
  }

  override async begin(): Promise<void> {
    await super.begin();
    const child = spawn(KYMO ?? "", ["view", "--no-browser", ...(this.trace === null ? [] : [this.trace])], { env: { ...process.env, XDG_CACHE_HOME: this.cache }, stdio: ["ignore", "pipe", "inherit"] });
    this.child = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const url = new URL(line.trim());
      [this.own, this.query] = [url.href, url.search];
      this.proxy = await proxied(DIST, url.origin);
      return;
    }
    throw new Error("kymo view ended before it said where it is");
  }

  override async end(): Promise<void> {
    await super.end();
    await this.proxy?.end();
    const { child } = this;
    if (child !== null && child.exitCode === null) {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGINT");
      await ended;
    }
    rmSync(this.cache, { recursive: true });
  }

  visit(hash = "", options: Opened = {}): Promise<Page> {
    return this.open(`${this.url}/${this.query}${hash}`, options);
  }
}

function onStage<S extends Stage>(stage: S, body: (stage: S) => void): void {
  beforeAll(() => stage.begin());
  afterAll(() => stage.end());
  beforeEach(() => stage.forgetFaults());
  // A page that a failed test leaves open would ask the server meanwhile, and its faults would be those of the next test.
  afterEach(async () => {
    await stage.closePages();
    stage.judgeFaults();
  });
  body(stage);
}

/** Tests with the server that always says the same. */
export function withInvented(name: string, body: (stage: Invented) => void): void {
  describe.runIf(findBrowser() !== null)(name, () => onStage(new Invented(), body));
}

/** Tests of traces that were recorded, as far as they are here; `%s` in the name stands for their names. */
export function withRecorded<T extends { readonly name: string; readonly trace: string | null }>(name: string, traces: readonly T[], body: (stage: Recorded, of: T) => void): void {
  describe.runIf(findBrowser() !== null && KYMO !== undefined).each(traces.filter(({ trace }) => trace === null || existsSync(trace)))(name.replace("%s", "$name"), (of) => onStage(new Recorded(of.trace), (stage) => body(stage, of)));
}

/** All that is on the screen is there, and drawn. */
export async function complete(page: Page): Promise<void> {
  await page.waitForSelector('main[data-complete="true"]');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES !== undefined) {
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: join(PICTURES, `${name}.png`) });
  }
}
