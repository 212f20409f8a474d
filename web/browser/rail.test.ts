// The panel at the left and the box in the header, as a person uses them: filters, tracks, finding. With a server that always says the same, and
// with traces that were recorded.

import type { Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { rested } from "./browser.ts";
import { INVENTED } from "./invented.ts";
import { complete, DEMO, KERNEL, picture, withInvented, withRecorded, type Opened } from "./stage.ts";

async function ready(opening: Promise<Page>): Promise<Page> {
  const page = await opening;
  await page.waitForSelector(".badge.good");
  await complete(page);
  return page;
}

/** What stands behind `#` once the page has rested. */
async function hashOf(page: Page): Promise<string> {
  await rested(page);
  return decodeURIComponent(new URL(page.url()).hash.slice(1).replaceAll("+", " "));
}

/** Names of the rows that can be seen, from top to bottom. */
function rowNames(page: Page): Promise<string[]> {
  return page.$$eval(".labels .label", (labels) => {
    const box = document.querySelector(".area")?.getBoundingClientRect();
    const isSeen = (label: Element): boolean => box !== undefined && label.getBoundingClientRect().bottom > box.top && label.getBoundingClientRect().top < box.bottom;
    return labels.filter(isSeen).map((label) => (label.querySelector(".name") ?? label).textContent?.replace(/^[▾▸]/, "").trim() ?? "");
  });
}

withInvented("the left panel and the box", (stage) => {
  beforeEach(() => {
    stage.server.canFilter = true;
    stage.server.asked.length = 0;
  });

  const open = (hash = "", options: Opened = {}): Promise<Page> => ready(stage.visit(hash, { height: 720, ...options }));
  const tracksOf = (search: string): number[] => (new URLSearchParams(search).get("tracks") ?? "").split(",").map(Number);
  const kindOf = (track: number): string => (INVENTED[track]?.track as { readonly kind: string } | undefined)?.kind ?? "";

  test("events and arrows follow the filter, all else stays what it is", async () => {
    const page = await open("#event=sched_wakeup");
    await expect.poll(() => stage.server.asked.filter((search) => search.includes("event=sched_wakeup")).length).toBeGreaterThan(0);
    await page.waitForSelector('main[data-complete="true"]');
    const [some, all] = [stage.server.asked.filter((search) => search.includes("event=")), stage.server.asked.filter((search) => !search.includes("event="))];
    expect(new Set(some.flatMap(tracksOf).map(kindOf))).toEqual(new Set(["instants", "arrows"]));
    expect(all.flatMap(tracksOf).map(kindOf)).toContain("states");
    const label = (await page.locator(".label", { hasText: "events of CPU 1" }).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(700, label.y + label.height / 2);
    const below = page.locator(".status .below");
    await expect.poll(() => below.textContent()).toMatch(/events of CPU 1: (?:nothing|\d+ in \S+ \S+: sched_wakeup)$/);
    await picture(page, "filter-events");
    await page.getByRole("button", { name: "Remove filter: event sched_wakeup" }).click();
    expect(await hashOf(page)).toBe("");
    await page.waitForSelector('main[data-complete="true"]');
    await page.mouse.move(701, label.y + label.height / 2);
    await expect.poll(() => below.textContent()).toMatch(/events of CPU 1: .*(?:sched_switch|of them)/);
    await page.close();
  });

  test("a server that cannot tell of some events is not asked for them", async () => {
    stage.server.canFilter = false;
    const page = await open("#event=sched_wakeup");
    await rested(page);
    await page.waitForSelector('main[data-complete="true"]');
    expect(stage.server.asked.length).toBeGreaterThan(0);
    expect(stage.server.asked.filter((search) => search.includes("event="))).toEqual([]);
    await page.close();
  });

  test("rows of what is not chosen are paler, or not there", async () => {
    const page = await open("#cpu=1-2");
    await expect.poll(() => page.locator(".label.dimmed .name").allTextContents()).toEqual(["CPU 0", "CPU 3", "events of CPU 0", "events of CPU 3"]);
    await picture(page, "filter-dim");
    // Beside the modes letters are commands still, and arrows choose.
    await page.keyboard.press("b");
    await page.getByRole("tab", { name: "Filters" }).click();
    await page.locator(".modes").getByText("dim").click();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => hashOf(page)).toContain("mode=hide");
    await page.keyboard.press("b");
    await page.waitForSelector(".rail", { state: "detached" });
    const hidden = await open("#cpu=1-2&mode=hide");
    await expect.poll(async () => (await rowNames(hidden)).filter((name) => name.startsWith("CPU "))).toEqual(["CPU 1", "CPU 2"]);
    await page.close();
    await hidden.close();
  });

  test("tracks are searched, hidden, pinned and moved by keys alone, and the URL shows the same again", async () => {
    const page = await open();
    await page.keyboard.press("b");
    await page.getByRole("searchbox", { name: "Search tracks" }).fill("postgres");
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(2);
    await page.getByRole("searchbox", { name: "Search tracks" }).fill("");
    const cpu = page.getByRole("treeitem", { name: /^CPU 2/ });
    await cpu.focus();
    await cpu.click();
    await page.keyboard.press("Shift+ArrowDown");
    await page.keyboard.press("Space");
    await expect.poll(() => rowNames(page)).not.toContain("CPU 3");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("p");
    await page.keyboard.press("+");
    await expect.poll(() => rowNames(page)).toContain("Pinned 1");
    await page.getByRole("treeitem", { name: /^Threads/ }).click();
    await page.keyboard.press("Alt+ArrowUp");
    const hash = await hashOf(page);
    expect(hash).toContain("pin=cpu/0/0/thread&hide=cpu/0/2/thread&hide=cpu/0/3/thread&group=Threads&group=CPUs");
    expect(hash).toContain("large=cpu/0/0/thread");
    await picture(page, "tracks");
    const again = await open(new URL(page.url()).hash, { colorScheme: "dark" });
    expect(await rowNames(again)).toEqual(await rowNames(page));
    await picture(again, "tracks-dark");
    await again.getByRole("button", { name: "Show all" }).click();
    await expect.poll(() => rowNames(again)).toContain("CPU 3");
    await page.close();
    await again.close();
  });

  test("layouts are kept under a name", async () => {
    const page = await open("#panels=rail.tracks&hide=cpu/0/2/thread&rows=large");
    await page.getByText("Layouts").click();
    await page.getByLabel("Name of the layout").fill("without CPU 2");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("button", { name: "Lower rows" }).click();
    await expect.poll(() => rowNames(page)).toContain("CPU 2");
    await page.getByRole("button", { name: "without CPU 2", exact: true }).click();
    await expect.poll(() => hashOf(page)).toContain("hide=cpu/0/2/thread&rows=large");
    await page.getByRole("button", { name: "Forget layout without CPU 2" }).click();
    await expect.poll(() => page.locator(".kept li").count()).toBe(0);
    await page.close();
  });

  test("rows are scrolled by the wheel, and made higher by it with Ctrl and Shift", async () => {
    const page = await open("", { height: 420 });
    expect((await rowNames(page))[0]).toMatch(/^CPUs/);
    await page.mouse.move(700, 200);
    await page.mouse.wheel(0, 150);
    await expect.poll(() => rowNames(page).then((names) => names[0])).not.toMatch(/^CPUs/);
    await page.mouse.move(710, 210);
    await expect.poll(() => hashOf(page)).toMatch(/^down=150$/);
    expect((await rowNames(page)).length).toBeGreaterThan(5);
    const before = (await rowNames(page)).length;
    await page.keyboard.down("Control");
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Shift");
    await page.keyboard.up("Control");
    await expect.poll(() => hashOf(page)).toContain("rows=large");
    expect((await rowNames(page)).length).toBeLessThan(before);
    await page.close();
  });

  test("the box finds tracks, events, times and commands, by keys alone", async () => {
    const page = await open("", { height: 420 });
    const box = page.getByRole("combobox", { name: /^Find/ });
    await page.keyboard.press("/");
    await page.keyboard.type("queue");
    await expect.poll(() => page.getByRole("option", { selected: true }).textContent()).toBe("trackqueueCounters");
    await picture(page, "omnibox");
    await page.keyboard.press("Enter");
    await expect.poll(() => rowNames(page)).toContain("queue");
    expect(await page.locator(".label.below .name").textContent()).toBe("queue");
    // Its name lights up, also where it was on the screen before.
    await page.evaluate(() => {
      const { animate } = Element.prototype;
      Element.prototype.animate = function (...given) {
        document.body.dataset["lit"] = this.querySelector(".name")?.textContent ?? "";
        return animate.apply(this, given);
      };
    });
    await page.keyboard.press("/");
    await page.keyboard.type("queue");
    await expect.poll(() => page.getByRole("option", { selected: true }).textContent()).toBe("trackqueueCounters");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate(() => document.body.dataset["lit"])).toBe("queue");
    // The next key is about what was found.
    await page.keyboard.press("p");
    await expect.poll(() => hashOf(page)).toContain("pin=counter/queue");
    await page.keyboard.press("w");
    await page.keyboard.press("w");
    await page.keyboard.press("@");
    await page.keyboard.type("1.5s");
    await expect.poll(() => page.getByRole("option", { selected: true }).textContent()).toMatch(/^time1\.5/);
    await page.keyboard.press("Enter");
    const mark = 1_795_219_372_253_260_578n + 1_500_000_000n;
    await expect.poll(async () => {
      const [, begin, span] = /at=(\d+)~(\d+)/.exec(await hashOf(page)) ?? [];
      return BigInt(begin ?? 0) <= mark && mark <= BigInt(begin ?? 0) + BigInt(span ?? 0);
    }).toBe(true);
    await page.keyboard.press("@");
    await page.keyboard.type("9 parsec");
    await expect.poll(() => page.locator(".omnibox-hits").textContent()).toContain("There is no unit “parsec”");
    await page.keyboard.press("Escape");
    expect(await box.inputValue()).toBe("");
    await page.keyboard.press("Control+Shift+P");
    await page.keyboard.type("all of the traces");
    await page.keyboard.press("Enter");
    await expect.poll(() => hashOf(page)).not.toContain("at=");
    await page.close();
  });
});

