// Statistics and latencies in a browser, as a person uses them: with a server that always says the same, and with traces that were recorded.

import { execFileSync } from "node:child_process";
import type { Locator, Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { BEGIN, SPAN } from "./invented.ts";
import { INVENTED_CALLS } from "./office.ts";
import { DEMO, KERNEL, KYMO, picture, withInvented, withRecorded, type Opened } from "./stage.ts";

/** Cells of the rows that there are. */
function rowsOf(page: Page): Promise<string[][]> {
  return page.$$eval(".grid-body .grid-row", (rows) => rows.map((row) => [...row.children].map((cell) => (cell.textContent ?? "").replaceAll("\u202f", " "))));
}

/** What a button takes into the clipboard. */
async function copied(page: Page, name: string): Promise<string> {
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await page.getByRole("button", { name }).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).not.toBe("");
  return page.evaluate(() => navigator.clipboard.readText());
}

/** A part of the URL. */
function partOf(page: Page, name: string): string | null {
  return new URLSearchParams(new URL(page.url()).hash.slice(1)).get(name);
}

/** Drags across a chart, from one part of its width and height to another. */
async function dragged(page: Page, chart: Locator, from: readonly [number, number], to: readonly [number, number]): Promise<void> {
  const box = (await chart.locator(".u-over").boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.mouse.move(box.x + box.width * from[0], box.y + box.height * from[1]);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to[0], box.y + box.height * to[1], { steps: 4 });
  await page.mouse.up();
}

