// The list of events in a browser, as a person uses it: with a server that always says the same, and with traces that were recorded.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { BEGIN, SPAN, TOLD } from "./invented.ts";
import { complete, DEMO, KERNEL, KYMO, picture, withInvented, withRecorded, type Opened } from "./stage.ts";

/** The cells of the rows on the screen. */
function rowsOf(page: Page): Promise<string[][]> {
  return page.$$eval(".event-body .event-row", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));
}

/** As the list writes the time of an event: since the begin. */
function timeText(time: bigint): string {
  const since = time - BEGIN;
  return `${since / 1_000_000_000n}.${(since % 1_000_000_000n).toString().padStart(9, "0").replace(/(\d{3})(?=\d)/g, "$1\u202f")} s`;
}

/** What is saved when something is done. */
async function savedBy(page: Page, act: () => Promise<void>): Promise<{ name: string; bytes: Buffer }> {
  const waiting = page.waitForEvent("download");
  await act();
  const download = await waiting;
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

withInvented("the list of events", (stage) => {
  /** A page whose list has rows, and the focus. */
  async function listed(hash = "", options: Opened = {}): Promise<Page> {
    const page = await stage.visit(hash, options);
    await page.waitForSelector(".badge.good");
    await page.keyboard.press("Alt+1");
    await page.waitForSelector(".event-body .event-row");
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("grid");
    return page;
  }

  /** Waits until the first row on the screen is that one of all events. */
  async function topIs(page: Page, index: number): Promise<void> {
    await expect.poll(async () => (await rowsOf(page))[0]?.[0]).toBe(timeText(TOLD[index]?.time ?? 0n));
  }

  function current(page: Page): Promise<string | null> {
    return page.locator(".event-row.current .time").textContent();
  }

  test("shows rows with exact times, and no more of them than there is room for", async () => {
    const page = await listed();
    await topIs(page, 0);
    await expect.poll(async () => (await rowsOf(page))[1]?.[4]).toBe("id=1");
    const rows = await rowsOf(page);
    expect(rows.map((row) => row[0])).toEqual(TOLD.slice(0, rows.length).map((event) => timeText(event.time)));
    expect(rows.map((row) => [row[2], row[3]])).toEqual(TOLD.slice(0, rows.length).map((event) => [event.name, String(event.cpu)]));
    expect(rows.length).toBeLessThan(30);
    expect(await page.locator('[role="grid"]').getAttribute("aria-rowcount")).toBe("-1");
    await expect.poll(() => page.locator(".event-names .event-count").textContent()).toBe(`${TOLD.length.toLocaleString("en")} events`);
    await picture(page, "events-light");
    await page.close();
  });

  test("moves by rows with wheel and keys, and by time with its bar", async () => {
    const page = await listed();
    await page.hover(".event-body");
    await page.mouse.wheel(0, 20 * 1_234);
    await topIs(page, 1_234);
    await page.mouse.wheel(0, -20 * 1_000);
    await topIs(page, 234);
    await page.keyboard.press("End");
    await expect.poll(() => current(page)).toBe(timeText(TOLD.at(-1)?.time ?? 0n));
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => current(page)).toBe(timeText(TOLD.at(-2)?.time ?? 0n));
    await page.keyboard.press("Home");
    await expect.poll(() => current(page)).toBe(timeText(TOLD[0]?.time ?? 0n));
    await page.keyboard.press("PageDown");
    await page.keyboard.press("ArrowDown");
    const room = Math.floor(((await page.locator(".event-body").boundingBox())?.height ?? 0) / 20);
    await expect.poll(() => current(page)).toBe(timeText(TOLD[room + 1]?.time ?? 0n));
    const bar = (await page.locator(".event-bar").boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.click(bar.x + 5, bar.y + bar.height / 2);
    const half = TOLD.findIndex((event) => event.time >= BEGIN + BigInt(SPAN) / 2n);
    await expect
      .poll(async () => {
        const first = (await rowsOf(page))[0]?.[0] ?? "";
        return Math.abs(TOLD.findIndex((event) => timeText(event.time) === first) - half) / TOLD.length;
      })
      .toBeLessThan(0.02);
    await page.close();
  });

  test("and the timeline follow each other, unless somebody ends that", async () => {
    const page = await listed(`#at=${BEGIN + 500_000_000n}~10000000`);
    const windowed = TOLD.findIndex((event) => event.time >= BEGIN + 500_000_000n);
    await topIs(page, windowed);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("End");
    await expect.poll(() => current(page)).toBe(timeText(TOLD.at(-1)?.time ?? 0n));
    await rested(page);
    const [, begin = "0", span = "0"] = /at=(\d+)~(\d+)/.exec(page.url()) ?? [];
    const last = TOLD.at(-1)?.time ?? 0n;
    expect(BigInt(begin) <= last && last < BigInt(begin) + BigInt(span)).toBe(true);
    expect(span).toBe("10000000");
    // Another window, and the list is there; a click, and the row below it is the current one.
    await page.keyboard.press("Backspace");
    await topIs(page, windowed);
    const area = (await page.locator(".area").boundingBox()) ?? { x: 0, y: 0, width: 1, height: 0 };
    await page.mouse.click(area.x + area.width / 2, area.y + 60);
    const clicked = BEGIN + 500_000_000n + (10_000_000n * BigInt(Math.floor(area.width / 2))) / BigInt(Math.round(area.width));
    await expect.poll(() => current(page)).toBe(timeText(TOLD.find((event) => event.time >= clicked)?.time ?? 0n));
    await page.getByRole("button", { name: "Sync" }).click();
    const before = await current(page);
    await page.keyboard.press("Home");
    await rested(page);
    await page.mouse.click(area.x + 20, area.y + 60);
    await rested(page);
    expect(await current(page)).toBe(before);
    await page.close();
  });

  test("finds matches forwards and back, says how many there are, and what is wrong with an expression", async () => {
    const page = await listed();
    // Also where the timeline has the keys, as after Q.
    await page.keyboard.press("q");
    await page.waitForSelector(".drawer", { state: "detached" });
    await page.keyboard.press("q");
    await page.waitForSelector(".event-body .event-row");
    await page.keyboard.press("Control+f");
    // What may come is offered, and taken by Tab.
    await page.keyboard.type("cpu");
    await page.locator('.event-find [role="option"]', { hasText: "cpu_id" }).first().waitFor();
    while ((await page.locator('.event-find [aria-selected="true"] .mono').textContent()) !== "cpu_id") {
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Tab");
    await page.keyboard.type(" == 3 && id < 5000");
    expect(await page.locator(".event-find input").inputValue()).toBe("cpu_id == 3 && id < 5000");
    const matches = TOLD.filter((event) => event.cpu === 3 && (event["id"] as bigint) < 5_000n);
    await expect.poll(() => page.locator(".event-find .event-count").textContent()).toBe(`${matches.length.toLocaleString("en")} match`);
    await page.keyboard.press("Enter");
    await expect.poll(() => current(page)).toBe(timeText(matches[0]?.time ?? 0n));
    await page.keyboard.press("F3");
    await expect.poll(() => current(page)).toBe(timeText(matches[1]?.time ?? 0n));
    await page.locator(".event-grid").focus();
    await page.keyboard.press("F3");
    await expect.poll(() => current(page)).toBe(timeText(matches[2]?.time ?? 0n));
    await page.keyboard.press("Shift+F3");
    await expect.poll(() => current(page)).toBe(timeText(matches[1]?.time ?? 0n));
    await page.locator(".event-find input").fill("cpu_id == 99");
    await expect.poll(() => page.locator(".event-find .event-count").textContent()).toBe("no event matches");
    const asked = page.waitForResponse((response) => /\/events\?.*cpu_id/.test(decodeURIComponent(response.url())));
    await page.locator(".event-find input").press("Enter");
    await asked;
    await expect.poll(() => page.locator(".event-find .event-count").textContent()).toBe("no event matches");
    await page.locator(".event-find input").fill("cpu_id == 3 && idd < 5");
    await expect.poll(() => page.locator("#event-problem").textContent()).toContain("no class of events has `idd`");
    expect(await page.locator("#event-problem mark").textContent()).toBe("idd < 5");
    await picture(page, "events-problem");
    await page.close();
  });

  test("lists events of some names, and says when there are none", async () => {
    const page = await listed();
    const names = page.locator(".event-names input");
    await names.fill("sched_*");
    await names.press("Enter");
    const named = TOLD.filter((event) => event.name.startsWith("sched_"));
    await expect.poll(() => page.locator(".event-names .event-count").textContent()).toBe(`${named.length.toLocaleString("en")} events`);
    await expect.poll(async () => (await rowsOf(page)).every((row) => row[2]?.startsWith("sched_"))).toBe(true);
    await names.fill("sched_switch");
    await names.press("Enter");
    await expect.poll(() => page.locator(".event-head").textContent()).toBe("TimeΔCPUidtext");
    await names.fill("nobody");
    await names.press("Enter");
    await expect.poll(() => page.locator(".event-words").textContent()).toContain("No event has a name like `nobody`.");
    stage.expectFaults(/status of 400/);
    await page.close();
  });

  test("shows the same again from the URL: after a reload, and after somebody was elsewhere", async () => {
    const page = await listed(`#at=${BEGIN + 500_000_000n}~10000000`);
    await page.locator(".event-names input").fill("sched_*");
    await page.locator(".event-names input").press("Enter");
    await page.locator(".event-columns").fill("id");
    await page.locator(".event-columns").press("Enter");
    await expect.poll(() => page.locator(".event-head").textContent()).toBe("TimeΔEventCPUidFields");
    await page.locator(".event-find input").fill("cpu_id == 3");
    await page.locator(".event-find input").press("Enter");
    await expect.poll(async () => (await page.locator(".event-row.current .cpu").textContent())).toBe("3");
    await page.locator(".event-grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.mouse.move(5, 5);
    const again = async (): Promise<void> => {
      await rested(page);
      const [shown, marked, hash] = [await rowsOf(page), await current(page), new URL(page.url()).hash];
      await page.reload();
      await expect.poll(() => rowsOf(page)).toEqual(shown);
      await expect.poll(() => current(page)).toBe(marked);
      expect(await page.locator(".event-find input").inputValue()).toBe("cpu_id == 3");
      await rested(page);
      expect(new URL(page.url()).hash).toBe(hash);
      await page.goto("about:blank");
      await page.goBack();
      await expect.poll(() => rowsOf(page)).toEqual(shown);
      await expect.poll(() => current(page)).toBe(marked);
    };
    expect(new URL(page.url()).hash).not.toContain("sync");
    await again();
    // Another row, elsewhere on the screen; and no row at all, of a list that goes its own way.
    await page.locator(".event-body .event-row").nth(2).click();
    await again();
    await page.getByRole("button", { name: "Sync" }).click();
    await page.hover(".event-body");
    await page.mouse.wheel(0, 20 * 300);
    await rested(page);
    expect(new URL(page.url()).hash).toContain("sync=off");
    const shown = await rowsOf(page);
    await page.goto(page.url().replace(/&row=[^&]*/, "").replace("&sync=off", "&sync=off&top=" + (BEGIN + 600_000_000n)));
    await page.reload();
    await expect.poll(async () => (await rowsOf(page))[0]?.[0]).toBe(timeText(TOLD.find((event) => event.time >= BEGIN + 600_000_000n && event.name.startsWith("sched_"))?.time ?? 0n));
    expect(await rowsOf(page)).not.toEqual(shown);
    await page.close();
  });

  test("copies what is chosen, as a table, as CSV and as JSON", async () => {
    const page = await listed();
    await page.locator(".event-body .event-row").nth(1).click();
    await page.keyboard.press("Shift+ArrowDown");
    await page.keyboard.press("Shift+ArrowDown");
    await expect.poll(() => page.locator('.event-row[aria-selected="true"]').count()).toBe(3);
    const clipboard = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
    await page.getByRole("button", { name: "Copy CSV" }).click();
    await expect.poll(() => page.locator(".event-note").textContent()).toBe("3 rows copied as CSV.");
    const lines = TOLD.slice(1, 4).map((event) => `${event.time},${event.name},${event.cpu},id=${String(event["id"])}`);
    expect((await clipboard()).trimEnd().split(/\r?\n/)).toEqual(["time_ns,event,cpu,fields", ...lines]);
    await page.getByRole("button", { name: "Copy JSON" }).click();
    await expect.poll(() => page.locator(".event-note").textContent()).toBe("3 rows copied as JSON lines.");
    expect((await clipboard()).split("\n")[0]).toBe(`{"time_ns":${TOLD[1]?.time},"name":"${TOLD[1]?.name}","cpu_id":${TOLD[1]?.cpu},"id":1}`);
    await page.locator(".event-grid").focus();
    await page.keyboard.press("Control+c");
    await expect.poll(() => page.locator(".event-note").textContent()).toBe("3 rows copied as text.");
    expect((await clipboard()).split("\n").length).toBe(5);
    await page.close();
  });

  test("saves what is listed: all of it, or what is in the window", async () => {
    const page = await listed(`#at=${BEGIN + 500_000_000n}~10000000`);
    await page.getByRole("button", { name: "Save…" }).click();
    expect(await page.locator(".event-save").textContent()).toContain("1,000,000 rows at most");
    const all = await savedBy(page, () => page.locator(".event-save").getByRole("button", { name: "CSV" }).click());
    expect(all.name).toBe("invented-events.csv");
    const lines = all.bytes.toString().trimEnd().split("\r\n");
    expect(lines.length).toBe(TOLD.length + 1);
    expect(lines.at(-1)).toBe(`${TOLD.at(-1)?.time},${TOLD.at(-1)?.name},${TOLD.at(-1)?.cpu},id=${TOLD.length - 1}`);
    await expect.poll(() => page.locator(".event-note").textContent()).toBe(`${TOLD.length.toLocaleString("en")} rows saved as CSV.`);
    await page.getByRole("button", { name: "Save…" }).click();
    await page.locator(".event-save select").selectOption("window");
    const part = await savedBy(page, () => page.locator(".event-save").getByRole("button", { name: "JSON lines" }).click());
    const inside = TOLD.filter((event) => event.time >= BEGIN + 500_000_000n && event.time < BEGIN + 510_000_000n);
    expect(part.bytes.toString().trimEnd().split("\n").map((line) => /"time_ns":(\d+)/.exec(line)?.[1])).toEqual(inside.map((event) => String(event.time)));
    await page.close();
  });

  test("the timeline is saved as PNG by a key, and as SVG with all names", async () => {
    const page = await stage.visit();
    await complete(page);
    await rested(page);
    const png = await savedBy(page, () => page.keyboard.press("Control+Shift+S"));
    expect([png.name, png.bytes.subarray(1, 4).toString()]).toEqual(["invented-timeline.png", "PNG"]);
    // Its size stands behind the name of its first part.
    const [width, height] = [png.bytes.readUInt32BE(16), png.bytes.readUInt32BE(20)];
    const timeline = (await page.locator(".timeline").boundingBox()) ?? { width: 0, height: 0 };
    expect([width <= timeline.width && width > timeline.width - 40, Math.abs(height - timeline.height) <= 2]).toEqual([true, true]);
    await page.locator(".image-menu summary").click();
    const svg = await savedBy(page, () => page.getByRole("button", { name: "SVG" }).click());
    expect(svg.name).toBe("invented-timeline.svg");
    const drawn = await stage.browser.newPage({ viewport: { width, height } });
    await drawn.setContent(svg.bytes.toString());
    const texts = await drawn.locator("svg text").allTextContents();
    expect(texts).toEqual(expect.arrayContaining(["invented", "CPU 2", "0.5 s"]));
    const size = await drawn.locator("svg").first().boundingBox();
    expect([size?.width, size?.height]).toEqual([width, height]);
    expect(await drawn.locator("svg path").count()).toBeGreaterThan(20);
    await drawn.close();
    await page.close();
  });

  test("fits narrow screens, in the dark", async () => {
    const page = await listed("", { width: 420, height: 900, colorScheme: "dark" });
    await page.keyboard.press("ArrowDown");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(420);
    const grid = await page.locator(".event-grid").boundingBox();
    expect(grid !== null && grid.height > 60 && grid.x + grid.width <= 420).toBe(true);
    await picture(page, "events-narrow-dark");
    await page.close();
  });
});

const TRACES = [
  { name: "demo", trace: DEMO, expression: "queue_depth > 2" },
  { name: "kernel", trace: KERNEL, expression: "next_tid == 4297" },
];

interface Printed {
  readonly time: number;
  readonly event: string;
  readonly payload: object;
}

withRecorded("the list of %s", TRACES, (stage, { name, trace, expression }) => {
  function printed(...more: string[]): string[] {
    const text = execFileSync(KYMO ?? "", ["print", "--format", "json", ...more, trace], { encoding: "utf8", maxBuffer: 1 << 30 });
    return text.trimEnd().split("\n");
  }

  test("says what the command prints, from the first event to the last, and finds what it finds", async () => {
    const page = await stage.visit();
    await page.waitForSelector(".badge.good");
    await page.keyboard.press("Alt+1");
    await page.waitForSelector(".event-body .event-row");
    await page.getByRole("button", { name: "Save…" }).click();
    const saved = await savedBy(page, () => page.locator(".event-save").getByRole("button", { name: "JSON lines" }).click());
    const rows = saved.bytes.toString().trimEnd().split("\n");
    const events = printed();
    expect(rows.length).toBe(events.length);
    const timeAndName = (text: string, time: RegExp, event: RegExp): string => `${time.exec(text)?.[1]} ${event.exec(text)?.[1]}`;
    expect(rows.map((row) => timeAndName(row, /"time_ns":(\d+)/, /"name":"([^"]*)"/))).toEqual(events.map((event) => timeAndName(event, /"time":(\d+)/, /"event":"([^"]*)"/)));
    // All plain numbers and texts of the first thousand.
    for (const [index, event] of events.slice(0, 1_000).entries()) {
      const row = JSON.parse(rows[index] ?? "") as Record<string, unknown>;
      for (const [field, value] of Object.entries((JSON.parse(event) as Printed).payload)) {
        if (typeof value === "string" || typeof value === "number") {
          expect(row[`payload.${field}`] ?? row[field]).toBe(value);
        }
      }
    }
    const found = printed("--filter", expression);
    await page.locator(".event-find input").fill(expression);
    await expect.poll(() => page.locator(".event-find .event-count").textContent()).toBe(`${found.length.toLocaleString("en")} match`);
    await page.locator(".event-find input").press("Enter");
    await page.waitForSelector(".event-row.current");
    await page.locator(".event-grid").focus();
    await page.keyboard.press("F3");
    await expect
      .poll(async () => {
        await page.keyboard.press("Control+c");
        await page.getByRole("button", { name: "Copy JSON" }).click();
        const text = await page.evaluate(() => navigator.clipboard.readText());
        return /"time_ns":(\d+)/.exec(text)?.[1];
      })
      .toBe(/"time":(\d+)/.exec(found[1] ?? "")?.[1]);
    await picture(page, `events-${name}`);
    await page.close();
  });
});
