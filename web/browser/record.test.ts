// The controls of the recorder, as a person uses them: looks how the session is, switches events, tries a filter, takes a snapshot, stops.

import type { Locator, Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { findings } from "./axe.ts";
import { rested } from "./browser.ts";
import { BEGIN } from "./invented.ts";
import { complete, picture, withInvented, type Opened } from "./stage.ts";

const FIRST_NS = 400_000_000;

withInvented("who records", (stage) => {
  beforeEach(() => {
    const { server } = stage;
    [server.live, server.instance] = ["recording", `started ${Math.random()}`];
    server.grown = FIRST_NS;
    server.listing.until = BEGIN + BigInt(FIRST_NS);
    server.recorder.clear();
    server.recorder.isThere = true;
  });

  async function open(options: Opened = {}): Promise<Page> {
    const page = await stage.visit("#panels=rail.record", { height: 900, ...options });
    await complete(page);
    await page.getByRole("checkbox", { name: "Record net:sent" }).waitFor();
    return page;
  }

  /** Half a second more was recorded. */
  function tick(): void {
    stage.server.recorder.tick();
    stage.server.tell();
  }

  const asked = (): unknown => JSON.parse(stage.server.recorder.asked.at(-1) ?? "null");
  const box = (page: Page): Locator => page.getByRole("combobox", { name: "Events by name", exact: true });
  const filter = (page: Page): Locator => page.getByRole("combobox", { name: "Filter of these events" });

  test("is told where there is somebody, and nowhere else", async () => {
    const page = await open();
    const session = page.getByRole("region", { name: "Session", exact: true });
    await expect.poll(() => session.textContent()).toMatch(/server.*recording.*\.\/server 1.*kymo-traces\/server.*1\.5 s.*12,000.*2 running.*310 left out.*none/s);
    for (let step = 0; step < 8; step++) {
      tick();
      await expect.poll(() => session.textContent()).toContain(stage.server.recorder.events.toLocaleString("en"));
    }
    await expect.poll(() => session.getByRole("img").getAttribute("aria-label")).toMatch(/^Events a second over the last minute: .* at most$/);
    expect((await session.locator("polyline").getAttribute("points"))?.split(" ").length).toBe(8);
    stage.server.recorder.lost = { full: 1_234, no_lane: 0, unwritten: 5, undefined: 0 };
    stage.server.recorder.problems = ["lane_7 cannot be written: no space left on device"];
    tick();
    await expect.poll(() => session.textContent()).toMatch(/1,234 found no room in memory.*5 could not be written to the disk.*no space left/s);
    await session.getByRole("button", { name: "Copy the output's path" }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("/home/somebody/kymo-traces/server");
    await picture(page, "record-light");
    await page.close();
    stage.server.recorder.isThere = false;
    const other = await stage.visit("#panels=rail.record");
    await complete(other);
    expect(await other.getByRole("tab").allTextContents()).toEqual(["Tracks", "Filters", "Notes"]);
    await other.close();
  });

  test("switches classes on and off by their boxes, found by name", async () => {
    const page = await open();
    await page.getByLabel("Search events of the session").fill("request");
    await expect.poll(() => page.getByRole("checkbox", { name: /^Record / }).count()).toBe(2);
    await page.getByRole("checkbox", { name: "Record server:request_end" }).uncheck();
    await expect.poll(asked).toEqual({ act: "disable", events: ["server:request_end"] });
    await page.getByLabel("Search events of the session").fill("");
    const wakeup = page.getByRole("checkbox", { name: "Record sched:wakeup" });
    expect(await wakeup.isChecked()).toBe(false);
    await wakeup.focus();
    await page.keyboard.press("Space");
    await expect.poll(asked).toEqual({ act: "enable", events: ["sched:wakeup"], filter: null });
    await expect.poll(() => wakeup.isChecked()).toBe(true);
    await expect.poll(() => page.getByRole("heading", { name: /^Events/ }).textContent()).toBe("Events 6 of 7 on");
    // Arrows go from box to box.
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Record sched:switch");
    // Where the recorder refuses, the box is what it was, and it is said why.
    stage.server.recorder.refusal = "session `server` takes no events any more";
    await page.keyboard.press("Space");
    const alert = page.getByRole("alert").filter({ hasText: "takes no events" });
    await expect.poll(() => alert.textContent()).toBe("Session `server` takes no events any more. Nothing was changed; `kymo status --events` says what programs have.");
    expect(await page.getByRole("checkbox", { name: "Record sched:switch" }).isChecked()).toBe(true);
    await page.close();
    stage.expectFaults(/status of 409/);
  });

  test("switches by patterns and a filter, says what that meant, and what is wrong with it", async () => {
    const page = await open();
    await box(page).fill("net:*");
    await filter(page).fill("port ==");
    await page.keyboard.press("Enter");
    const alert = page.getByRole("alert").filter({ hasText: "expected" });
    await expect.poll(() => alert.textContent()).toBe("Found the end, expected a number\n  port ==\n         ^ Nothing was changed: correct it, and try again.");
    expect(await filter(page).getAttribute("aria-invalid")).toBe("true");
    await picture(page, "record-refused");
    await filter(page).fill("port == 443");
    await page.keyboard.press("Enter");
    await expect.poll(asked).toEqual({ act: "enable", events: ["net:*"], filter: "port == 443" });
    await expect.poll(() => page.locator(".record-matched").textContent()).toBe("2 events of 2 programs are recorded.");
    await expect.poll(() => alert.count()).toBe(0);
    const detailOf = (name: string): Locator => page.locator(".record-class", { hasText: name }).locator(".record-detail");
    await expect.poll(() => detailOf("net:sent").textContent()).toBe("info · 2 programs · port == 443 · native");
    expect(await detailOf("net:sent").getAttribute("title")).toBe("port == 443\nThe filter runs in the program, as machine code");
    // What is there is put into the boxes to be changed; where it runs in the recorder is said, with why.
    await page.getByRole("button", { name: "Edit net:sent" }).click();
    await expect.poll(() => Promise.all([box(page).inputValue(), filter(page).inputValue()])).toEqual(["net:sent", "port == 443"]);
    await box(page).fill("server:*");
    await filter(page).fill("id < 5");
    await page.getByRole("button", { name: "Set filter" }).click();
    await expect.poll(asked).toEqual({ act: "filter", events: ["server:*"], filter: "id < 5" });
    await expect.poll(() => page.locator(".record-note").textContent()).toMatch(/takes no filters/);
    await expect.poll(() => detailOf("server:request_begin").getAttribute("title")).toMatch(/runs in the recorder \(its program was built without filters\)/);
    await picture(page, "record-filtered");
    await filter(page).fill("");
    await page.getByRole("button", { name: "No filter" }).click();
    await expect.poll(asked).toEqual({ act: "filter", events: ["server:*"], filter: null });
    // A name that nobody has: a near one is a click away.
    await box(page).fill("net:snt");
    await page.getByRole("button", { name: "Switch off" }).click();
    await expect.poll(asked).toEqual({ act: "disable", events: ["net:snt"] });
    await expect.poll(() => page.getByRole("region", { name: "Switch events by name" }).textContent()).toContain("No event of a program that runs is called net:snt; there is net:receivednet:sent");
    await page.getByRole("button", { name: "net:sent", exact: true }).click();
    expect(await box(page).inputValue()).toBe("net:sent");
    await page.getByRole("button", { name: "Switch off" }).click();
    await expect.poll(() => page.getByRole("checkbox", { name: "Record net:sent" }).isChecked()).toBe(false);
    await page.close();
    stage.expectFaults(/status of 409/);
  });

  test("tells what is missing without a count among the problems of the traces", async () => {
    const page = await open();
    const badge = page.getByRole("button", { name: "2 findings" });
    expect(await badge.count()).toBe(0);
    [stage.server.recorder.latePrograms, stage.server.recorder.hasGap] = [2, true];
    tick();
    await badge.click();
    const dialog = page.getByRole("dialog", { name: "What is known of the traces, and how well" });
    await expect.poll(() => dialog.textContent()).toMatch(/no recorder ran for a while.*session server.*events of 2 programs from before the recorder found them are not recorded/s);
    await page.close();
  });

  test("offers fields while a filter is written", async () => {
    const page = await open();
    await box(page).fill("net:sent");
    await filter(page).focus();
    await page.keyboard.type("cpu");
    await expect.poll(() => page.getByRole("option").first().textContent()).toContain("cpu_id");
    await page.keyboard.press("Tab");
    expect(await filter(page).inputValue()).toMatch(/cpu_id$/);
    await page.keyboard.type(" == 3");
    // It closes the offers, or leaves the box if there are none.
    await page.keyboard.press("Escape");
    await filter(page).press("Enter");
    await expect.poll(() => page.locator(".record-matched, .record-refusal").count()).toBe(1);
    await page.close();
    // The stand-in knows filters of the plainest kind only.
    stage.faults.length = 0;
  });

  test("takes a snapshot of what is kept in memory, and says where it is", async () => {
    stage.server.recorder.mode = "overwrite";
    const page = await open();
    await page.getByText("Nothing is written before a snapshot.").waitFor();
    await page.getByRole("button", { name: "Snapshot", exact: true }).click();
    await expect.poll(() => page.getByRole("region", { name: "Snapshot and end" }).textContent()).toMatch(/41,234 events written to \/home\/somebody\/kymo-traces\/server\/snapshot-1.*lane_3 was too late/);
    await expect.poll(() => page.getByRole("region", { name: "Session", exact: true }).textContent()).toContain("Snapshots1");
    expect(asked()).toEqual({ act: "snapshot" });
    await page.getByRole("button", { name: "Copy the snapshot's path" }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("/home/somebody/kymo-traces/server/snapshot-1");
    await picture(page, "record-snapshot");
    await page.close();
    stage.server.recorder.mode = "write";
    const other = await open();
    expect(await other.getByRole("button", { name: "Snapshot", exact: true }).count()).toBe(0);
    await other.close();
  });

  test("stops when that is said twice, by keys alone", async () => {
    const page = await open({ colorScheme: "dark" });
    const stop = page.getByRole("button", { name: "Stop recording" });
    await stop.focus();
    await page.keyboard.press("Enter");
    const group = page.getByRole("group", { name: "Stop recording?" });
    await group.waitFor();
    await picture(page, "record-stop-dark");
    await page.keyboard.press("Escape");
    await expect.poll(() => group.count()).toBe(0);
    await expect.poll(() => stop.evaluate((button) => button === document.activeElement)).toBe(true);
    expect(stage.server.recorder.asked).toEqual([]);
    await page.keyboard.press("Enter");
    await group.waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(asked).toEqual({ act: "stop" });
    await page.getByText("The session has ended.").waitFor();
    // There is nothing to switch any more, and what it was stays.
    await expect.poll(() => page.getByRole("checkbox", { name: /^Record / }).count()).toBe(0);
    expect(await page.getByRole("region", { name: "Session", exact: true }).textContent()).toContain("12,000");
    // The traces end with it.
    stage.server.live = "ended";
    stage.server.tell();
    await expect.poll(() => page.locator(".live-chip").textContent()).toBe("ended");
    await page.close();
  });

  test("sets limits of rules", async () => {
    stage.server.recorder.rules = [{ name: "slow", words: "server:request_end over 5ms since server:request_begin by id", limit: "5ms", is_set: false, running_ns: null, kinds: [], kept: 12, let_go: 3444, unknown: 1, forgotten: 0, without: 0, problems: [], why: null }];
    const page = await open();
    const rules = page.getByRole("region", { name: "Rules" });
    await expect.poll(() => rules.textContent()).toMatch(/slow: only server:request_end over 5ms since server:request_begin by id.*kept 12 of 3,456 events, 1 without a known begin/);
    await rules.getByRole("textbox", { name: "Limit of slow" }).fill("20ms");
    await rules.getByRole("button", { name: "Set limit" }).click();
    await expect.poll(asked).toEqual({ act: "limit", rule: "slow", limit: "20ms" });
    await expect.poll(() => rules.textContent()).toContain("limit 20ms");
    await rules.getByRole("button", { name: "Reset slow" }).click();
    await expect.poll(asked).toEqual({ act: "limit", rule: "slow", limit: null });
    await expect.poll(() => rules.getByRole("button", { name: "Reset slow" }).count()).toBe(0);
    await page.close();
  });

  test("starts and stops at events", async () => {
    const page = await open();
    const triggers = page.getByRole("region", { name: "Triggers" });
    expect(await triggers.count()).toBe(0);
    await box(page).fill("server:request_begin");
    await filter(page).fill("id == 7");
    await page.getByRole("checkbox", { name: "each time" }).check();
    await page.getByRole("button", { name: "Start at" }).click();
    await expect.poll(asked).toEqual({ act: "trigger", events: ["server:request_begin"], filter: "id == 7", effect: "start", repeat: true });
    await expect.poll(() => page.locator(".record-matched").textContent()).toBe("1 event of 2 programs fires the trigger.");
    await expect.poll(() => page.getByRole("region", { name: "Session", exact: true }).textContent()).toContain("not recording");
    await expect.poll(() => triggers.textContent()).toMatch(/Start at server:request_begin if id == 7, each time.*armed/);
    await page.getByRole("checkbox", { name: "each time" }).uncheck();
    await box(page).fill("server:request_end");
    await filter(page).fill("");
    await page.getByRole("button", { name: "Stop at" }).click();
    await expect.poll(() => triggers.textContent()).toMatch(/Stop at server:request_end.*armed.*The recorder watches a program/);
    stage.server.recorder.fire("start");
    stage.server.recorder.fire("stop");
    tick();
    await expect.poll(() => triggers.textContent()).toMatch(/armed; has fired once.*has fired once, last by server:request_end of server \(process 7, thread 9\)/);
    await triggers.getByRole("button", { name: "Arm stop" }).click();
    await expect.poll(asked).toEqual({ act: "arm", trigger: "stop" });
    await triggers.getByRole("button", { name: "Start now" }).click();
    await expect.poll(asked).toEqual({ act: "turn", on: true });
    await triggers.getByRole("button", { name: "Pause now" }).click();
    await expect.poll(asked).toEqual({ act: "turn", on: false });
    await triggers.getByRole("button", { name: "Remove start" }).click();
    await expect.poll(() => triggers.textContent()).not.toContain("Start at");
    stage.server.recorder.refusal = "session `server` has no trigger `stop`";
    await triggers.getByRole("button", { name: "Remove stop" }).click();
    await expect.poll(() => triggers.getByRole("alert").textContent()).toBe("Session `server` has no trigger `stop`. Nothing was changed; `kymo trigger` lists the session's triggers.");
    stage.expectFaults(/status of 409/);
    await page.close();
  });

  test("says that it cannot be asked, and what was known before", async () => {
    const page = await open();
    stage.server.recorder.problem = "the recorder that runs (process 17) speaks version 3, this kymo version 4";
    tick();
    await expect.poll(() => page.getByRole("alert").filter({ hasText: "version 3" }).textContent()).toBe("The recorder that runs (process 17) speaks version 3, this kymo version 4. What stands here is what was known before.");
    expect(await page.getByRole("checkbox", { name: "Record net:sent" }).isChecked()).toBe(true);
    await page.close();
  });

  test("says why it could not be stopped", async () => {
    const page = await open();
    stage.server.recorder.refusal = "the recorder does not answer";
    await page.getByRole("button", { name: "Stop recording" }).click();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await expect.poll(() => page.getByRole("alert").filter({ hasText: "recorder" }).textContent()).toBe("The recorder does not answer. Nothing was changed; `kymo status` says how the session is.");
    await page.getByRole("button", { name: "Stop recording" }).waitFor();
    await page.close();
    stage.expectFaults(/status of 409/);
  });

  test.each([
    ["light", 1280],
    ["dark", 1280],
    ["light", 420],
    ["dark", 420],
  ] as const)("nothing is seriously wrong in the %s, %d wide", async (colorScheme, width) => {
    stage.server.recorder.mode = "overwrite";
    stage.server.recorder.problems = ["lane_7 cannot be written"];
    stage.server.recorder.lost.full = 5;
    const page = await open({ colorScheme, width });
    tick();
    tick();
    await box(page).fill("net:snt");
    await page.getByRole("button", { name: "Switch on" }).click();
    await page.locator(".record-matched").waitFor();
    await page.getByRole("button", { name: "Stop at" }).click();
    await page.getByRole("region", { name: "Triggers" }).waitFor();
    await page.getByRole("button", { name: "Snapshot", exact: true }).click();
    await page.getByText("events written to").waitFor();
    await page.getByRole("button", { name: "Stop recording" }).click();
    await rested(page);
    expect(await findings(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await picture(page, `record-all-${colorScheme}-${width}`);
    await page.close();
  });
});
