// The pages in a browser, as a person uses them, with a server that always says the same.

import type { Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { rested } from "./browser.ts";
import { BEGIN, SPAN } from "./invented.ts";
import { NO_FINDINGS } from "./server.ts";
import { complete, picture, withInvented, type Opened } from "./stage.ts";

withInvented("a page", (stage) => {
  beforeEach(() => {
    const { server } = stage;
    server.read = 1;
    server.refusal = null;
    server.instance = "one";
    server.filterRead = 1;
    server.descriptionRefusal = null;
    [server.findings, server.lost] = [NO_FINDINGS, 0];
  });

  const open = (hash = "", options: Opened = {}): Promise<Page> => stage.visit(hash, { height: 720, ...options });

  /** How many different colours a canvas shows: one that was not drawn has one. */
  function coloursOf(page: Page, selector: string): Promise<number> {
    return page.$eval(selector, (canvas) => {
      const { width, height } = canvas as HTMLCanvasElement;
      const data = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
      return new Set(new Uint32Array(data.buffer)).size;
    });
  }

  /** How far the browser has scrolled the rows. */
  function scrolled(page: Page): Promise<number> {
    return page.$eval(".scroller", (scroller) => scroller.scrollTop);
  }

  function windowOf(page: Page): Promise<{ begin: bigint; span: bigint }> {
    return rested(page).then(() => {
      const found = /at=(\d+)~(\d+)/.exec(new URL(page.url()).hash);
      return found === null ? { begin: BEGIN, span: BigInt(SPAN) } : { begin: BigInt(found[1] ?? 0), span: BigInt(found[2] ?? 0) };
    });
  }

  test("shows all tracks, and takes the token out of the address", async () => {
    const page = await open();
    await complete(page);
    expect(page.url()).toBe(`${stage.server.url}/`);
    expect(await page.locator(".chip").allTextContents()).toEqual(["invented"]);
    await expect.poll(() => page.locator(".badge").textContent()).toBe("complete");
    expect(await page.locator(".label .name").allTextContents()).toContain("CPU 2");
    expect(await coloursOf(page, ".area canvas")).toBeGreaterThan(12);
    expect(await coloursOf(page, ".overview canvas")).toBeGreaterThan(2);
    await picture(page, "wide-light");
    await page.close();
  });

  test("has all its panels at hand for whoever has only a mouse", async () => {
    const page = await open();
    await complete(page);
    const header = page.getByRole("group", { name: "Panels" });
    for (const name of ["Left panel", "Right panel"]) {
      const door = header.getByRole("button", { name });
      await door.click();
      await page.getByRole("region", { name }).waitFor();
      expect(await door.getAttribute("aria-pressed")).toBe("true");
      await door.click();
      await page.getByRole("region", { name }).waitFor({ state: "detached" });
    }
    const tabs = page.getByRole("group", { name: "Lower panel" });
    expect(await tabs.getByRole("button").allTextContents()).toEqual(["Events", "Latency", "Statistics", "Counters"]);
    await tabs.getByRole("button", { name: "Statistics" }).click();
    await expect.poll(() => page.getByRole("tab", { name: "Statistics" }).getAttribute("aria-selected")).toBe("true");
    // What is open has its own tabs.
    expect(await tabs.count()).toBe(0);
    await header.getByRole("button", { name: "Lower panel" }).click();
    await tabs.waitFor();
    await page.close();
  });

  test("says what is wrong with the traces, why that matters and what to do, and leads to where events were lost", async () => {
    const { server } = stage;
    const [begin, end] = [BEGIN + BigInt(SPAN) / 2n, BEGIN + BigInt(SPAN) / 2n + 1_000_000n];
    const discarded = { severity: "warning", rule: "events-discarded", assumption: false, place: "/t/channel0_2", message: "packet at byte 16384: 859 events were discarded before its end", help: "use larger buffers", times: 3 };
    const cut = { severity: "error", rule: "cut-packet", assumption: false, place: "/t/channel0_1", message: "packet at byte 4096: the file ends before it does", help: "copy it again", times: 1 };
    server.findings = `{"findings":${JSON.stringify([discarded, cut])},"losses":[{"begin_ns":${begin},"end_ns":${end}}],"losses_omitted":0}`;
    server.lost = 2_577;
    const page = await open();
    await complete(page);
    const badge = page.getByRole("button", { name: "2,577 lost, 1 finding" });
    await badge.waitFor();
    expect(await badge.getAttribute("class")).toContain("bad");
    await badge.click();
    const list = page.getByRole("dialog");
    const said = (await list.textContent()) ?? "";
    for (const part of ["859 events were discarded", "2 more in this file", "in doubt", "What to do: use larger buffers", "the file ends before it does", "kymo check /traces/invented", "When events were lost: once"]) {
      expect(said).toContain(part);
    }
    await picture(page, "findings");
    await list.locator(".losses button").first().click();
    await list.waitFor({ state: "detached" });
    const window = await windowOf(page);
    expect([window.begin, window.span]).toEqual([begin - 1_000_000n, 3_000_000n]);
    await complete(page);
    await picture(page, "loss");
    // The band is red where it is strongest.
    const middle = await page.$eval(".area canvas", (canvas) => [...((canvas as HTMLCanvasElement).getContext("2d")?.getImageData(Math.round((canvas as HTMLCanvasElement).width / 2), 1, 1, 1).data ?? [])]);
    expect(middle.slice(0, 3)).toEqual([200, 40, 30]);
    // Without anything to say there is no badge but that of reading.
    [server.findings, server.lost] = [NO_FINDINGS, 0];
    await page.close();
    const sound = await open();
    await complete(sound);
    await expect.poll(() => sound.locator(".badge").allTextContents()).toEqual(["complete"]);
    await sound.close();
  });

  test("is driven by keys alone, and can be opened again where it was", async () => {
    const page = await open();
    await complete(page);
    for (const key of ["w", "w", "w", "w", "w", "w", "d", "d", "a", "+"]) {
      await page.keyboard.press(key);
    }
    await complete(page);
    const near = await windowOf(page);
    expect(Number(near.span)).toBeCloseTo(SPAN * 0.75 ** 7, -3);
    await page.keyboard.press("s");
    expect((await windowOf(page)).span).toBeGreaterThan(near.span);
    const hash = new URL(page.url()).hash;
    const again = await open(hash);
    await complete(again);
    expect(await windowOf(again)).toEqual(await windowOf(page));
    await page.keyboard.press("Home");
    expect((await windowOf(page)).span).toBe(BigInt(SPAN));
    await page.keyboard.press("?");
    await page.locator("dialog.help").waitFor();
    await picture(page, "help");
    await page.keyboard.press("Escape");
    await page.locator("dialog.help").waitFor({ state: "hidden" });
    await page.close();
    await again.close();
  });

  test("is driven by the mouse: wheel, drag, overview", async () => {
    const page = await open();
    await complete(page);
    const area = (await page.locator(".area").boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(area.x + area.width / 4, area.y + 40);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -400);
    await page.mouse.wheel(0, -400);
    await page.keyboard.up("Control");
    await complete(page);
    const near = await windowOf(page);
    expect(near.span).toBeLessThan(BigInt(SPAN) / 4n);
    await page.mouse.down();
    await page.mouse.move(area.x + area.width / 2, area.y + 60, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => page.locator(".selected").textContent()).toMatch(/^Δ .* ms/);
    await picture(page, "selection");
    await page.keyboard.press("z");
    expect(Number((await windowOf(page)).span)).toBeCloseTo(Number(near.span) / 4, -7);
    const strip = (await page.locator(".overview").boundingBox()) ?? area;
    await page.mouse.dblclick(strip.x + strip.width / 2, strip.y + 20);
    expect((await windowOf(page)).span).toBe(BigInt(SPAN));
    await page.mouse.move(strip.x + strip.width * 0.25, strip.y + 20);
    await page.mouse.down();
    await page.mouse.move(strip.x + strip.width * 0.5, strip.y + 20, { steps: 3 });
    await page.mouse.up();
    const { begin, span } = await windowOf(page);
    expect(Number(begin - BEGIN) / SPAN).toBeCloseTo(0.25, 2);
    expect(Number(span) / SPAN).toBeCloseTo(0.25, 2);
    // A click on the strip moves nothing: one goes back to before the drag, however long that was, at once.
    await page.mouse.click(strip.x + strip.width * 0.4, strip.y + 20);
    await page.mouse.click(strip.x + strip.width * 0.8, strip.y + 20);
    await page.keyboard.press("Backspace");
    expect(await windowOf(page)).toEqual({ begin: BEGIN, span: BigInt(SPAN) });
    await page.close();
  });

  test("says what is below the pointer, and pins, hides and folds", async () => {
    const page = await open();
    await complete(page);
    const label = page.locator(".label", { hasText: "CPU 1" }).first();
    const box = (await label.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(700, box.y + box.height / 2);
    await expect.poll(() => page.locator(".status .below").textContent()).toMatch(/s  CPU 1: \S/);
    await page.keyboard.press("p");
    await expect.poll(() => page.locator(".label").first().textContent()).toContain("Pinned");
    await page.keyboard.press("t");
    await expect.poll(() => page.locator(".status .window").textContent()).toMatch(/^2026-11-21 01:02:52.* CET \+ 2\.0000 s$/);
    await page.locator(".label.head button", { hasText: "Threads" }).click();
    await expect.poll(() => page.locator(".label", { hasText: "nginx" }).count()).toBe(0);
    await rested(page);
    expect(new URL(page.url()).hash).toBe("#pin=cpu/0/1/thread&fold=Threads&time=absolute");
    await complete(page);
    await picture(page, "pinned");
    await page.close();
  });

  test("shows the view of a URL that is entered while the view before is yet to be put into the address", async () => {
    const page = await open();
    // A busy browser says late that the address has changed.
    await page.addInitScript(() => {
      const add = window.addEventListener.bind(window) as (type: string, listener: (event: Event) => void) => void;
      const addLate = (type: string, listener: (event: Event) => void): void => {
        add(type, type === "hashchange" ? (event) => void setTimeout(() => listener(event), 1_000) : listener);
      };
      window.addEventListener = addLate as typeof window.addEventListener;
    });
    await page.reload();
    await complete(page);
    await page.keyboard.press("d");
    await page.evaluate(() => void (location.hash = "legend=1"));
    await page.getByRole("toolbar", { name: "Legend" }).waitFor();
    expect(new URL(page.url()).hash).toContain("legend=1");
    await page.close();
  });

  test("is scrolled to where the URL says, and goes on from there", async () => {
    const page = await open("#down=100", { height: 420 });
    await complete(page);
    expect(await scrolled(page)).toBe(100);
    await page.mouse.move(700, 200);
    await page.mouse.wheel(0, 30);
    await expect.poll(() => rested(page).then(() => new URL(page.url()).hash)).toBe("#down=130");
    expect(await scrolled(page)).toBe(130);
    await page.close();
  });

  test("is scrolled to what was folded, as far as rows reach now", async () => {
    const page = await open("#fold=CPUs&fold=Events", { height: 300 });
    await complete(page);
    await page.keyboard.press("/");
    await page.keyboard.type("events of CPU 3");
    await expect.poll(() => page.getByRole("option", { selected: true }).textContent()).toContain("events of CPU 3");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".label.below .name").textContent()).toBe("events of CPU 3");
    await rested(page);
    const down = Number(/down=(\d+)/.exec(new URL(page.url()).hash)?.[1]);
    expect(down).toBeGreaterThan(0);
    expect(await scrolled(page)).toBe(down);
    const [row, area] = [await page.locator(".label.below").boundingBox(), await page.locator(".area").boundingBox()];
    expect(row?.y).toBeGreaterThanOrEqual(area?.y ?? Infinity);
    expect((row?.y ?? 0) + (row?.height ?? 0)).toBeLessThanOrEqual((area?.y ?? 0) + (area?.height ?? 0));
    await page.close();
  });

  test("lets go of a drag when the browser takes the pointer away", async () => {
    const page = await open();
    await complete(page);
    for (const key of ["w", "w", "w", "w"]) {
      await page.keyboard.press(key);
    }
    await page.keyboard.press("Alt+1");
    await page.waitForSelector(".event-body .event-row");
    const touch = await page.context().newCDPSession(page);
    /** A finger goes from the middle of something so far, and the browser takes it; then a mouse goes over it, with no button held. */
    const taken = async (selector: string, by: { x: number; y: number }, seen: () => Promise<unknown>): Promise<void> => {
      const middle = async (): Promise<{ x: number; y: number }> => {
        const box = (await page.locator(selector).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
        return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      };
      const from = await middle();
      const first = await seen();
      await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [from] });
      await touch.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [{ x: from.x + by.x, y: from.y + by.y }] });
      await expect.poll(seen).not.toEqual(first);
      await touch.send("Input.dispatchTouchEvent", { type: "touchCancel", touchPoints: [] });
      await rested(page);
      const before = await seen();
      const now = await middle();
      await page.mouse.move(now.x - 2, now.y - 2);
      await page.mouse.move(now.x + 2, now.y + 2);
      await rested(page);
      expect(await seen(), selector).toEqual(before);
    };
    await taken(".area canvas", { x: 60, y: 0 }, () => windowOf(page));
    await taken(".overview canvas", { x: 60, y: 0 }, () => windowOf(page));
    await taken(".drawer .edge", { x: 0, y: -40 }, () => page.locator(".drawer .edge").getAttribute("aria-valuenow"));
    await taken(".event-bar", { x: 0, y: 40 }, () => page.locator(".event-bar").getAttribute("aria-valuenow"));
    await page.close();
  });

  test("hatches what is not read yet, and follows the server", async () => {
    stage.server.read = 0.4;
    const page = await open("", { colorScheme: "dark" });
    await complete(page);
    await expect.poll(() => page.locator(".badge").textContent()).toMatch(/^40 % read, 6.* s left$/);
    await picture(page, "wide-dark-building");
    const before = stage.server.asked.length;
    stage.server.read = 1;
    stage.server.tell();
    await page.waitForSelector(".badge.good");
    await complete(page);
    expect(stage.server.asked.length).toBeGreaterThan(before);
    // All of it is exact now: nothing is asked for again, whatever the server tells.
    const after = stage.server.asked.length;
    await page.keyboard.press("Home");
    stage.server.tell();
    await rested(page);
    expect(stage.server.asked.length).toBe(after);
    await picture(page, "wide-dark");
    await page.close();
  });

  test("fits narrow screens, and sharp ones", async () => {
    const page = await open("", { width: 400, height: 720, ratio: 2, colorScheme: "dark" });
    await complete(page);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBe(400);
    expect(await page.$eval(".area canvas", (canvas) => (canvas as HTMLCanvasElement).width / canvas.clientWidth)).toBe(2);
    await picture(page, "narrow-dark");
    await page.close();
    const light = await open("", { width: 400, height: 720, ratio: 2 });
    await complete(light);
    await picture(light, "narrow-light");
    await light.close();
  });

  test("asks for the same level of detail on each screen, and beside an open panel", async () => {
    const levels = new Set<string>();
    for (const width of [700, 1100, 1440, 2048]) {
      stage.server.asked.length = 0;
      const page = await open("", { width });
      await complete(page);
      await page.getByRole("group", { name: "Panels" }).getByRole("button").last().click();
      await page.waitForSelector(".panel.inspector");
      await rested(page);
      await complete(page);
      const asked = stage.server.asked.map((url) => new URL(url, stage.server.url).searchParams.get("level") ?? "");
      expect(asked.length).toBeGreaterThan(0);
      asked.forEach((level) => levels.add(level));
      await page.close();
    }
    expect([...levels].length).toBe(1);
  });

  test("says what is wrong and what to do: no token, tiles refused, server gone", async () => {
    const stranger = await stage.browser.newPage();
    await stranger.goto(`${stage.server.url}/`);
    await expect.poll(() => stranger.locator(".notice").textContent()).toBe("The token is missing.Open the URL that `kymo view` has printed.");
    await picture(stranger, "no-token");
    await stranger.close();
    stage.server.refusal = 500;
    const page = await open();
    await page.waitForSelector(".notice.bad");
    await expect.poll(() => page.locator(".notice").textContent()).toMatch(/^The disk is full\.The page retries/);
    stage.server.refusal = null;
    await complete(page);
    await page.waitForSelector(".notice", { state: "detached" });
    await page.close();
    stage.expectFaults(/status of 500/);
  });

  /** Ends what the server tells, and waits until it is asked to tell again. */
  async function reconnected(page: Page): Promise<void> {
    const before = stage.server.listened;
    stage.server.hangUp();
    await expect.poll(() => stage.server.listened).toBeGreaterThan(before);
    await rested(page);
    await complete(page);
  }

  test("keeps what it has when it hears the same server again, and begins anew with another one", async () => {
    const page = await open();
    await complete(page);
    const before = stage.server.asked.length;
    await reconnected(page);
    await reconnected(page);
    expect(stage.server.asked.length).toBe(before);
    stage.server.instance = "two";
    await reconnected(page);
    await expect.poll(() => stage.server.asked.length).toBeGreaterThan(before);
    await complete(page);
    await expect.poll(() => page.locator(".notice").count()).toBe(0);
    // One that does not say who it is, as its traces say that they are the same.
    stage.server.instance = null;
    await reconnected(page);
    const after = stage.server.asked.length;
    await reconnected(page);
    expect(stage.server.asked.length).toBe(after);
    stage.server.filterRead = 0.5;
    await reconnected(page);
    await expect.poll(() => stage.server.asked.length).toBeGreaterThan(after);
    await page.close();
  });

  test("asks again whether the server can tell of some events, if it could not be asked", async () => {
    stage.server.descriptionRefusal = 503;
    const [described, asked] = [stage.server.askedDescription, stage.server.asked.length];
    const page = await open("#event=sched_wakeup");
    await expect.poll(() => stage.server.askedDescription).toBeGreaterThan(described);
    expect(stage.server.asked.slice(asked).filter((search) => search.includes("event="))).toEqual([]);
    stage.server.descriptionRefusal = null;
    await expect.poll(() => stage.server.asked.slice(asked).filter((search) => search.includes("event=")).length).toBeGreaterThan(0);
    await complete(page);
    await expect.poll(() => page.locator(".notice").count()).toBe(0);
    await page.close();
    stage.expectFaults(/status of 503/);
  });

  test("says that events of a filter are still looked for, and does not ask at each step of that", async () => {
    stage.server.filterRead = 0.1;
    const page = await open("#event=sched_wakeup");
    await expect.poll(() => page.locator(".badge").textContent()).toBe("filtering");
    await complete(page);
    await picture(page, "filtering");
    const before = stage.server.askedCatalogue;
    for (let step = 2; step <= 50; step++) {
      stage.server.filterRead = step / 50;
      stage.server.tell();
    }
    await expect.poll(() => page.locator(".badge").textContent()).toBe("complete");
    expect(stage.server.askedCatalogue - before).toBeGreaterThan(0);
    expect(stage.server.askedCatalogue - before).toBeLessThan(25);
    await page.close();
  });

  test("a tab that cannot be shown says why, and is tried again; all else goes on", async () => {
    const page = await open();
    await complete(page);
    // As a fault in what the tab is made of would do.
    await page.evaluate(() => {
      const plain = Number.prototype.toLocaleString;
      Number.prototype.toLocaleString = () => {
        throw new Error("numbers cannot be written.");
      };
      (globalThis as unknown as Mended).mend = () => {
        Number.prototype.toLocaleString = plain;
      };
    });
    await page.keyboard.press("b");
    const broken = page.locator(".panel.rail").getByRole("alert");
    await expect.poll(() => broken.locator("span").textContent()).toBe("“Tracks” cannot be shown: numbers cannot be written.");
    await picture(page, "broken");
    await page.keyboard.press("w");
    expect((await windowOf(page)).span).toBeLessThan(BigInt(SPAN));
    await page.getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => broken.count()).toBe(1);
    await page.evaluate(() => (globalThis as unknown as Mended).mend());
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("tree", { name: "Tracks" }).waitFor();
    expect(await broken.count()).toBe(0);
    await page.close();
    stage.expectFaults(/numbers cannot be written/);
  });

  test("never has more than two questions for tiles on the way", async () => {
    const page = await open();
    await complete(page);
    // Counted where they are asked: a browser tells of requests that were let go of late, and after those that follow them.
    await page.evaluate(countQuestions);
    for (let step = 0; step < 30; step++) {
      await page.keyboard.press(step % 7 === 6 ? "s" : "w");
      await page.keyboard.press(step % 2 === 0 ? "d" : "a");
    }
    await complete(page);
    const { asked, most } = await page.evaluate(() => (globalThis as unknown as Counted).counted);
    expect(asked).toBeGreaterThan(2);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(2);
    await page.close();
  });

  test.each(["light", "dark"] as const)("colours CPUs by applications, and asks nobody for that, in the %s", async (colorScheme) => {
    const page = await open("#at=1795219372300000000~20000000&pin=cpu/0/0/thread", { colorScheme });
    await complete(page);
    const drawn = (): Promise<string> =>
      page.$eval(".area canvas", (canvas) => {
        const { width } = canvas as HTMLCanvasElement;
        const data = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 30, width, 1).data ?? new Uint8ClampedArray();
        return [...new Uint32Array(data.buffer)].join();
      });
    const [byThread, asked] = [await drawn(), stage.server.asked.length];
    await picture(page, `colours-threads-${colorScheme}`);
    await page.keyboard.press("c");
    await complete(page);
    await rested(page);
    const byApplication = await drawn();
    await picture(page, `colours-applications-${colorScheme}`);
    expect(byApplication).not.toBe(byThread);
    expect(new URL(page.url()).hash).toContain("colours=application");
    expect(await page.getByRole("button", { name: "Colours of applications" }).getAttribute("aria-pressed")).toBe("true");
    // Whoever opens that URL sees the same, and the button takes it back.
    await page.reload();
    await complete(page);
    expect(await drawn()).toBe(byApplication);
    const before = stage.server.asked.length;
    await page.getByRole("button", { name: "Colours of applications" }).click();
    await complete(page);
    await rested(page);
    expect([await drawn(), new URL(page.url()).hash.includes("colours=")]).toEqual([byThread, false]);
    expect(stage.server.asked.length).toBe(before);
    expect(asked).toBeGreaterThan(0);
    await page.close();
  });
});

interface Mended {
  mend(): void;
}

interface Counted {
  counted: { asked: number; now: number; most: number };
}

/** Has a page count its questions for tiles that are neither let go of nor answered wholly. Runs in the page. */
function countQuestions(): void {
  const counted = { asked: 0, now: 0, most: 0 };
  (globalThis as unknown as Counted).counted = counted;
  const plain = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    if (!String(input).includes("/tiles")) {
      return plain(input, init);
    }
    counted.asked++;
    counted.most = Math.max(counted.most, ++counted.now);
    let isOver = false;
    const end = (): void => {
      counted.now -= isOver ? 0 : 1;
      isOver = true;
    };
    init?.signal?.addEventListener("abort", end);
    try {
      const response = await plain(input, init);
      if (response.status === 304) {
        end();
      }
      const body = response.arrayBuffer.bind(response);
      response.arrayBuffer = async () => {
        const bytes = await body();
        end();
        return bytes;
      };
      return response;
    } catch (error) {
      end();
      throw error;
    }
  };
}