/** What is looked at, how its events of a thread are asked for, and an expression that some events match. Events of kernels name no thread, but their CPU
 * tells which one it ran. */
const TRACES = [
  { name: "demo", trace: DEMO, ofThread: (tid: string) => ({ filter: `$ctx.vtid == ${tid}` }), expression: "id > 10", namesThreads: true },
  { name: "kernel", trace: KERNEL, ofThread: (tid: string) => ({ threads: tid }), expression: "prev_prio < 20", namesThreads: false },
];

withRecorded("filters of %s", TRACES, (stage, { name, ofThread, expression, namesThreads }) => {
  const open = (hash: string, options: Opened = {}): Promise<Page> => ready(stage.visit(hash, { height: 720, ...options }));

  /** How many events the server counts. */
  async function counted(query: Record<string, string>): Promise<number> {
    const response = await fetch(`${stage.url}/api/v1/events/count?${new URLSearchParams(query)}`, { headers: { Authorization: `Bearer ${stage.token}` } });
    return ((await response.json()) as { readonly events: number }).events;
  }

  /** Numbers beside the lines of a list. */
  async function counts(page: Page, list: string): Promise<Map<string, number>> {
    const lines = await page.getByRole("region", { name: list }).locator(".choice").evaluateAll((all) => all.map((line) => [line.querySelector("input")?.getAttribute("aria-label") ?? "", line.querySelector(".count")?.textContent ?? ""]));
    return new Map(lines.map(([label = "", count = ""]) => [label, Number(count.replaceAll(",", ""))]));
  }

  test("lists say how many events there are of what, and what is chosen is what is counted", async () => {
    const page = await open("#panels=rail.filters");
    await expect.poll(async () => [...(await counts(page, "CPUs")).values()].reduce((sum, count) => sum + count, 0)).toBe(await counted({}));
    for (const [cpu, count] of [...(await counts(page, "CPUs"))].slice(0, 2)) {
      expect(count).toBe(await counted({ filter: `packet.cpu_id == ${cpu.replace("CPU ", "")}` }));
    }
    const [[event, count] = ["", 0]] = await counts(page, "Events");
    expect(count).toBe(await counted({ event }));
    await page.getByRole("region", { name: "Events" }).getByRole("button", { name: `Only ${event}`, exact: true }).click();
    await page.getByRole("button", { name: "Only CPU 1", exact: true }).click();
    const both = await counted({ event, filter: "packet.cpu_id == 1" });
    await expect.poll(() => page.locator(".expression-said").textContent()).toBe(`${both.toLocaleString("en")} events match`);
    expect(await hashOf(page)).toBe(`event=${event}&cpu=1&panels=rail.filters`);
    expect(await page.locator(".filter-chip").allTextContents()).toEqual(["CPU 1×", `event ${event}×`]);
    await picture(page, `${name}-filters`);
    // Events follow threads, too: nothing warns that they do not.
    await page.getByRole("region", { name: "Threads" }).locator(".choice-name").first().click();
    await expect.poll(() => page.locator(".filter-chip").count()).toBe(3);
    expect(await page.locator(".filter-chip", { hasText: "⚠" }).count()).toBe(0);
    // Where only CPUs tell the thread, tiles do not follow, and that is said.
    const isPartly = (text: string): boolean => text.includes("rows of events and the overview count all threads");
    const hints = await page.locator(".filter-chip").evaluateAll((chips) => chips.map((chip) => chip.getAttribute("title") ?? ""));
    expect(hints.filter(isPartly).length).toBe(namesThreads ? 0 : 1);
    expect(isPartly((await page.getByRole("region", { name: "Threads" }).textContent()) ?? "")).toBe(!namesThreads);
    await page.getByRole("button", { name: "Clear all" }).click();
    expect(await hashOf(page)).toBe("panels=rail.filters");
    await page.close();
  });

  test("sums and statistics say where they are of all threads", async () => {
    const page = await open("#panels=rail.filters&mode=exclude");
    await page.getByRole("region", { name: "Threads" }).locator(".choice-name").first().click();
    await page.keyboard.press("i");
    await page.keyboard.press("x");
    await expect.poll(() => page.locator(".sums caption").allTextContents().then((titles) => titles.some((title) => /^(?:All events|Events of)/.test(title)))).toBe(true);
    expect(await page.locator(".sums .faint", { hasText: "Events are those of all threads" }).count()).toBe(namesThreads ? 0 : 1);
    await page.keyboard.press("Alt+3");
    await page.getByRole("combobox", { name: "Analysis" }).selectOption("count");
    const said = page.locator(".analysis .tools [role=status]").last();
    await expect.poll(() => said.textContent()).toContain(namesThreads ? " · without what the filter excludes" : " · of all threads: this analysis cannot tell them apart");
    await page.getByRole("radio", { name: "Selection" }).click();
    await expect.poll(() => page.locator(".card").allTextContents().then((cards) => cards.map((card) => [card.split(" ")[0], card.includes("of all threads")]))).toEqual([["Events", !namesThreads], ["CPUs", false], ["System", false]]);
    await picture(page, `${name}-all-threads`);
    await page.close();
  });

  test("threads and applications say how many events they have, and an application stands for all of its threads", async () => {
    const page = await open("#panels=rail.filters&mode=hide");
    await expect.poll(async () => [...(await counts(page, "Applications")).values()][0] ?? 0).toBeGreaterThan(0);
    const [[thread, events] = ["", 0]] = await counts(page, "Threads");
    expect(events).toBeGreaterThan(0);
    expect(events).toBe(await counted(ofThread(/(\d+)\)?$/.exec(thread)?.[1] ?? "-1")));
    const [[application, all] = ["", 0]] = await counts(page, "Applications");
    await page.getByRole("region", { name: "Applications" }).locator(".choice-name").first().click();
    await expect.poll(() => hashOf(page)).toBe(`app=${application}&mode=hide&panels=rail.filters`);
    await expect.poll(() => page.locator(".filter-chip").allTextContents()).toEqual([`${application}×`]);
    await expect.poll(() => page.locator(".expression-said").textContent()).toBe(`${all.toLocaleString("en")} events match`);
    const left = await rowNames(page);
    expect(left.length).toBeGreaterThan(0);
    await picture(page, `${name}-applications`);
    const again = await open(new URL(page.url()).hash);
    await expect.poll(() => rowNames(again)).toEqual(left);
    await page.close();
    await again.close();
  });

  test("an expression says of which rows it means nothing", async () => {
    const page = await open(`#filter=${encodeURIComponent(expression)}&panels=rail.filters`);
    await expect.poll(() => page.locator(".hint.follow").textContent()).toContain("told by all of them");
    const notes = await page.$$eval(".labels .label:not(.head)", (labels) => labels.map((label) => label.getAttribute("title") ?? ""));
    expect(notes.length).toBeGreaterThan(0);
    for (const title of notes) {
      const follows = /\n(?:all\/events|events\/\d+\/\d+|thread\/\d+\/\d+\/events|latency\/\d+\/\w+|wakeups\/\d+|messages\/\d+)(?:\n|$)/.test(title);
      expect([title, title.includes("Told by all events")]).toEqual([title, !follows]);
    }
    await page.getByRole("button", { name: "Clear all" }).click();
    await expect.poll(() => page.locator(".hint.follow").count()).toBe(0);
    await page.close();
  });

  test("an expression is completed, said to be wrong where it is, counted, and kept", async () => {
    const page = await open("#panels=rail.filters", { colorScheme: "dark" });
    const box = page.getByRole("textbox", { name: "Filter expression" });
    const [field = ""] = expression.split(" ");
    await box.focus();
    // Fields are known once the server has said them.
    await expect
      .poll(async () => {
        await box.fill("");
        await box.pressSequentially(field.slice(0, -1));
        return page.getByRole("option").allTextContents();
      })
      .toContain(`${field} field`);
    await box.fill(`${expression} && ${field}_ > `);
    await expect.poll(() => page.locator(".expression-said .bad-text").first().textContent()).toContain("expected a value");
    expect(await page.locator(".expression-marks .wrong").count()).toBe(1);
    await picture(page, `${name}-wrong`);
    await box.press("Escape");
    expect(await box.inputValue()).toBe("");
    await box.fill(expression);
    await expect.poll(() => page.locator(".expression-said").textContent()).toBe(`${(await counted({ filter: expression })).toLocaleString("en")} events match`);
    await box.press("Enter");
    await expect.poll(() => hashOf(page)).toBe(`filter=${expression}&panels=rail.filters`);
    await page.getByRole("button", { name: `Remove filter: ${expression}` }).click();
    await expect.poll(() => box.inputValue()).toBe("");
    await page.getByRole("combobox", { name: "Expressions before" }).selectOption(expression);
    await expect.poll(() => box.inputValue()).toBe(expression);
    await page.close();
  });
});
