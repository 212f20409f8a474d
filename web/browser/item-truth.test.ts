// What the panel tells of recorded traces, compared with what the command prints of them.

import { execFileSync } from "node:child_process";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { DEMO, KERNEL, KYMO, SAMPLE, picture, withRecorded } from "./stage.ts";

/** Traces, and from when to when events are looked at, as the command understands it. */
const TRACES = [
  { name: "demo", trace: DEMO, range: ["1795219372.260", "1795219372.270"] },
  { name: "kernel", trace: KERNEL, range: ["1457113582.970", "1457113582.972"] },
] as const;

/** Events that are gone through. */
const STEPS = 12;

/** JSON without what only makes it readable. */
function compact(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_, quoted: string | undefined) => quoted ?? "");
}

withRecorded("an item of %s", TRACES, (stage, { name, trace, range }) => {
  async function open(hash: string): Promise<Page> {
    const page = await stage.visit(hash, { width: 1400 });
    await page.waitForSelector(".badge.good");
    await page.locator(".inspected h2").waitFor();
    return page;
  }

  function printed(...more: string[]): string[] {
    const text = execFileSync(KYMO ?? "", ["print", "--format", "json", ...more, trace], { encoding: "utf8", maxBuffer: 1 << 30 });
    return text.trimEnd().split("\n").map(compact);
  }

  async function told(page: Page): Promise<string> {
    await page.getByRole("button", { name: "Copy all as JSON" }).first().click();
    await page.getByRole("button", { name: "Copied" }).first().waitFor();
    return compact(await page.evaluate(() => navigator.clipboard.readText()));
  }

  const timeOf = (line: string): string => /"time":(\d+)/.exec(line)?.[1] ?? "";

  test("is the event that the command prints, and so are its neighbours there and back", async () => {
    const lines = printed("--begin", range[0], "--end", range[1]);
    const times = [...new Set(lines.map(timeOf))].slice(0, STEPS);
    expect(times.length).toBe(STEPS);
    const page = await open(`#item=${times[0]}~all/events&panels=inspector`);
    for (const [key, list] of [[".", times], [",", [...times].reverse().slice(1)]] as const) {
      for (const time of list) {
        if (key === "," || time !== times[0]) {
          await page.keyboard.press(key);
        }
        await expect.poll(() => rested(page).then(() => new URL(page.url()).hash)).toContain(`item=${time}~all/events`);
        await expect.poll(() => page.locator(".inspected").getAttribute("aria-busy")).toBe("false");
        expect(lines.filter((line) => timeOf(line) === time)).toContain(await told(page));
      }
    }
    await picture(page, `item-truth-${name}`);
    await page.close();
  });

  test.runIf(name === "kernel")("is a thread that runs because a wakeup and a switch say so", async () => {
    const [woken] = printed("--begin", range[0], "--end", range[1], "--event", "sched_wakeup", "--filter", "tid == 2673");
    const wakeup = timeOf(woken ?? "");
    const page = await open(`#item=${wakeup}~wakeups/0&panels=inspector`);
    await page.locator(".inspected h2", { hasText: "wakes multithread (2673)" }).waitFor();
    const { runs, woken: since } = JSON.parse(await told(page)) as Record<string, string>;
    expect(since).toBe(wakeup);
    const [ran] = printed("--begin", range[0], "--end", range[1], "--event", "sched_switch", "--filter", "next_tid == 2673").filter((line) => BigInt(timeOf(line)) >= BigInt(wakeup));
    expect(runs).toBe(timeOf(ran ?? ""));
    await page.keyboard.press("]");
    await expect.poll(() => rested(page).then(() => new URL(page.url()).hash)).toContain(`item=${runs}~thread/0/2673/state`);
    await page.locator(".inspected h2", { hasText: /^running$/ }).waitFor();
    await page.keyboard.press("[");
    await page.locator(".inspected h2", { hasText: "wakes multithread (2673)" }).waitFor();
    await page.close();
  });
});

withRecorded("a duration of %s", [{ name: "the sample", trace: SAMPLE }] as const, (stage) => {
  test("has all fields of the events at its ends, on a pinned row, too", async () => {
    const lines = execFileSync(KYMO ?? "", ["print", "--format", "json", "--event", "kymo:rpc_*", "--filter", "$ctx.vtid == 21327", SAMPLE], { encoding: "utf8", maxBuffer: 1 << 30 }).trimEnd().split("\n");
    const told = lines.map((line) => JSON.parse(line.replace(/("time": ?)(\d+)/, '$1"$2"').replace(/("id": ?)(\d{6,})/, '$1"$2"')) as { time: string; event: string; payload: { id: string } });
    const begin = told.find(({ event }) => event === "kymo:rpc_dispatch");
    const end = told.find(({ event, payload }) => event === "kymo:rpc_reply" && payload.id === begin?.payload.id);
    const track = "thread/0/21327/slices/0";
    const page = await stage.visit(`#item=${begin?.time}~${track}&panels=inspector&pin=${track}`, { width: 1400 });
    for (const [title, event, hex] of [["At its begin", "kymo:rpc_dispatch", begin?.payload.id], ["At its end", "kymo:rpc_reply", end?.payload.id]] as const) {
      const section = page.locator(".ends", { has: page.getByRole("heading", { name: `${title}: ${event}` }) });
      await section.locator("tr", { hasText: `0x${BigInt(hex ?? 0).toString(16)}` }).waitFor();
      await section.locator("tr", { hasText: "page" }).first().waitFor();
      await section.locator("tr", { hasText: "server" }).first().waitFor();
    }
    await picture(page, "item-ends");
    // A click on the event goes there.
    await page.getByRole("button", { name: "kymo:rpc_reply" }).click();
    await page.locator(".inspected h2", { hasText: "kymo:rpc_reply" }).waitFor();
    await page.close();
  });
});
