// Notes, as a person makes, finds, changes and removes them, with a server that keeps them, refuses to, or has those of others.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findBrowser, rested } from "./browser.ts";
import { BEGIN, SPAN } from "./invented.ts";
import { TOKEN, serve, type StandIn } from "./server.ts";

const executablePath = findBrowser();
const pictures = process.env["KYMO_PICTURES"];
const dist = join(import.meta.dirname, "../dist");
const LATER = BEGIN + BigInt(SPAN) / 2n;

interface Opened {
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
}

describe.runIf(executablePath !== null)("notes", () => {
  let browser: Browser;
  let server: StandIn;
  let faults: string[];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
    server = await serve(dist);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.end();
  });
  beforeEach(() => {
    faults = [];
    server.pad.clear();
  });

  async function open(hash = "", { colorScheme = "light", width = 1280 }: Opened = {}): Promise<Page> {
    const page = await browser.newPage({ colorScheme, viewport: { width, height: 720 }, timezoneId: "Europe/Berlin" });
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(`${server.url}/?token=${TOKEN}${hash}`);
    await page.waitForSelector('main[data-complete="true"]');
    return page;
  }

  async function picture(page: Page, name: string): Promise<void> {
    if (pictures !== undefined) {
      mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `${name}.png`) });
    }
  }

  /** What stands behind `#` once the page has rested. */
  async function hashOf(page: Page): Promise<string> {
    await rested(page);
    return decodeURIComponent(new URL(page.url()).hash);
  }

  /** What is kept, without ids, which nobody can know. */
  const kept = (): string[] => [...server.pad.notes.values()].map((text) => text.replace(/"id":"[^"]*",/, ""));
  const texts = (page: Page): Promise<string[]> => page.$$eval(".note-line .note-text", (lines) => lines.map((line) => line.textContent ?? ""));
  const write = (id: string, begin: bigint, text: string, rest = ""): void => void server.pad.notes.set(id, `{"id":"${id}","begin_ns":${begin},"text":"${text}"${rest}}`);

  test("M makes a note about the selection; Enter keeps it, and it is flagged", async () => {
    const page = await open(`#at=${BEGIN}~${SPAN}&selected=${BEGIN + 1_000_003n}~70000`);
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.type("here it begins");
    await page.keyboard.press("Enter");
    await expect.poll(() => texts(page)).toEqual(["here it begins"]);
    expect(kept()).toEqual([`{"begin_ns":${BEGIN + 1_000_003n},"end_ns":${BEGIN + 1_070_003n},"text":"here it begins"}`]);
    await expect.poll(() => page.locator(".on-ruler .note-flag").count()).toBe(1);
    expect(await page.locator(".on-overview .note-flag").getAttribute("aria-label")).toBe("Note: here it begins");
    expect(await page.locator(".on-ruler .note-band").count()).toBe(1);
    await picture(page, "notes");
    expect(faults).toEqual([]);
    await page.close();
  });

  test("notes of others stand in the order of times; a click, also on a flag, goes there", async () => {
    write("z", BEGIN + 5n, "first");
    write("a", LATER, "second");
    const page = await open(`#at=${BEGIN}~1000000`);
    await page.locator(".on-overview .note-flag").nth(1).click();
    await expect.poll(() => texts(page)).toEqual(["first", "second"]);
    await expect.poll(() => page.locator(".note-line.chosen .note-text").textContent()).toBe("second");
    await expect.poll(() => page.locator(".on-ruler .note-flag").getAttribute("aria-label")).toBe("Note: second");
    await page.locator(".note-show").first().click();
    await expect.poll(() => page.locator(".on-ruler .note-flag").getAttribute("aria-label")).toBe("Note: first");
    expect(faults).toEqual([]);
    await page.close();
  });

  test("a text is changed with all else kept, removed and put back, by keys", async () => {
    write("a", LATER, "old", ',"colour":1.50');
    const page = await open();
    await page.locator(".on-overview .note-flag").click();
    await page.locator(".note-show").focus();
    await page.keyboard.press("F2");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.type("er");
    await page.keyboard.press("Enter");
    await expect.poll(() => texts(page)).toEqual(["older"]);
    const text = `{"begin_ns":${LATER},"text":"older","colour":1.50}`;
    expect(kept()).toEqual([text]);
    await page.locator(".note-show").focus();
    await page.keyboard.press("Delete");
    await expect.poll(kept).toEqual([]);
    await expect.poll(() => page.locator(".note-flag").count()).toBe(0);
    await page.getByRole("button", { name: "Put it back" }).click();
    await expect.poll(kept).toEqual([text]);
    await expect.poll(() => texts(page)).toEqual(["older"]);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("where the file may only be read, what was written stays, and it is said why", async () => {
    server.pad.refusal = 409;
    const page = await open();
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.type("words");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".note-new [role=alert]").textContent()).toContain("the file of notes cannot be written: permission denied.");
    expect(await page.locator(".note-box").inputValue()).toBe("words");
    server.pad.refusal = null;
    await page.getByRole("button", { name: "Keep it" }).click();
    await expect.poll(() => texts(page)).toEqual(["words"]);
    await page.close();
  });

  test("what somebody else has written is there when one comes back, and so is what is wrong with the file", async () => {
    const page = await open();
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.press("Escape");
    expect(kept()).toEqual([]);
    write("b", LATER, "of somebody else");
    server.pad.problems.push({ line: 7, message: "found `<<<<<<<`, expected a note" });
    await page.evaluate(() => void window.dispatchEvent(new Event("focus")));
    await expect.poll(() => texts(page)).toEqual(["of somebody else"]);
    expect(await page.locator(".note-problems li").textContent()).toBe("line 7: found `<<<<<<<`, expected a note");
    expect(faults).toEqual([]);
    await page.close();
  });

  test.each([["dark", 1600], ["light", 420]] as const)("ten thousand notes are few elements (%s, %d wide)", async (colorScheme, width) => {
    for (let index = 0; index < 10_000; index++) {
      write(`n${index}`, BEGIN + (BigInt(SPAN) * BigInt(index)) / 10_000n, `note ${index}`);
    }
    const page = await open("", { colorScheme, width });
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".note-line").count()).toBeGreaterThan(1);
    expect(await page.locator(".note-line").count()).toBeLessThan(40);
    expect(await page.locator(".note-flag").count()).toBeLessThan((2 * width) / 14 + 2);
    await picture(page, `notes-${colorScheme}-${width}`);
    await page.getByLabel("Search notes").fill("note 7777");
    await expect.poll(() => texts(page)).toEqual(["note 7777"]);
    await page.getByLabel("Search notes").fill("zebra");
    await page.getByText("No note says that").waitFor();
    await page.getByLabel("Find tracks").fill("note 4321");
    await page.getByRole("option", { name: "note 4321" }).first().click();
    await expect.poll(() => hashOf(page)).toContain(`mark=${BEGIN + (BigInt(SPAN) * 4_321n) / 10_000n}`);
    expect(faults).toEqual([]);
    await page.close();
  });
});
