// A session that `kymo view --record` records while it is watched: the timeline grows, and what one scrolls back to meanwhile is what the finished
// trace says, by the commands that read it. The program is the server of the examples, which works until it is stopped.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readStatus } from "../src/model/catalogue.ts";
import { decode } from "../src/model/decode.ts";
import { Shape, parseJson } from "../src/model/json.ts";
import { readRecording } from "../src/model/recording.ts";
import { lengthOf, type TrackItems } from "../src/model/tile.ts";
import { findBrowser, rested } from "./browser.ts";
import { PATIENCE_MS } from "./patience.ts";
import { proxied, type Proxy } from "./proxy.ts";
import { windowShown } from "./reading.ts";
import { DIST, KYMO, ROOT, Stage, complete, picture } from "./stage.ts";

/** Where libkymo is; `make demo` builds it. */
const LIBRARY = process.env["KYMO_LIBRARY"] ?? join(dirname(KYMO ?? ""), "../libkymo");
/** Seconds that the program would work for. */
const WORKS_FOR = "3600";
/** Buckets of a tile that are compared, of a millisecond each: a level, and how many. */
const LEVEL = 20;
const BUCKETS = 256;
/** Threads of the program that look into its cache. */
const WORKERS = 2;
/** A trace is as long as that before somebody scrolls back. */
const LONG_NS = 3_000_000_000;

/** A page of a session that is recorded by the command itself. */
class Session extends Stage {
  readonly place = mkdtempSync(join(tmpdir(), "kymo-live-"));
  url = "";
  private query = "";
  private child: ChildProcess | null = null;
  private proxy: Proxy | null = null;

