// Traces that grow, as a person watches them: follows, holds the window back, looks at what was recorded, follows again, sees what is lost and the end.

import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findings } from "./axe.ts";
import { rested } from "./browser.ts";
import { BEGIN, SPAN, TOLD } from "./invented.ts";
import { sinceBegin, windowShown } from "./reading.ts";
import { complete, picture, withInvented, type Opened } from "./stage.ts";

/** What there is when a page is opened, what comes with each tick, and how often that is. */
const FIRST_NS = 400_000_000;
const TICK_NS = 8_000_000;
const TICK_MS = 100;

withInvented("traces that grow", (stage) => {
  let ticking: ReturnType<typeof setInterval> | null = null;

  beforeEach(() => {
    const { server } = stage;
    [server.live, server.waiting, server.lost, server.holes, server.instance] = ["recording", null, 0, [], `started ${Math.random()}`];
    [server.grown, server.slowMs] = [FIRST_NS, 0];
    server.listing.until = BEGIN + BigInt(FIRST_NS);
    server.recorder.clear();
  });
  afterEach(() => stop());

  /** The recorder goes on, until the test stops it or is over. */
  function start(ns = TICK_NS): void {
    ticking = setInterval(() => stage.server.grow(ns), TICK_MS);
  }

  function stop(): void {
    if (ticking !== null) {
      clearInterval(ticking);
      ticking = null;
    }
  }

  const open = (hash = "", options: Opened = {}): Promise<Page> => stage.visit(hash, { height: 720, ...options });
  const chip = (page: Page): ReturnType<Page["locator"]> => page.locator(".live-chip");

  /** Where the window begins in each of so many pictures of the screen, in seconds, and when that was, in milliseconds. */
  function recordedBegins(page: Page, frames: number): Promise<[number, number][]> {
    return page.evaluate(
      (count) =>
        new Promise<[number, number][]>((done) => {
          const found: [number, number][] = [];
          const look = (now: number): void => {
            const text = document.querySelector(".status .window")?.textContent ?? "";
            found.push([Number(/^[\d.\u202f]+/.exec(text)?.[0].replaceAll("\u202f", "")), now]);
            if (found.length < count) {
              requestAnimationFrame(look);
            } else {
              done(found);
            }
          };
          requestAnimationFrame(look);
        }),
      frames,
    );
  }

  test("are seen whole while there is less than ten seconds of them, and go on being", async () => {
    const page = await open();
    await complete(page);
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live · 0\.[34] s behind$/);
    expect(await chip(page).getAttribute("title")).toMatch(/0\.[34] s behind\. Space holds it back\.$/);
    expect(await windowShown(page)).toMatchObject({ begin: 0, span: expect.anything() as number });
    expect(new URL(page.url()).hash).toBe("");
    await picture(page, "live-begin");
    start();
    await expect.poll(async () => (await windowShown(page)).span).toBeGreaterThan(FIRST_NS + 10 * TICK_NS);
    expect((await windowShown(page)).begin).toBe(0);
    stop();
    await complete(page);
    await expect.poll(async () => Math.round((await windowShown(page)).span / 1e5)).toBe(Math.round(stage.server.grown / 1e5));
    expect(new URL(page.url()).hash).toBe("");
    await page.close();
  });

  test("move at a constant rate through a window that keeps its span, without a jump", async () => {
    const page = await open("#follow=200000000");
    await complete(page);
    start();
    // Until watermarks come in time as far as the page knows.
    await expect.poll(async () => (await windowShown(page)).end).toBeGreaterThan(FIRST_NS + 15 * TICK_NS);
    const found = await recordedBegins(page, 90);
    stop();
    const steps = found.slice(1).map(([begin, now], index) => [begin - (found[index]?.[0] ?? 0), now - (found[index]?.[1] ?? 0)] as const);
    const [way, time] = [(found.at(-1)?.[0] ?? 0) - (found[0]?.[0] ?? 0), (found.at(-1)?.[1] ?? 0) - (found[0]?.[1] ?? 0)];
    expect(steps.every(([by]) => by >= 0)).toBe(true);
    // Most pictures differ, unless the machine draws late; even then there are more moves than watermarks, each of which would make one jump.
    const moves = steps.filter(([by]) => by > 0).length;
    expect(moves).toBeGreaterThan(Math.min(steps.length / 2, 1.25 * (time / TICK_MS)));
    // Hardly any goes much further than the time since the last move is worth at the common rate: a step for each watermark would be six times that where
    // pictures are drawn in time, at every sixth picture. Where they are not, several pictures show the same text, and a clock may be read late.
    const pixel = 0.2 / 1_000;
    let since = 0;
    const jumps = steps.filter(([by, took]) => {
      since += took;
      const isFar = by >= (4 * since * way) / time + 2 * pixel;
      since = by > 0 ? 0 : since;
      return isFar;
    });
    expect(jumps.length).toBeLessThanOrEqual(steps.length / 30);
    expect((await windowShown(page)).span).toBe(200e6);
    expect(new URL(page.url()).hash).toBe("#follow=200000000");
    await page.close();
  });

  test("are followed where each answer takes longer than it takes until there is more", async () => {
    const { server } = stage;
    server.slowMs = 3 * TICK_MS;
    const page = await open("#follow=200000000");
    await complete(page);
    // So little that there is more for a minute.
    const tick = 1_000_000;
    start(tick);
    for (const ticks of [5, 15, 25]) {
      await expect.poll(async () => (await windowShown(page)).end).toBeGreaterThan(FIRST_NS + ticks * tick);
      // All that was asked for is there at times.
      await complete(page);
    }
    expect(server.grown).toBeLessThan(SPAN);
    await page.close();
  });

  test("are held back with Space, looked at where they were, and followed again with L", async () => {
    const { server } = stage;
    const page = await open("#follow=200000000");
    await complete(page);
    start();
    await expect.poll(async () => (await windowShown(page)).end).toBeGreaterThan(FIRST_NS + 3 * TICK_NS);
    await page.keyboard.press("Space");
    const held = await windowShown(page);
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused · 0\.[1-9] s, \d+ events behind$/);
    expect(await windowShown(page)).toEqual(held);
    await picture(page, "live-paused");
    // Earlier, nearer, and earlier again: all that is there already is drawn, and stays.
    for (const key of ["a", "a", "w", "a"]) {
      await page.keyboard.press(key);
    }
    await complete(page);
    const there = await windowShown(page);
    expect(there.end).toBeLessThan(held.begin + held.span);
    const before = server.asked.length;
    const grown = server.grown;
    await expect.poll(() => server.grown).toBeGreaterThan(grown + 6 * TICK_NS);
    await complete(page);
    expect(await windowShown(page)).toEqual(there);
    // Meanwhile only the tile in which the traces end is asked for again and again. What the traces have passed is exact when it is asked for
    // then, and that is once at most: neighbours of the window come after all that is on the screen.
    const asked = server.asked.slice(before).map((search, index) => ({ search, question: new URLSearchParams(search), grown: server.grownWhenAsked[before + index] ?? 0 }));
    expect(asked.length).toBeGreaterThan(0);
    const isPassed = ({ question, grown }: (typeof asked)[number]): boolean => (Number(question.get("first")) + Number(question.get("count"))) * 2 ** Number(question.get("level")) <= grown;
    const passed = asked.filter(isPassed).map(({ search }) => search);
    expect(new Set(passed).size, passed.join("\n")).toBe(passed.length);
    expect(asked.length - passed.length).toBeLessThan(4 + (3 * (server.grown - grown)) / TICK_NS);
    expect(new URL(page.url()).hash).toMatch(/^#at=\d+~\d+$/);
    await page.keyboard.press("l");
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    await expect.poll(async () => (await windowShown(page)).end).toBeGreaterThan(server.grown - 10 * TICK_NS);
    expect((await windowShown(page)).span).toBe(150e6);
    // One goes back to where one was, and that holds it back.
    await page.keyboard.press("Backspace");
    await expect.poll(() => windowShown(page)).toEqual(there);
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused/);
    await chip(page).click();
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    await page.close();
  });

  test("keep their end when somebody zooms, and are held back by what leads elsewhere", async () => {
    const page = await open("#follow=200000000");
    await complete(page);
    const area = (await page.locator(".area").boundingBox()) ?? { x: 0, y: 0, width: 1, height: 0 };
    const { end } = await windowShown(page);
    await page.mouse.move(area.x + 10, area.y + 60);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -120);
    await page.keyboard.up("Control");
    await expect.poll(async () => (await windowShown(page)).span).toBeLessThan(190e6);
    expect((await windowShown(page)).end).toBeCloseTo(end, -6);
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    // To select moves nothing.
    await page.mouse.down();
    await page.mouse.move(area.x + 200, area.y + 60, { steps: 3 });
    await page.mouse.up();
    await page.locator(".selected").waitFor();
    expect(await chip(page).textContent()).toMatch(/^● Live/);
    // To see it does.
    await page.keyboard.press("z");
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused/);
    await page.keyboard.press("Home");
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    await expect.poll(() => rested(page).then(() => new URL(page.url()).hash)).toMatch(/^#follow=all&selected=\d+~\d+(&on=[^&]+){2}&panels=inspector$/);
    // A frame that is dragged in the strip above.
    const strip = (await page.locator(".overview").boundingBox()) ?? area;
    await page.mouse.move(strip.x + strip.width * 0.2, strip.y + 20);
    await page.mouse.down();
    await page.mouse.move(strip.x + strip.width * 0.4, strip.y + 20, { steps: 3 });
    await page.mouse.up();
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused/);
    await page.close();
  });

  test("are opened again as they were: followed with as much in sight, or where somebody was", async () => {
    const page = await open("#follow=100000000");
    await complete(page);
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    expect((await windowShown(page)).span).toBe(100e6);
    await page.keyboard.press("a");
    await rested(page);
    const { hash } = new URL(page.url());
    const again = await open(hash);
    await complete(again);
    expect(await windowShown(again)).toEqual(await windowShown(page));
    await expect.poll(() => chip(again).textContent()).toMatch(/^Paused/);
    // The address bar is enough to follow again.
    await again.evaluate(() => (location.hash = "#follow=100000000"));
    await expect.poll(() => chip(again).textContent()).toMatch(/^● Live/);
    await page.close();
    await again.close();
  });

  test("leave Space to buttons, boxes and trees", async () => {
    const page = await open("#panels=rail.tracks");
    await complete(page);
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    const time = page.getByRole("button", { name: "since begin" });
    await time.focus();
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "time of day" }).waitFor();
    await page.keyboard.press("Space");
    await time.waitFor();
    expect(await chip(page).textContent()).toMatch(/^● Live/);
    await page.getByRole("treeitem", { name: "CPU 1", exact: true }).click();
    await page.keyboard.press("Space");
    await expect.poll(() => page.locator(".label .name").allTextContents()).not.toContain("CPU 1");
    expect(await chip(page).textContent()).toMatch(/^● Live/);
    await page.getByRole("button", { name: "?", exact: true }).click();
    await page.locator("dialog.help").waitFor();
    expect(await page.locator("dialog.help").textContent()).toMatch(/hold the window back while traces are recorded.*follow what is recorded again/s);
    await page.keyboard.press("Escape");
    // Everywhere else it is for the window.
    await page.locator(".status").click();
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await page.keyboard.press("Space");
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused/);
    await page.close();
  });

  test("have a list of events that goes along while it stands at its end", async () => {
    const { server } = stage;
    const page = await open("#panels=drawer.events");
    const times = (): Promise<string[]> => page.locator(".event-body .event-row .time").allTextContents();
    /** The last event that is there. */
    const last = (): string => sinceBegin((TOLD.filter(({ time }) => time < BEGIN + BigInt(server.grown)).at(-1)?.time ?? BEGIN) - BEGIN);
    await expect.poll(async () => (await times()).at(-1)).toBe(last());
    for (let step = 0; step < 3; step++) {
      server.grow(30_000_000);
      await expect.poll(async () => (await times()).at(-1)).toBe(last());
    }
    const count = TOLD.filter(({ time }) => time < BEGIN + BigInt(server.grown)).length;
    await expect.poll(() => page.locator(".event-names .event-count").textContent()).toBe(`${count.toLocaleString("en")} events`);
    await picture(page, "live-events");
    // Who looks at rows before that keeps them; the end is followed again from where it is.
    await page.hover(".event-body");
    await page.mouse.wheel(0, -20 * 12);
    await expect.poll(async () => (await times()).at(-1)).not.toBe(last());
    const kept = await times();
    server.grow(30_000_000);
    await complete(page);
    await rested(page);
    expect(await times()).toEqual(kept);
    await page.locator(".event-grid").focus();
    await page.keyboard.press("End");
    await expect.poll(async () => (await times()).at(-1)).toBe(last());
    server.grow(30_000_000);
    await expect.poll(async () => (await times()).at(-1)).toBe(last());
    // In the list, too, Space is for the window.
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    await page.keyboard.press("Space");
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused/);
    await page.close();
  });

  test("have statistics of the window that are asked for every few seconds, and say of what time they are", async () => {
    const { server } = stage;
    server.office.clear();
    const asked = (): string[] => server.office.asked.filter((one) => one.startsWith("POST"));
    const page = await open("#panels=drawer.statistics&scope=window&follow=200000000");
    await page.waitForSelector('.drawer [role="gridcell"]');
    await expect.poll(() => page.locator(".of-when").textContent()).toMatch(/^from 0\.(?:200|199) s to 0\.(?:400|399) s$/);
    const begun = performance.now();
    const before = asked().length;
    start(2_000_000);
    await expect.poll(() => asked().length).toBeGreaterThan(before);
    await expect.poll(() => asked().length).toBeGreaterThan(before + 1);
    stop();
    // Each is of another window, and there are no more than one in five seconds.
    expect(new Set(asked()).size).toBe(asked().length);
    expect(asked().length - before).toBeLessThanOrEqual(1 + (performance.now() - begun) / 5_000);
    // All of the traces are those that were there when somebody asked.
    await page.getByRole("radio", { name: "All" }).click();
    await expect.poll(() => page.locator(".of-when").textContent()).toMatch(/^from 0\.000 s to 0\.[4-9]\d\d sUp to now$/);
    await expect.poll(() => asked().at(-1)).toContain(`"begin_ns":${BEGIN},`);
    const last = asked().at(-1);
    server.grow(100_000_000);
    await rested(page);
    expect(asked().at(-1)).toBe(last);
    await page.getByRole("button", { name: "Up to now" }).click();
    await expect.poll(() => asked().at(-1)).toContain(`"end_ns":${BEGIN + BigInt(server.grown)}`);
    await picture(page, "live-statistics");
    await page.close();
  });

  test("go in steps for those who want nothing to move by itself", async () => {
    const page = await open("#follow=200000000");
    await page.emulateMedia({ reducedMotion: "reduce" });
    await complete(page);
    for (let step = 1; step <= 4; step++) {
      stage.server.grow(TICK_NS);
      const end = FIRST_NS + step * TICK_NS;
      const found = await recordedBegins(page, 20);
      // One step, from where it was to where it is now, and nothing between; less than a pixel more or less is none.
      expect(new Set(found.map(([begin]) => Math.round(begin * 1e3))).size, `step ${step}: ${found.map(([begin]) => begin).join(" ")}`).toBeLessThanOrEqual(2);
      await expect.poll(async () => Math.round((await windowShown(page)).end / 1e6)).toBe(Math.round(end / 1e6));
    }
    await page.close();
  });

  test("show what is lost while it is lost: a number that flashes, and a band that is hatched", async () => {
    const { server } = stage;
    const page = await open("", { colorScheme: "dark" });
    await complete(page);
    expect(await page.locator(".badge.lost").count()).toBe(0);
    server.lost = 7;
    server.holes.push([FIRST_NS + 2_000_000, FIRST_NS + 60_000_000]);
    server.grow(100_000_000);
    const badge = page.locator(".badge.lost");
    await expect.poll(() => badge.textContent()).toBe("7 lost");
    await expect.poll(() => badge.getAttribute("class")).toContain("flash-");
    const first = await badge.getAttribute("class");
    server.lost = 1_200;
    server.grow(10_000_000);
    await expect.poll(() => badge.textContent()).toBe("1,200 lost");
    await expect.poll(() => badge.getAttribute("class")).not.toBe(first);
    await complete(page);
    await rested(page);
    await picture(page, "live-lost-dark");
    await page.close();
  });

  test("end: nothing jumps, and what was recorded last is in sight", async () => {
    const { server } = stage;
    const page = await open("#follow=200000000");
    await complete(page);
    start();
    await expect.poll(async () => (await windowShown(page)).end).toBeGreaterThan(FIRST_NS + 3 * TICK_NS);
    stop();
    server.live = "ended";
    const frames = recordedBegins(page, 60);
    server.grow(TICK_NS);
    const found = (await frames).map(([begin]) => begin);
    expect(found.slice(1).every((begin, index) => begin >= (found[index] ?? 0) && begin - (found[index] ?? 0) < (3 * TICK_NS) / 1e9)).toBe(true);
    await expect.poll(() => chip(page).textContent()).toBe("ended");
    await page.waitForSelector(".badge.good");
    // As exact as the line at the bottom says it.
    await expect.poll(async () => Math.abs((await windowShown(page)).end - server.grown)).toBeLessThan(200e3);
    expect((await windowShown(page)).span).toBe(200e6);
    // Keys that follow have nothing to follow.
    const before = await windowShown(page);
    await page.keyboard.press("l");
    await page.keyboard.press("Space");
    await rested(page);
    expect(await windowShown(page)).toEqual(before);
    await picture(page, "live-ended");
    await page.close();
  });

  test("are waited for until there is an event, and the timeline begins by itself", async () => {
    const { server } = stage;
    server.waiting = "`./server` has begun, and has recorded nothing yet.";
    const page = await open();
    await expect.poll(() => page.locator(".notice").textContent()).toBe("KymographWaiting for the first events.`./server` has begun, and has recorded nothing yet.");
    expect(await findings(page, 5)).toEqual([]);
    await picture(page, "live-waiting");
    server.waiting = null;
    await complete(page);
    await expect.poll(() => chip(page).textContent()).toMatch(/^● Live/);
    expect(await page.locator(".label").count()).toBeGreaterThan(0);
    await page.close();
  });

  test("are waited for in vain before a snapshot where they are kept in memory, which the page says and takes", async () => {
    const { server } = stage;
    [server.waiting, server.recorder.isThere, server.recorder.mode] = ["nothing was recorded yet", true, "overwrite"];
    const page = await open();
    await expect.poll(() => page.locator(".notice").textContent()).toMatch(/Waiting for a snapshot\..*“server”.*kymo snapshot server/);
    expect(await findings(page, 5)).toEqual([]);
    await picture(page, "live-waiting-snapshot");
    server.recorder.refusal = "the recorder has gone";
    await page.getByRole("button", { name: "Take a snapshot" }).click();
    await expect.poll(() => page.locator(".notice").textContent()).toMatch(/The recorder has gone\.$/);
    stage.expectFaults(/status of/);
    server.recorder.refusal = null;
    await page.getByRole("button", { name: "Take a snapshot" }).click();
    await expect.poll(() => server.recorder.snapshots).toBe(1);
    server.waiting = null;
    await complete(page);
    server.recorder.clear();
    await page.close();
  });

  test("fit narrow screens, in the dark, too", async () => {
    const page = await open("#follow=200000000", { width: 400, colorScheme: "dark", ratio: 2 });
    await complete(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(400);
    await picture(page, "live-narrow-dark");
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press("Space");
    await expect.poll(() => chip(page).textContent()).toMatch(/^Paused/);
    expect(await findings(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(400);
    await page.close();
  });
});
