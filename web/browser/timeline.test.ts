// The timeline at work: pinned rows, names, colors, the selection and its edges, the way back; with a server that always says the same.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { findings } from "./axe.ts";
import { rested } from "./browser.ts";
import { BEGIN, INVENTED, SPAN } from "./invented.ts";
import { PATIENCE_MS } from "./patience.ts";
import { complete, picture, withInvented, type Opened } from "./stage.ts";

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

withInvented("the timeline", (stage) => {
  const open = async (hash = "", options: Opened = {}): Promise<Page> => {
    const page = await stage.visit(hash, { height: 420, ...options });
    await complete(page);
    return page;
  };

  async function boxOf(page: Page, selector: string): Promise<Box> {
    return (await page.locator(selector).first().boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  }

  /** The names on the screen with their places, from top to bottom. */
  function names(page: Page): Promise<string[]> {
    return page.$$eval(".label", (labels) => labels.map((label) => label.querySelector(".name, button")?.textContent ?? ""));
  }

  const hashOf = async (page: Page): Promise<string> => {
    await rested(page);
    return new URL(page.url()).hash;
  };

  test("pinned rows stay on top while all others scroll, with the parts of the thread that is pinned", async () => {
    const page = await open("#arrows=hidden");
    await page.mouse.move(700, (await boxOf(page, ".label:has-text('nginx')")).y + 10);
    await page.keyboard.press("p");
    await expect.poll(() => names(page).then((all) => all.slice(0, 3))).toEqual(["▾Pinned 2", "nginx (4711)", "events"]);
    expect(await hashOf(page)).toContain("pin=thread/0/0/state");
    await page.mouse.wheel(0, 120);
    await page.waitForSelector(".pinned-edge.over");
    await complete(page);
    await picture(page, "pinned-scrolled");
    const [head, first] = [await boxOf(page, ".label.fixed"), await boxOf(page, ".label.fixed .name")];
    const area = await boxOf(page, ".area");
    expect([head.y, Math.round(first.y) >= area.y + 24]).toEqual([area.y, true]);
    // The pixels of the fixed rows are those of the same rows where nothing is scrolled.
    const pixels = (): Promise<number> =>
      page.$eval(".area canvas", (canvas) => (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 24, (canvas as HTMLCanvasElement).width, 18).data.reduce((sum, value) => (sum * 31 + value) % 1_000_000_007, 7) ?? 0);
    const scrolled = await pixels();
    // The pointer means the row that it is on.
    await page.mouse.move(area.x + 300, area.y + 34);
    await expect.poll(() => page.locator(".label.below .name").textContent()).toBe("nginx (4711)");
    await page.mouse.move(area.x + 300, area.y + 90);
    const meant = await page.locator(".label.below .name").textContent();
    expect(meant).not.toBe("nginx (4711)");
    expect(Math.abs((await boxOf(page, ".label.below")).y - (area.y + 90))).toBeLessThan(20);
    await page.mouse.move(area.x + 300, area.y - 40);
    await page.$eval(".scroller", (scroller) => (scroller.scrollTop = 0));
    await page.waitForSelector(".pinned-edge:not(.over)");
    await complete(page);
    expect(await pixels()).toBe(scrolled);
    // Parts of the thread go with it.
    await page.getByRole("button", { name: "Unpin events" }).first().click();
    await page.waitForSelector(".label.fixed", { state: "detached" });
    await page.close();
  });

  test("the column of names is as wide as it is dragged, or as the longest name, and stays so", async () => {
    const page = await open();
    const edge = page.getByRole("separator", { name: "Size: names" });
    const width = (): Promise<number> => page.$eval(".labels", (labels) => labels.clientWidth);
    const before = await width();
    const at = await boxOf(page, ".names-edge .edge");
    await page.mouse.move(at.x + at.width / 2, at.y + 150);
    await page.mouse.down();
    await page.mouse.move(at.x + at.width / 2 + 60, at.y + 150, { steps: 3 });
    await page.mouse.up();
    await expect.poll(width).toBe(before + 60);
    // The ruler goes along, and the canvas is as wide as there is room.
    await complete(page);
    expect(await page.$eval(".area canvas", (canvas) => (canvas as HTMLCanvasElement).width - canvas.clientWidth)).toBe(0);
    expect((await boxOf(page, ".ruler")).x).toBe((await boxOf(page, ".area")).x);
    const wide = await width();
    expect(await hashOf(page)).toContain(`names=${wide + 1}`);
    await page.reload();
    await complete(page);
    expect(await width()).toBe(wide);
    await edge.dblclick();
    await expect.poll(width).toBeLessThan(before);
    const cut = await page.$$eval(".label .name", (all) => all.filter((name) => name.scrollWidth > name.clientWidth).length);
    expect(cut).toBe(0);
    const fitted = await width();
    await edge.focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(width).toBe(fitted - 16);
    await page.keyboard.press("Enter");
    await expect.poll(width).toBe(fitted);
    await page.close();
  });

  test("the legend tells which colors mean what, and filters by them, with keys alone", async () => {
    const page = await open("", { height: 720 });
    await page.keyboard.press("k");
    const legend = page.getByRole("toolbar", { name: "Legend" });
    const entry = (name: string): ReturnType<Page["locator"]> => legend.getByRole("button", { name, exact: true });
    await entry("blocked").waitFor();
    expect(await legend.getByRole("group").evaluateAll((groups) => groups.map((group) => group.getAttribute("aria-label")))).toEqual(["States", "Threads", "Events"]);
    // The swatch has the color of the bars.
    const swatch = await entry("blocked").locator(".legend-swatch").evaluate((element) => getComputedStyle(element).backgroundColor);
    const has = (colour: string): Promise<boolean> =>
      page.$eval(
        ".area canvas",
        (canvas, wanted) => {
          const { width, height } = canvas as HTMLCanvasElement;
          const data = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
          for (let at = 0; at < data.length; at += 4) {
            if (`rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})` === wanted) {
              return true;
            }
          }
          return false;
        },
        colour,
      );
    expect(await has(swatch)).toBe(true);
    await picture(page, "legend-light");
    // One entry is reached by Tab, the others by arrows; the choice is in the header and in the URL.
    await legend.locator("[tabindex='0'].legend-entry").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await expect.poll(() => legend.locator("[aria-pressed='true']").allTextContents()).toEqual(["running on CPU 0"]);
    await expect.poll(() => has(swatch)).toBe(false);
    expect(await page.getByRole("list", { name: "Filter" }).textContent()).toContain("running on CPU 0");
    expect(await hashOf(page)).toContain("legend=1&state=doing:running+on+CPU+0");
    await page.keyboard.press("Enter");
    await expect.poll(() => has(swatch)).toBe(true);
    // A thread: its row stays, others are paler, as with the panel of filters.
    await entry("make (1234)").click();
    await expect.poll(() => page.locator(".label.dimmed").count()).toBeGreaterThan(3);
    expect(await hashOf(page)).toContain("thread=1234");
    await picture(page, "legend-thread");
    await entry("bash (801)").click({ modifiers: ["Control"] });
    await expect.poll(() => legend.locator("[aria-pressed='true']").allTextContents()).toEqual(["bash (801)", "make (1234)"]);
    await page.getByRole("button", { name: /^Remove filter/ }).click();
    await entry("sched_switch").click({ modifiers: ["Alt"] });
    expect(await hashOf(page)).toContain("no-event=sched_switch");
    await page.getByRole("button", { name: "Close the legend" }).click();
    await legend.waitFor({ state: "detached" });
    await page.close();
  });

  test("the legend does not change with its own height", async () => {
    const measured = await open("#fold=Threads", { height: 900 });
    // The first row with values of events begins right above the lower edge, so that a legend of one line covers it.
    const [row, area] = [await boxOf(measured, ".label:has-text('events of CPU')"), await boxOf(measured, ".area")];
    await measured.close();
    // A page of its own: one that is open may write its address just then.
    const page = await open("#fold=Threads&legend=1", { height: Math.round(900 - (area.y + area.height - row.y) + 4) });
    await page.getByRole("toolbar", { name: "Legend" }).getByRole("group", { name: "Events" }).waitFor();
    await expect.poll(async () => (await boxOf(page, ".area")).height).toBeLessThan(row.y - area.y);
    await page.close();
  });

  test("in small windows panels do not cover each other, and some rows stay", async () => {
    const page = await open("#legend=1&panels=rail.tracks~drawer.events~inspector", { width: 700, height: 900, colorScheme: "dark" });
    await page.waitForSelector(".event-body .event-row");
    const bottom = ({ y, height }: Box): number => y + height;
    const [rail, inspector, drawer] = [await boxOf(page, ".rail"), await boxOf(page, ".inspector"), await boxOf(page, ".drawer")];
    expect([bottom(rail) <= inspector.y + 1, bottom(inspector) <= drawer.y + 1]).toEqual([true, true]);
    await picture(page, "small-panels");
    await page.keyboard.press("b");
    await page.keyboard.press("i");
    await page.setViewportSize({ width: 700, height: 500 });
    await expect.poll(async () => Math.round(bottom(await boxOf(page, ".status")))).toBe(500);
    expect((await boxOf(page, ".area")).height).toBeGreaterThan(60);
    await picture(page, "small-low");
    await page.close();
  });

  test.each([["light", 700], ["dark", 400], ["dark", 1440]] as const)("the legend fits: %s, %i pixels", async (colorScheme, width) => {
    const page = await open(`#legend=1&thread=1234&selected=${BEGIN + 500_000_000n}~800000000`, { colorScheme, width, height: 700 });
    await page.getByRole("toolbar", { name: "Legend" }).getByRole("button", { name: "blocked" }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    const legend = await boxOf(page, ".legend");
    expect([legend.height < 90, legend.y + legend.height <= (await boxOf(page, ".status")).y + 1]).toEqual([true, true]);
    await picture(page, `legend-${colorScheme}-${width}`);
    expect(await findings(page)).toEqual([]);
    // It goes along when a panel takes a part of the room; in narrow windows the panel is below it.
    if (width > 1_000) {
      await page.keyboard.press("i");
      const panel = await boxOf(page, ".panel.inspector");
      await expect.poll(async () => (await boxOf(page, ".legend")).x + (await boxOf(page, ".legend")).width).toBeLessThanOrEqual(panel.x + 1);
    }
    await page.close();
  });

  test("with only active rows, rows stay as they are until it is known whether something happens in another window", async () => {
    const page = await open(`#active=1&at=${BEGIN + 1_000_000_000n}~2000000`, { height: 720 });
    await page.mouse.move(700, 300);
    const shown = async (): Promise<string[]> => {
      await complete(page);
      await rested(page);
      return names(page);
    };
    await expect.poll(async () => (await shown()).length).toBeLessThan(21);
    const before = await shown();
    // Tiles of another window do not come: nothing of it is known.
    let release = (): void => undefined;
    const held = new Promise<void>((done) => {
      release = done;
    });
    await page.route("**/tiles?*", async (route) => {
      await held;
      await route.continue();
    });
    await page.keyboard.press("Shift+D");
    await page.keyboard.press("Shift+D");
    await page.keyboard.press("s");
    await rested(page);
    await rested(page);
    expect(await names(page)).toEqual(before);
    release();
    await expect.poll(shown).not.toEqual(before);
    // Switched off and on again, idle rows are gone at once.
    const now = await shown();
    await page.keyboard.press("u");
    await expect.poll(async () => (await shown()).length).toBeGreaterThan(now.length);
    await page.close();
  });

  test("Back goes to the window before a jump, however much was moved and zoomed since, and leaves all else as it is", async () => {
    const page = await open();
    const entries = await page.evaluate(() => history.length);
    const window = (at: number, span: number): string => `at=${BEGIN + BigInt(at)}~${span}`;
    /** Jumps that follow each other at once are one. */
    const jump = async (act: () => Promise<unknown>): Promise<string> => {
      await page.waitForTimeout(450);
      await act();
      return hashOf(page);
    };
    for (const key of ["w", "w", "d", "w", "a", "s"]) {
      await page.keyboard.press(key);
    }
    const near = await hashOf(page);
    expect([near.startsWith("#at="), await page.evaluate(() => history.length)]).toEqual([true, entries]);
    await jump(() => page.keyboard.press("Home"));
    expect(await page.evaluate(() => history.length)).toBe(entries + 1);
    await page.keyboard.press("k");
    const box = await boxOf(page, ".ruler");
    await jump(() => page.mouse.dblclick(box.x + box.width / 2, box.y + 15));
    const zoomed = await hashOf(page);
    expect(zoomed).toContain(window(750_000_000, 500_000_000).slice(0, 8));
    await page.goBack();
    await expect.poll(() => hashOf(page)).toBe("#legend=1");
    await page.goBack();
    await expect.poll(() => hashOf(page)).toBe(`${near}&legend=1`);
    await page.goForward();
    await page.goForward();
    await expect.poll(() => hashOf(page)).toBe(zoomed);
    // One comes back by Backspace as well, which is a jump, too.
    await jump(() => page.keyboard.press("Backspace"));
    await page.goBack();
    await expect.poll(() => hashOf(page)).toBe(zoomed);
    // A URL that is entered is another view.
    await page.evaluate((hash) => (location.hash = hash), window(5_000, 1_000));
    await page.waitForSelector(".legend", { state: "detached" });
    await expect.poll(() => hashOf(page)).toBe(`#${window(5_000, 1_000)}`);
    await page.goBack();
    await expect.poll(() => hashOf(page)).toBe(zoomed.replace("&legend=1", ""));
    await page.close();
  });

  test("steps begin at the pointer where nothing is picked, and say why they end, also while the panel is closed", async () => {
    const page = await open("#panels=", { height: 720 });
    const said = (): Promise<string | null> => page.locator(".picker-note").textContent();
    await page.keyboard.press(".");
    await expect.poll(said).toContain("Nothing is picked");
    const row = await boxOf(page, ".label:has-text('make')");
    await page.mouse.move(700, row.y + 10);
    await page.keyboard.press(".");
    await expect.poll(() => hashOf(page)).toMatch(/item=\d+~thread/);
    const timeOf = async (): Promise<bigint> => BigInt(/item=(\d+)/.exec(await hashOf(page))?.[1] ?? 0);
    const first = await timeOf();
    await page.keyboard.press(".");
    await expect.poll(timeOf).toBeGreaterThan(first);
    await page.keyboard.press(",");
    await expect.poll(timeOf).toBeLessThanOrEqual(first);
    // At the ends of the trace there is nothing before and behind.
    await page.goto(page.url().replace(/#.*/, `#item=${BEGIN}~thread/0/5/state`));
    await page.reload();
    await complete(page);
    await page.keyboard.press(",");
    await expect.poll(said).toBe("There is nothing before this on its track.");
    await page.keyboard.press("Escape");
    // Along an arrow from the CPU below the pointer.
    await page.mouse.move(700, (await boxOf(page, ".label:has-text('CPU 1')")).y + 10);
    await page.keyboard.press("]");
    await expect.poll(() => hashOf(page)).toMatch(/item=\d+~(wakeups|cpu)/);
    await page.close();
  });

  test("a selection snaps to the edges of bars, exactly; its edges are moved by the pointer and by keys", async () => {
    const run = (INVENTED[0]?.runs ?? []).find(({ begin, end }) => end - begin > 4_000_000 && begin > 10_000_000) ?? { begin: 0, end: 0 };
    const [begin, span] = [run.begin - 2_000_000, run.end - run.begin + 4_000_000];
    const page = await open(`#arrows=hidden&panels=inspector&at=${BEGIN + BigInt(begin)}~${span}`, { height: 720 });
    const area = await boxOf(page, ".area");
    const y = (await boxOf(page, ".label:has-text('CPU 0')")).y + 10;
    const x = (time: number): number => area.x + ((time - begin) / span) * area.width;
    const selected = async (): Promise<readonly [bigint, bigint]> => {
      const found = /selected=(\d+)~(\d+)/.exec(await hashOf(page));
      return [BigInt(found?.[1] ?? 0) - BEGIN, BigInt(found?.[1] ?? 0) - BEGIN + BigInt(found?.[2] ?? 0)];
    };
    const drag = async (from: number, to: number): Promise<void> => {
      await page.mouse.move(from, y);
      await page.mouse.down();
      await page.mouse.move((from + to) / 2, y);
      await page.mouse.move(to, y, { steps: 3 });
    };
    await drag(x(run.begin) + 4, x(run.end) - 4);
    await page.waitForSelector(".snap-mark");
    expect(await page.locator(".status").textContent()).toContain("with Ctrl anywhere");
    await picture(page, "snapping");
    await page.mouse.up();
    await page.waitForSelector(".snap-mark", { state: "detached" });
    await expect.poll(selected).toEqual([BigInt(run.begin), BigInt(run.end)]);
    // The edge is moved elsewhere; with Ctrl it stays where the pointer is.
    await page.keyboard.down("Control");
    await drag(x(run.end), x(run.end) - 4);
    await page.mouse.up();
    await page.keyboard.up("Control");
    await expect.poll(async () => (await selected())[1]).toBeLessThan(BigInt(run.end));
    expect((await selected())[0]).toBe(BigInt(run.begin));
    expect(await hashOf(page)).toContain("on=track");
    // By keys to the next edge, and pixel by pixel.
    const end = page.getByRole("slider", { name: "End of the selection" });
    await end.focus();
    await page.keyboard.press("Control+ArrowRight");
    await expect.poll(selected).toEqual([BigInt(run.begin), BigInt(run.end)]);
    await page.keyboard.press("Shift+ArrowRight");
    const pixel = span / area.width;
    await expect.poll(async () => Math.round((Number((await selected())[1]) - run.end) / pixel)).toBe(10);
    const start = page.getByRole("slider", { name: "Begin of the selection" });
    await start.focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(async () => Math.round((run.begin - Number((await selected())[0])) / pixel)).toBe(1);
    await picture(page, "selection-edges");
    await page.close();
  });

  test("the keys bring an edge of the selection to each edge of a bar, however many are in a pixel", async () => {
    const runs = INVENTED[0]?.runs ?? [];
    const short = runs.findIndex((_, at) => runs.slice(at, at + 24).every(({ begin, end }) => end - begin < 500_000));
    const edges = runs.slice(short, short + 24).map(({ end }) => BigInt(end));
    const from = edges[20] ?? 0n;
    const on = encodeURIComponent("track cpu/0/0/thread");
    const page = await open(`#arrows=hidden&selected=${BEGIN + BigInt(SPAN / 50)}~${from - BigInt(SPAN / 50)}&on=${on}&on=${on}`, { height: 720 });
    const selectedTo = async (): Promise<bigint> => {
      const found = /selected=(\d+)~(\d+)/.exec(await hashOf(page));
      return BigInt(found?.[1] ?? 0) + BigInt(found?.[2] ?? 0) - BEGIN;
    };
    await page.getByRole("slider", { name: "End of the selection" }).focus();
    for (const edge of edges.slice(10, 20).reverse()) {
      await page.keyboard.press("Control+ArrowLeft");
      await expect.poll(selectedTo).toBe(edge);
    }
    for (const edge of edges.slice(11, 21)) {
      await page.keyboard.press("Control+ArrowRight");
      await expect.poll(selectedTo).toBe(edge);
    }
    // A key that is held down goes on while no answer comes: from bucket to bucket.
    let answer = (): void => undefined;
    const held = new Promise<void>((done) => (answer = done));
    await page.route("**/items?*", async (route) => {
      await held;
      await route.continue();
    });
    for (let press = 0; press < 6; press++) {
      await page.keyboard.press("Control+ArrowRight");
    }
    await expect.poll(selectedTo).toBeGreaterThan(from);
    answer();
    const ends = new Set(runs.map(({ end }) => BigInt(end)));
    await expect.poll(async () => ends.has(await selectedTo())).toBe(true);
    await page.close();
  });

  test("names that would move or hide the text around them do not", async () => {
    const names = { "nginx (4711)": "ng\u202Ex (4711)", "postgres (4712)": "שרת (4712)", "sched_switch": "sched\u2067switch", "invented": "inv\u202Dented", "Counters": "Count\u202Eers" };
    const renamed = (text: string): string => Object.entries(names).reduce((all, [name, other]) => all.replaceAll(`"${name}"`, JSON.stringify(other)), text);
    const page = await stage.visit("", { height: 720 });
    await page.route(/\/api\/v1\/(catalogue|traces|items)/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: renamed(await response.text()) });
    });
    await page.reload();
    await complete(page);
    const shown = await page.locator(".label .name").allTextContents();
    expect(shown).toContain("ng\\u{202E}x (4711)");
    expect(shown).toContain("\u2068שרת (4712)\u2069");
    expect(await page.locator(".label.head").allTextContents()).toContain("▾Count\\u{202E}ers 1");
    expect(await page.locator(".chip").first().textContent()).toBe("inv\\u{202D}ented");
    // Everywhere else, too: the tooltip and the panel of an item, the tree, the filters and their chips, the legend, the list of events.
    await page.mouse.click(700, (await boxOf(page, ".label:has-text('4711')")).y + 10);
    await page.getByRole("region", { name: "Right panel" }).getByText("ng\\u{202E}x").first().waitFor();
    for (const key of ["k", "b", "Alt+1"]) {
      await page.keyboard.press(key);
    }
    await page.getByRole("toolbar", { name: "Legend" }).getByRole("button", { name: /switch/ }).click();
    await complete(page);
    await rested(page);
    // Something else on the screen may still move, which hides it.
    await expect
      .poll(async () => {
        await page.mouse.move(700, (await boxOf(page, ".label:has-text('4712')")).y + 10);
        return page.locator(".tooltip").waitFor({ timeout: PATIENCE_MS / 10 }).then(() => true, () => page.mouse.move(702, 300).then(() => false));
      })
      .toBe(true);
    await expect.poll(() => page.locator(".filter-chip").textContent()).toContain("sched\\u{2067}switch");
    await rested(page);
    const raw = await page.evaluate(() => {
      const found: string[] = [];
      const look = (text: string | null): void => void (/[\u202a-\u202e\u2066\u2067]/.test(text ?? "") && found.push(text ?? ""));
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode() !== null) {
        look(walker.currentNode.textContent);
      }
      document.querySelectorAll("[title], [aria-label]").forEach((element) => (look(element.getAttribute("title")), look(element.getAttribute("aria-label"))));
      look(location.href);
      return found;
    });
    expect(raw).toEqual([]);
    await picture(page, "bidi");
    // The filter, and so the URL, have the name as it is recorded.
    expect(new URLSearchParams((await hashOf(page)).slice(1)).get("event")).toBe("sched\u2067switch");
    await page.close();
    // The server knows no event of that name, and its message has the name.
    stage.expectFaults(/status of 400/);
  });

  test("threads of one process have different colors, the same after another look", async () => {
    interface Listed {
      readonly tracks: { number: number; tid: number | null; process: unknown }[];
      readonly values: { label: string; kind: string; colour: number; track: unknown }[];
    }
    const page = await stage.visit("", { height: 720 });
    await page.route(/\/api\/v1\/catalogue/, async (route) => {
      const response = await route.fetch();
      const listed = JSON.parse(await response.text()) as Listed;
      listed.tracks.filter(({ tid }) => tid != null).forEach((track) => (track.process = 4711));
      // Hashes that would give all of them one color.
      listed.values.filter(({ kind, label }) => kind === "thread" && label !== "idle").forEach((value) => {
        const tid = Number(/\((\d+)\)/.exec(value.label)?.[1]);
        [value.colour, value.track] = [7, listed.tracks.find((track) => track.tid === tid)?.number ?? null];
      });
      await route.fulfill({ response, body: JSON.stringify(listed) });
    });
    const swatches = async (hash: string): Promise<string[]> => {
      await page.goto(`${stage.server.url}/${hash}`);
      await page.reload();
      await complete(page);
      const threads = page.getByRole("toolbar", { name: "Legend" }).getByRole("group", { name: "Threads" });
      await expect.poll(() => threads.locator("button").count()).toBe(5);
      return threads.locator("button .legend-swatch").evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
    };
    const first = await swatches("#legend=1");
    expect(new Set(first).size).toBe(5);
    // Scrolled elsewhere, the server tells of values in another order.
    expect(await swatches("#legend=1&down=60&fold=Events")).toEqual(first);
    await page.close();
  });
});