  override async begin(): Promise<void> {
    await super.begin();
    const program = this.build();
    mkdirSync(join(this.place, "run"), { mode: 0o700 });
    const { KYMO: _, ...environment } = process.env;
    // The session has a recorder of its own, which ends no other one and is found by none.
    const env = { ...environment, HOME: this.place, XDG_CACHE_HOME: join(this.place, "cache"), XDG_RUNTIME_DIR: join(this.place, "run") };
    const child = spawn(KYMO ?? "", ["view", "--record", "--no-browser", "--", program, WORKS_FOR], { cwd: this.place, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.child = child;
    // What the program writes to standard output is its own.
    child.stdout.resume();
    let said = "";
    for await (const line of createInterface({ input: child.stderr })) {
      said += `${line}\n`;
      if (line.trim().startsWith("http")) {
        const url = new URL(line.trim());
        [this.url, this.query] = [url.origin, url.search];
        this.proxy = await proxied(DIST, url.origin);
        child.stderr.resume();
        return;
      }
    }
    throw new Error(`\`kymo view --record\` ended before it said where it is: ${said}`);
  }

  /** The server of the examples, with libkymo beside it. */
  private build(): string {
    const library = join(LIBRARY, "libkymo.so");
    if (!existsSync(library)) {
      throw new Error(`${library} is not there: \`cargo build --profile libkymo --package kymo-libkymo\` builds it, KYMO_LIBRARY names its folder`);
    }
    symlinkSync(library, join(this.place, "libkymo.so.0"));
    const program = join(this.place, "server");
    execFileSync("cc", ["-O2", `-I${join(ROOT, "include")}`, join(ROOT, "examples/server/server.c"), `-L${LIBRARY}`, "-lkymo", "-lpthread", `-Wl,-rpath,${this.place}`, "-o", program]);
    return program;
  }

  override async end(): Promise<void> {
    await super.end();
    await this.proxy?.end();
    const { child } = this;
    if (child?.pid !== undefined) {
      const ended = child.exitCode === null ? new Promise((done) => child.once("exit", done)) : Promise.resolve();
      // It ends the program, too.
      child.kill("SIGTERM");
      await ended;
      try {
        // Whatever is left of what it started.
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // Nothing is.
      }
    }
    rmSync(this.place, { recursive: true, force: true });
  }

  visit(hash = ""): Promise<Page> {
    return this.open(`${this.proxy?.url ?? ""}/${this.query}${hash}`);
  }

  /** What the server answers. */
  async ask(path: string): Promise<Response> {
    const token = new URLSearchParams(this.query).get("token") ?? "";
    const response = await fetch(`${this.url}/api/v1/${path}`, { headers: { Authorization: `Bearer ${token}` } });
    expect(response.status, path).toBe(200);
    return response;
  }

  async json(path: string): Promise<Shape> {
    return new Shape(parseJson(await (await this.ask(path)).text()), path);
  }
}

/** An event of a trace that is finished. */
interface Printed {
  readonly time: bigint;
  readonly name: string;
}

/** A recorder's clock, as a trace describes it. */
interface TraceClock {
  /** Ticks of a second, and when the first one was: in seconds since 1970, and in ticks beside. */
  readonly frequency: bigint;
  readonly seconds: bigint;
  readonly ticks: bigint;
}

const SECOND = 1_000_000_000n;
/** Times are rounded to nanoseconds before and after. */
const ROUNDED_NS = 2n;

function clockOf(trace: string): TraceClock {
  const metadata = readFileSync(join(trace, "metadata"), "utf8");
  const member = (name: string): bigint => BigInt(new RegExp(`\\bclock \\{[^}]*\\b${name} = (\\d+);`).exec(metadata)?.[1] ?? "no number");
  return { frequency: member("freq"), seconds: member("offset_s"), ticks: member("offset") };
}

/** The time of the same tick of a clock that is known better: at its end a recording says anew how fast the clock runs, and when it began. */
function retimed(time: bigint, before: TraceClock, now: TraceClock): bigint {
  const ticks = ((time - before.seconds * SECOND) * before.frequency) / SECOND - before.ticks;
  return now.seconds * SECOND + ((ticks + now.ticks) * SECOND) / now.frequency;
}

/** The time that a list has written. */
function sinceBeginOf(text: string): bigint {
  const [, whole = "0", part = "0"] = /^(\d+)\.(\d+)$/.exec(text.replace(/[\s\u202f]|s$/g, "")) ?? [];
  return BigInt(whole) * SECOND + BigInt(part.padEnd(9, "0"));
}

/** What `kymo print` says of a time: from `begin` to before `end`. */
function printed(trace: string, begin: bigint, end: bigint, ...more: string[]): Printed[] {
  const seconds = (time: bigint): string => `${time / SECOND}.${(time % SECOND).toString().padStart(9, "0")}`;
  const text = execFileSync(KYMO ?? "", ["print", "--clock-seconds", "--begin", seconds(begin), "--end", seconds(end - 1n), ...more, trace], { maxBuffer: 1 << 30 }).toString();
  return text.split("\n").filter((line) => line !== "").map((line) => {
    const [, whole = "0", part = "0", name = ""] = /^\[(\d+)\.(\d{9})\] \([^)]*\) (?:\S+ )?([\w:]+): \{/.exec(line) ?? [];
    return { time: BigInt(whole) * SECOND + BigInt(part), name };
  });
}

/** How many events a track tells of, wherever they are. */
function eventsOf({ items }: TrackItems): number {
  return items.form === "counts" ? items.count.reduce((sum, count) => sum + count, 0) : lengthOf(items);
}

describe.runIf(findBrowser() !== null && KYMO !== undefined && process.platform === "linux")("a session that is recorded while it is watched", () => {
  const stage = new Session();
  beforeAll(() => stage.begin(), 240_000);
  afterAll(() => stage.end());
  beforeEach(() => stage.forgetFaults());

  const chip = (page: Page): ReturnType<Page["locator"]> => page.locator(".live-chip");

  /** The rows on the screen of the list of events: when, and what. */
  function rowsOf(page: Page): Promise<string[][]> {
    return page.$$eval(".event-body .event-row", (rows) => rows.map((row) => [".time", ".event"].map((of) => row.querySelector(of)?.textContent ?? "")));
  }

  test("grows, is held back, and what is seen then is what the finished trace says", { timeout: 900_000 }, async () => {
    const page = await stage.visit("#panels=drawer.events");
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live( · .* behind)?$/);
    const first = await windowShown(page);
    expect(first.end).toBeGreaterThan(0);
    await expect.poll(async () => (await windowShown(page)).end).toBeGreaterThan(Math.max(first.end, LONG_NS));
    expect(await page.locator(".label").count()).toBeGreaterThan(0);
    await picture(page, "session-live");

    // Held back, nearer, and back to where all is there: while the program goes on.
    await page.keyboard.press("Space");
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused/);
    for (const key of ["w", "w", "w", "w", "w", "w", "Shift+A", "Shift+A"]) {
      await page.keyboard.press(key);
    }
    await complete(page);
    await rested(page);
    const [, begin = "0", span = "0"] = /at=(\d+)~(\d+)/.exec(page.url()) ?? [];
    const seen = { begin: BigInt(begin), end: BigInt(begin) + BigInt(span) };
    const status = readStatus(await stage.json("timeline"));
    expect(status.live?.state).toBe("recording");
    expect(seen.end).toBeLessThan(status.live?.watermark ?? 0n);
    await expect.poll(async () => (await rowsOf(page)).filter(([time]) => time !== "").length).toBeGreaterThan(3);
    await expect.poll(() => page.locator(".event-grid").getAttribute("aria-busy")).toBe("false");
    const rows = await rowsOf(page);
    await picture(page, "session-held-back");

    // What the timeline is drawn from: a tile inside of what is there, as soon as that is read.
    const tileThere = (): ReturnType<typeof tileIn> => tileIn(status.extent.begin, seen.begin);
    await expect.poll(async () => (await tileThere()).answer.spans.map(({ quality }) => quality)).toEqual(["exact"]);
    const tile = await tileThere();
    const output = readRecording(await stage.json("recording"))?.output ?? "";
    const clock = clockOf(output);

    // One class is switched off, and the program is stopped, by the controls of the recorder.
    await page.keyboard.press("l");
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    await page.keyboard.press("b");
    await page.getByRole("tab", { name: "Record", exact: true }).click();
    const look = page.getByRole("checkbox", { name: "Record server:cache_look" });
    await look.uncheck();
    await expect.poll(async () => readRecording(await stage.json("recording"))?.classes.find(({ name }) => name === "server:cache_look")?.isOn).toBe(false);
    const off = BigInt(Date.now() + 1) * 1_000_000n;
    await expect.poll(async () => readStatus(await stage.json("timeline")).live?.watermark ?? 0n).toBeGreaterThan(off + 500_000_000n);
    await picture(page, "session-controls");
    await page.getByRole("button", { name: "Stop recording" }).click();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await expect.poll(() => chip(page).textContent()).toBe("ended");
    // The rest of the trace is read by threads that get only the processor time which other programs leave.
    await page.waitForSelector(".badge.good", { timeout: 4 * PATIENCE_MS });
    await complete(page);
    await picture(page, "session-ended");
    const ended = readStatus(await stage.json("timeline"));
    expect(ended.live?.state).toBe("ended");

    // The finished trace, as the command reads it. Its clock is known better than that of the window was.
    const better = clockOf(output);
    const finished = (time: bigint): bigint => retimed(time, clock, better);
    // The list goes a little beyond the window, on both sides.
    const truth = printed(output, finished(status.extent.begin) - ROUNDED_NS, finished(seen.end + (seen.end - seen.begin)));
    const told = rows.filter(([time]) => time !== "").map(([time = "", name = ""]) => ({ time: finished(status.extent.begin + sinceBeginOf(time)), name }));
    const isNear = (one: bigint, other: bigint): boolean => one - other <= ROUNDED_NS && other - one <= ROUNDED_NS;
    const isSame = (from: number): boolean => told.every(({ time, name }, index) => truth[from + index]?.name === name && isNear(truth[from + index]?.time ?? 0n, time));
    expect(truth.findIndex((_, from) => isSame(from)), `${JSON.stringify(rows)} is in the finished trace`).toBeGreaterThanOrEqual(0);
    expect(ended.extent.begin).toBe(status.extent.begin);
    // Events at the edges of the tile may have gone to the other side of them.
    const [fewest, most] = [ROUNDED_NS, -ROUNDED_NS].map((less) => printed(output, finished(tile.begin) + less, finished(tile.end) - less).length) as [number, number];
    expect(fewest).toBeGreaterThan(0);
    expect(tile.events).toBeGreaterThanOrEqual(fewest);
    expect(tile.events).toBeLessThanOrEqual(most);
    const later = printed(output, off, ended.extent.end + 1n);
    expect(later.length).toBeGreaterThan(0);
    // A thread that had seen that its event is on may have written it only then, as it had to wait for a processor.
    expect(later.filter(({ name }) => name === "server:cache_look").length).toBeLessThanOrEqual(WORKERS);
    expect(later.filter(({ name }) => name === "server:request_end").length).toBeGreaterThan(WORKERS);
    // There were some before.
    expect(truth.some(({ name }) => name === "server:cache_look")).toBe(true);
    await page.close();
    stage.judgeFaults();
  });

  /** The tile of all events that is the first one from a time on, and what it says. */
  async function tileIn(origin: bigint, from: bigint): Promise<{ begin: bigint; end: bigint; events: number; answer: ReturnType<typeof decode> }> {
    const catalogue = await stage.json("catalogue?tracks_from=0&values_from=0");
    const tracks = catalogue.get("tracks").list().map((track) => ({ number: track.get("number").number(), id: track.get("id").text(), group: track.get("group").text(), kind: track.get("kind").text() }));
    const all = tracks.find(({ id }) => id === "all/events");
    const counting = all === undefined ? tracks.filter(({ kind, group }) => kind === "instants" && group === "Events") : [all];
    expect(counting.length).toBeGreaterThan(0);
    const first = (from - origin) >> BigInt(LEVEL);
    const bytes = await (await stage.ask(`tiles?level=${LEVEL}&first=${first}&count=${BUCKETS}&tracks=${counting.map(({ number }) => number).join(",")}`)).arrayBuffer();
    const answer = decode(bytes);
    const begin = origin + (first << BigInt(LEVEL));
    return { begin, end: begin + (BigInt(BUCKETS) << BigInt(LEVEL)), events: answer.tracks.reduce((sum, track) => sum + eventsOf(track), 0), answer };
  }
});