withInvented("analyses", (stage) => {
  beforeEach(() => stage.server.office.clear());

  async function open(hash: string, options: Opened = {}): Promise<Page> {
    const page = await stage.visit(hash, { height: 900, ...options });
    await page.waitForSelector(".badge.good");
    return page;
  }

  const CALLS = "#panels=drawer.statistics.420&stats=syscalls.slowest";
  const LATENCY = "#panels=drawer.latency.480&latency=syscalls";
  const slowest = [...INVENTED_CALLS].sort((one, other) => other.took - one.took);

  test.each([
    [1280, 800, true],
    [1024, 700, false],
    [1680, 1050, true],
  ])("of latencies rows and charts are seen as soon as the panel is open, in a window of %d × %d", async (width, height, isBeside) => {
    const page = await open("#latency=syscalls", { width, height });
    await page.keyboard.press("Alt+2");
    await page.waitForSelector(".plot canvas");
    await page.waitForSelector(".grid-body .grid-row");
    await picture(page, `latencies-${width}`);
    const bottom = await page.locator(".drawer").evaluate((drawer) => drawer.getBoundingClientRect().bottom);
    const seen = await page.$$eval(".grid-body .grid-row", (rows, end) => rows.filter((row) => row.getBoundingClientRect().bottom <= end).length, bottom);
    expect(seen).toBeGreaterThan(2);
    const [chart, table] = [await page.locator(".plot").first().boundingBox(), await page.locator(".grid").boundingBox()];
    expect((table?.x ?? 0) > (chart?.x ?? 0) + (chart?.width ?? 0)).toBe(isBeside);
    // It is no part of the URL until somebody has sized it.
    expect(partOf(page, "panels")).toBe("drawer.latency");
    const size = Number(await page.locator(".drawer .edge").getAttribute("aria-valuenow"));
    expect(size).toBe(Math.max(320, Math.round(height * 0.44)));
    await page.locator(".drawer .edge").press("ArrowUp");
    await expect.poll(() => partOf(page, "panels")).toBe(`drawer.latency.${size + 16}`);
    await page.close();
  });

  test("say how far they are, are cancelled, and asked again", async () => {
    stage.server.office.isHeld = true;
    const page = await open("");
    await page.keyboard.press("Alt+3");
    await expect.poll(() => page.locator(".job").textContent()).toBe("25 % read, 3.0 s leftCancel");
    await picture(page, "analyses-progress");
    await page.getByRole("button", { name: "Cancel" }).click();
    await expect.poll(() => page.locator(".job").textContent()).toContain("This was cancelled.");
    await expect.poll(() => stage.server.office.asked).toContain("DELETE jobs/1");
    stage.server.office.isHeld = false;
    await page.getByRole("button", { name: "Ask again" }).click();
    await expect.poll(() => rowsOf(page)).toEqual([["sched_switch", "5 000"]]);
    await page.close();
  });

  test("are let go of when nobody looks at them any more", async () => {
    stage.server.office.isHeld = true;
    const page = await open("#panels=drawer.statistics");
    await page.waitForSelector(".job progress");
    await page.keyboard.press("Alt+1");
    await expect.poll(() => stage.server.office.asked).toContain("DELETE jobs/1");
    await page.close();
  });

  test("that have failed say why, and what to do", async () => {
    const page = await open("#panels=drawer.statistics&stats=cpu");
    await expect.poll(() => page.locator(".job.bad").textContent()).toMatch(/^No event of these traces has the role `thread_switch`\. Choose another analysis, .*Ask again$/);
    await page.close();
  });

  test("are tables of any length, of which only what is on the screen exists", async () => {
    const page = await open(CALLS);
    await expect.poll(async () => (await rowsOf(page))[0]?.[1]).toBe("5.000 000 ms");
    expect((await rowsOf(page)).length).toBeLessThan(60);
    // Calls that took long are no course: they overlap, and most of all are missing.
    expect(await page.locator(".chart").count()).toBe(0);
    expect(await page.locator(".grid").getAttribute("aria-rowcount")).toBe("1001");
    await page.locator(".grid").focus();
    await page.keyboard.press("End");
    await expect.poll(async () => (await rowsOf(page)).at(-1)?.[1]).toBe("4.001 000 ms");
    await page.getByRole("columnheader", { name: "Duration" }).getByRole("button").click();
    await page.getByRole("columnheader", { name: "Duration" }).getByRole("button").click();
    await expect.poll(async () => (await rowsOf(page))[0]?.[1]).toBe("4.001 000 ms");
    await page.getByLabel("Column to search in").selectOption("Duration");
    await page.getByLabel("Rows that have").fill("4.5ms..4.502ms");
    await expect.poll(async () => (await rowsOf(page)).map((row) => row[1])).toEqual(["4.500 000 ms", "4.501 000 ms", "4.502 000 ms"]);
    const lines = [...slowest].reverse().filter(({ took }) => took >= 4_500_000 && took <= 4_502_000);
    expect(await copied(page, "Copy CSV")).toBe(["time_begin,time_end,duration,thread,thread_pid,thread_tid,syscall", ...lines.map(({ begin, took, thread, name }) => `${begin},${begin + BigInt(took)},${took},${thread},1,2,${name}`), ""].join("\r\n"));
    await picture(page, "analyses-table");
    await page.close();
  });

  test("lead to the timeline, by the mouse and by keys", async () => {
    const page = await open(CALLS);
    await page.locator(".grid-body .grid-row .link").first().click();
    const [first, second] = slowest;
    await expect.poll(() => partOf(page, "selected")).toBe(`${first?.begin}~${first?.took}`);
    expect(partOf(page, "at")).toBe(`${(first?.begin ?? 0n) - 2_500_000n}~10000000`);
    await page.locator(".grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect.poll(() => partOf(page, "selected")).toBe(`${second?.begin}~${second?.took}`);
    await page.close();
  });

  test("are about what is selected, with a summary, and follow it", async () => {
    const page = await open("#panels=drawer.statistics.400&stats=syscalls.per-syscall&scope=selection");
    await expect.poll(() => page.locator(".job").textContent()).toContain("Nothing is selected");
    const area = (await page.locator(".area").boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(area.x + area.width / 4, area.y + 60);
    await page.mouse.down();
    await page.mouse.move(area.x + area.width / 2, area.y + 60, { steps: 4 });
    await page.mouse.up();
    // The URL follows once the drag rests.
    await expect.poll(() => Number((partOf(page, "selected") ?? "0~0").split("~")[1]) / SPAN).toBeCloseTo(0.25, 2);
    const [begin = 0n, span = 0n] = (partOf(page, "selected") ?? "0~0").split("~").map(BigInt);
    const inside = INVENTED_CALLS.filter((call) => call.begin >= begin && call.begin < begin + span);
    expect(inside.length).toBeGreaterThan(1_000);
    await expect.poll(async () => (await rowsOf(page)).reduce((sum, row) => sum + Number(row[1]?.replaceAll(" ", "")), 0)).toBe(inside.length);
    const cards = page.locator(".card");
    await expect.poll(async () => (await cards.first().textContent())?.replaceAll("\u202f", "")).toBe(`Events ${inside.length} events sched_switch ${inside.length}`);
    await expect.poll(() => cards.nth(1).textContent()).toBe("CPUs – these traces do not tell");
    await expect.poll(async () => (await cards.nth(2).textContent())?.replaceAll("\u202f", "")).toContain(`System calls ${inside.length} calls`);
    await picture(page, "analyses-selection");
    await page.getByRole("radio", { name: "Window" }).click();
    await expect.poll(async () => (await rowsOf(page)).reduce((sum, row) => sum + Number(row[1]?.replaceAll(" ", "")), 0)).toBe(INVENTED_CALLS.length);
    await page.keyboard.press("w");
    await expect.poll(() => partOf(page, "at")).not.toBeNull();
    const [from = 0n, length = 0n] = (partOf(page, "at") ?? "0~0").split("~").map(BigInt);
    const seen = INVENTED_CALLS.filter((call) => call.begin >= from && call.begin < from + length).length;
    await expect.poll(async () => (await rowsOf(page)).reduce((sum, row) => sum + Number(row[1]?.replaceAll(" ", "")), 0)).toBe(seen);
    expect(seen).toBeLessThan(INVENTED_CALLS.length);
    await page.close();
  });

  test("show latencies in linked views: durations that are brushed are asked for, times are selected, rows are shown", async () => {
    const page = await open(LATENCY);
    const [scatter, density] = [page.locator(".chart").nth(0), page.locator(".chart").nth(1)];
    await expect.poll(async () => (await scatter.locator("figcaption").textContent())?.replaceAll("\u202f", " ")).toBe("System calls the longest 1 000 of 5 000, by when they began");
    expect((await density.locator(".plot").getAttribute("aria-label"))?.replaceAll("\u202f", " ")).toMatch(/^How long system calls took: 5 000 in all; 50 % .* ms, 90 % .* ms/);
    await picture(page, "analyses-latency");
    await dragged(page, scatter, [0.25, 0.5], [0.5, 0.55]);
    const selected = (): number[] => (partOf(page, "selected") ?? "0~0").split("~").map((text, index) => Number(BigInt(text) - (index === 0 ? BEGIN : 0n)) / SPAN);
    await expect.poll(() => selected()[0]).toBeCloseTo(0.25, 1);
    await expect.poll(() => selected()[1]).toBeCloseTo(0.25, 1);
    await page.getByRole("button", { name: "Show the selection" }).click();
    await expect.poll(() => partOf(page, "at")).toBe(partOf(page, "selected"));
    // None of the first fifth of the density is among the longest thousand.
    await dragged(page, density, [0.02, 0.5], [0.3, 0.5]);
    await expect.poll(() => stage.server.office.asked.some((line) => line.includes('"max_ns"'))).toBe(true);
    const [, most = "", least = ""] = /"max_ns":(\d+),"min_ns":(\d+)/.exec(stage.server.office.asked.find((line) => line.includes('"max_ns"')) ?? "") ?? [];
    const between = slowest.filter(({ took }) => took >= Number(least) && took <= Number(most));
    expect(between.length).toBeGreaterThan(3);
    const csv = async (): Promise<number[]> => (await copied(page, "Copy CSV")).trim().split("\r\n").slice(1).map((line) => Number(line.split(",")[2]));
    await expect.poll(csv).toEqual(between.map(({ took }) => took));
    const [longest] = between;
    await page.locator(".grid-body .grid-row").first().click();
    await expect.poll(() => partOf(page, "selected")).toBe(`${longest?.begin}~${longest?.took}`);
    await page.getByRole("button", { name: "All durations" }).click();
    await expect.poll(csv).toEqual(slowest.slice(0, 1_000).map(({ took }) => took));
    await page.close();
  });

  test("show of latencies one group, all of it, chosen from the statistics", async () => {
    const page = await open(LATENCY);
    await page.waitForSelector(".grid-body .grid-row");
    await page.getByLabel("Table").selectOption("System calls");
    await page.locator(".grid-body .grid-row", { hasText: "poll" }).click();
    await expect.poll(() => page.locator(".grid-row.current").textContent()).toContain("poll");
    await page.getByLabel("Table").selectOption("Slowest system calls");
    // A quarter of the thousand longest would be that, and 1000 of 1250 are asked for.
    const polls = slowest.filter(({ name }) => name === "poll");
    await expect.poll(() => page.locator(".grid").getAttribute("aria-rowcount")).toBe("1001");
    await expect.poll(async () => (await copied(page, "Copy CSV")).trim().split("\r\n").slice(1).map((line) => Number(line.split(",")[2]))).toEqual(polls.slice(0, 1_000).map(({ took }) => took));
    const [scatter, density] = [page.locator(".chart").nth(0), page.locator(".chart").nth(1)];
    await expect.poll(async () => (await scatter.locator("figcaption").textContent())?.replaceAll("\u202f", " ")).toBe("System calls the longest 1 000 of 1 250, by when they began");
    expect((await density.locator(".plot").getAttribute("aria-label"))?.replaceAll("\u202f", " ")).toContain("1 250 in all");
    await page.getByRole("button", { name: "poll ×" }).click();
    await expect.poll(async () => new Set((await rowsOf(page)).map((row) => row[3])).size).toBe(4);
    await page.close();
  });

  test("show the same again from the URL: after a reload, and after somebody was elsewhere", async () => {
    const again = async (page: Page): Promise<void> => {
      const [shown, hash] = [await rowsOf(page), new URL(page.url()).hash];
      const tools = (): Promise<string[]> => page.$$eval(".analysis select, .analysis input, .analysis [aria-checked]", (all) => all.map((one) => ("value" in one && one.value !== "" ? String(one.value) : (one.getAttribute("aria-checked") ?? ""))));
      const before = await tools();
      await page.reload();
      await expect.poll(() => rowsOf(page)).toEqual(shown);
      expect([await tools(), new URL(page.url()).hash]).toEqual([before, hash]);
      await page.goto("about:blank");
      await page.goBack();
      await expect.poll(() => rowsOf(page)).toEqual(shown);
      expect(await tools()).toEqual(before);
    };
    const page = await open(CALLS);
    await page.waitForSelector(".grid-body .grid-row");
    await page.getByLabel("Rows of each table at most").selectOption("10000");
    await page.getByRole("columnheader", { name: "Time" }).getByRole("button").click();
    await page.getByLabel("Column to search in").selectOption("Duration");
    await page.getByLabel("Rows that have").fill("< 60us");
    await expect.poll(() => page.locator(".grid").getAttribute("aria-rowcount")).toBe("60");
    await expect.poll(() => [partOf(page, "stats-sort"), partOf(page, "stats-in"), partOf(page, "stats-find"), partOf(page, "stats-rows")]).toEqual(["up.time", "duration", "< 60us", "10000"]);
    await again(page);
    // Latencies of a group, as long as was typed, of a window.
    await page.goto(`${stage.server.url}/${LATENCY}&at=${BEGIN}~${SPAN / 2}&scope=window`);
    await page.waitForSelector(".grid-body .grid-row");
    await page.getByLabel("Table").selectOption("System calls");
    await page.locator(".grid-body .grid-row", { hasText: "futex" }).click();
    await page.getByLabel("From how long to how long").fill("4ms..4.1ms");
    await page.keyboard.press("Enter");
    await page.getByLabel("Table").selectOption("Slowest system calls");
    await page.getByRole("columnheader", { name: "Time" }).getByRole("button").click();
    await expect.poll(() => [partOf(page, "latency-group"), partOf(page, "lasts"), partOf(page, "latency-sort")]).toEqual(["syscall~futex", "4000000-4100000", "up.time"]);
    const inside = INVENTED_CALLS.filter(({ begin, took, name }) => begin < BEGIN + BigInt(SPAN / 2) && name === "futex" && took >= 4_000_000 && took <= 4_100_000);
    await expect.poll(() => page.locator(".grid").getAttribute("aria-rowcount")).toBe(String(inside.length + 1));
    await again(page);
    await page.close();
  });

  test("have a crosshair that keys move, and durations that are typed", async () => {
    const page = await open(LATENCY);
    const density = page.locator(".chart").nth(1);
    await density.locator(".plot").focus();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => density.locator("figcaption .faint").textContent()).toMatch(/^\d+ from 1\.000 µs to 1\.259 µs$/);
    await page.getByLabel("From how long to how long").fill("4.99ms..1s");
    await page.keyboard.press("Enter");
    await expect.poll(async () => (await rowsOf(page)).length).toBe(11);
    await page.close();
  });

  test("fit narrow and sharp screens, dark and light", async () => {
    for (const colorScheme of ["dark", "light"] as const) {
      for (const hash of [CALLS, LATENCY]) {
        const page = await open(hash, { colorScheme, width: 420, ratio: 2 });
        await page.waitForSelector(".grid-body .grid-row");
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(420);
        await picture(page, `analyses-narrow-${hash === CALLS ? "table" : "latency"}-${colorScheme}`);
        await page.close();
      }
    }
  });
});

/** The table that is looked at, and how the command prints the same. */
const TRACES = [
  { name: "demo", trace: DEMO, stats: "pairs.longest", command: ["pairs", "--table", "longest"] },
  { name: "kernel", trace: KERNEL, stats: "syscalls.per-syscall", command: ["syscalls", "--table", "per-syscall"] },
];

withRecorded("analyses of %s", TRACES, (stage, { name, trace, stats, command }) => {
  async function open(hash: string): Promise<Page> {
    const page = await stage.visit(hash, { width: 1600, height: 900 });
    await page.waitForSelector(".badge.good");
    return page;
  }

  const printed = (...more: readonly string[]): string => execFileSync(KYMO ?? "", [...more, "--csv", "--top", "1000", trace], { encoding: "utf8" });

  test("are what the command prints, and latencies have all their views", async () => {
    const page = await open(`#panels=drawer.statistics.420&stats=${stats}`);
    await page.waitForSelector(".grid-body .grid-row");
    expect(await copied(page, "Copy CSV")).toBe(printed(...command));
    await picture(page, `analyses-${name}-statistics`);
    await page.keyboard.press("Alt+2");
    await expect.poll(() => page.locator(".chart").count()).toBe(2);
    await page.locator(".grid-body .grid-row").first().click();
    await expect.poll(() => partOf(page, "selected")).not.toBeNull();
    await picture(page, `analyses-${name}-latency`);
    const presets = await page.getByRole("radiogroup", { name: "Latency of" }).getByRole("radio").allTextContents();
    // Names of events are known once some of them were seen: of what is told by these there may be more.
    expect(presets.filter((title) => title !== "Raise to softirq")).toEqual(name === "demo" ? ["Pairs"] : ["System calls", "Wake-up", "Wake-up by thread", "Interrupts"]);
    await page.close();
  });

  test.runIf(name === "demo")("break operations down into their steps, once their events and their key are said", async () => {
    const page = await open("#panels=drawer.latency.480&latency=steps");
    const csv = async (): Promise<string> => copied(page, "Copy CSV");
    // Without a word it asks for Barrelfish's operations.
    await expect.poll(() => page.locator(".job").textContent()).toContain("capops");
    await page.getByLabel("begin", { exact: true }).fill("jobs:begin");
    await page.getByLabel("begin", { exact: true }).press("Enter");
    await expect.poll(() => page.locator(".job").textContent()).toContain("Say which events begin and end operations");
    await page.getByLabel("end", { exact: true }).fill("jobs:end");
    await page.getByLabel("key", { exact: true }).fill("id");
    await page.getByLabel("key", { exact: true }).press("Enter");
    await expect.poll(() => page.locator(".chart").count()).toBe(2);
    const jobs = ["--start", "jobs:begin", "--stop", "jobs:end", "--key", "id"];
    for (const [title, table] of [["The longest", "longest-operations"], ["Steps", "steps"], ["Steps of the longest", "breakdown"]] as const) {
      await page.getByLabel("Table").selectOption(title);
      await expect.poll(csv).toBe(printed("breakdown", "--table", table, ...jobs));
    }
    await picture(page, "analyses-demo-steps");
    await page.close();
  });

  test.runIf(name === "kernel")("have groups exactly: those of a thread are asked for, of others it is said how many are there", async () => {
    const page = await open("#panels=drawer.latency.480");
    const csv = async (): Promise<string> => copied(page, "Copy CSV");
    await page.getByRole("radio", { name: "Wake-up by thread" }).click();
    await page.locator(".grid-body .grid-row").nth(3).click();
    await expect.poll(() => partOf(page, "latency-group")).not.toBeNull();
    const tid = /^thread\.(\d+)~/.exec(partOf(page, "latency-group") ?? "")?.[1] ?? "";
    await page.getByLabel("Table").selectOption("Longest wakeups");
    await expect.poll(csv).toBe(printed("sched", "--table", "top", "--tid", tid));
    await picture(page, "analyses-kernel-thread");
    await page.getByRole("radio", { name: "System calls" }).click();
    await page.getByLabel("Table").selectOption("System calls");
    await page.locator(".grid-body .grid-row", { hasText: "poll" }).first().click();
    await page.getByLabel("Table").selectOption("Slowest system calls");
    const rows = printed("syscalls", "--table", "per-syscall").split("\r\n").find((line) => line.startsWith("poll,"))?.split(",") ?? [];
    await expect.poll(() => page.locator(".grid").getAttribute("aria-rowcount")).toBe(String(Math.min(1_000, Number(rows[1])) + 1));
    expect(new Set((await csv()).trim().split("\r\n").slice(1).map((line) => line.split(",")[7]))).toEqual(new Set(["poll"]));
    // Nobody can ask for a priority.
    await page.getByRole("radio", { name: "Wake-up", exact: true }).click();
    await page.getByLabel("Table").selectOption("Wakeup to run, by priority");
    await page.locator(".grid-body .grid-row").nth(0).click();
    await page.getByLabel("Table").selectOption("Longest wakeups");
    await expect.poll(async () => (await page.locator(".tools").nth(1).textContent())?.replaceAll("\u202f", " ")).toMatch(/\d+ of [\d ]+ are among the 1 000 longest of all/);
    await page.close();
  });
});
