// Notes, as a person makes, finds, changes and removes them, with a server that keeps them, refuses to, or has those of others.

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { rested } from "./browser.ts";
import { BEGIN, SPAN } from "./invented.ts";
import { complete, picture, withInvented, type Opened } from "./stage.ts";

const LATER = BEGIN + BigInt(SPAN) / 2n;

withInvented("notes", (stage) => {
  beforeEach(() => stage.server.pad.clear());

  async function open(hash = "", options: Opened = {}): Promise<Page> {
    const page = await stage.visit(hash, { height: 720, ...options });
    await complete(page);
    return page;
  }

  /** What stands behind `#` once the page has rested. */
  async function hashOf(page: Page): Promise<string> {
    await rested(page);
    return decodeURIComponent(new URL(page.url()).hash);
  }

  /** What is kept, without ids, which nobody can know. */
  const kept = (): string[] => [...stage.server.pad.notes.values()].map((text) => text.replace(/"id":"[^"]*",/, ""));
  const texts = (page: Page): Promise<string[]> => page.$$eval(".note-line .note-text", (lines) => lines.map((line) => line.textContent ?? ""));
  const write = (id: string, begin: bigint, text: string, rest = ""): void => void stage.server.pad.notes.set(id, `{"id":"${id}","begin_ns":${begin},"text":"${text}"${rest}}`);

  test("are not offered where traces have no file for them, as the sample, and the tab says why", async () => {
    stage.server.pad.isAbsent = true;
    const page = await open("#panels=rail.notes");
    await page.getByText("the sample and uploaded traces are copies").waitFor();
    await page.keyboard.press("m");
    await rested(page);
    const tab = page.locator(".rail .content");
    expect([await tab.locator("button, textarea, [role=alert]").count(), await tab.locator("p").count()]).toEqual([0, 1]);
    await page.close();
    stage.expectFaults(/status of 404/);
  });

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
    await page.close();
  });

  test("a text is changed with all else kept, removed and put back, by keys", async () => {
    write("a", LATER, "old", ',"mood":1.50');
    const page = await open();
    await page.locator(".on-overview .note-flag").click();
    await page.locator(".note-show").focus();
    await page.keyboard.press("F2");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.type("er");
    await page.keyboard.press("Enter");
    await expect.poll(() => texts(page)).toEqual(["older"]);
    const text = `{"begin_ns":${LATER},"text":"older","mood":1.50}`;
    expect(kept()).toEqual([text]);
    await page.locator(".note-show").focus();
    await page.keyboard.press("Delete");
    await expect.poll(kept).toEqual([]);
    await expect.poll(() => page.locator(".note-flag").count()).toBe(0);
    await page.getByRole("button", { name: "Put it back" }).click();
    await expect.poll(kept).toEqual([text]);
    await expect.poll(() => texts(page)).toEqual(["older"]);
    await page.close();
  });

  test("are written one behind the other, also while the one before is being kept", async () => {
    const page = await open(`#at=${BEGIN}~1000000`);
    await page.route("**/api/v1/notes/*", async (route) => {
      await new Promise((done) => setTimeout(done, 400));
      await route.continue();
    });
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.type("one");
    await page.locator("body").click({ position: { x: 700, y: 5 } });
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus:placeholder-shown");
    await page.keyboard.type("two");
    await page.locator(".note-box").press("Enter");
    await expect.poll(() => kept().map((line) => (JSON.parse(line) as { text: string }).text)).toEqual(["one", "two"]);
    await page.close();
  });

  test("have authors and colours, which the page changes; who wrote last is known", async () => {
    write("a", BEGIN + 5n, "", ',"colour":"#123456"');
    const page = await open(`#at=${BEGIN}~1000000`);
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.type("first");
    await page.getByLabel("Who says it").fill("Ada");
    await page.getByRole("radio", { name: "blue" }).click();
    await page.locator(".note-box").press("Enter");
    await expect.poll(() => kept()[1]).toMatch(/"text":"first","author":"Ada","colour":"blue"}$/);
    // One without a text says so, and can have another colour all the same.
    expect(await texts(page)).toContain("a note without text");
    await page.getByRole("button", { name: "Change: a note without text" }).click();
    expect(await page.getByRole("radio", { name: "#123456" }).getAttribute("aria-checked")).toBe("true");
    expect(await page.getByLabel("Who says it").inputValue()).toBe("");
    await page.getByRole("radio", { name: "green" }).click();
    await page.locator("body").click({ position: { x: 700, y: 5 } });
    await expect.poll(() => kept()[0]).toMatch(/"text":"","colour":"green"}$/);
    await page.keyboard.press("m");
    await expect.poll(() => page.getByLabel("Who says it").inputValue()).toBe("Ada");
    await picture(page, "notes-colours");
    await page.keyboard.press("Escape");
    // An image has the flags, too.
    await page.locator(".image-menu summary").click();
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "SVG" }).click();
    const svg = readFileSync(await (await saving).path(), "utf8");
    expect(svg).toContain("rgb(0, 110, 70)".replaceAll(" ", ""));
    await page.close();
  });

  test("where the file may only be read, what was written stays, and it is said why", async () => {
    stage.server.pad.refusal = 409;
    const page = await open();
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.type("words");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".note-new [role=alert]").textContent()).toContain("the file of notes cannot be written: permission denied.");
    expect(await page.locator(".note-box").inputValue()).toBe("words");
    stage.server.pad.refusal = null;
    await page.getByRole("button", { name: "Keep it" }).click();
    await expect.poll(() => texts(page)).toEqual(["words"]);
    await page.close();
    stage.expectFaults(/status of 409/);
  });

  test("what somebody else has written is there when one comes back, and so is what is wrong with the file", async () => {
    const page = await open();
    await page.keyboard.press("m");
    await page.waitForSelector(".note-box:focus");
    await page.keyboard.press("Escape");
    expect(kept()).toEqual([]);
    write("b", LATER, "of somebody else");
    stage.server.pad.problems.push({ line: 7, message: "found `<<<<<<<`, expected a note" });
    await page.evaluate(() => void window.dispatchEvent(new Event("focus")));
    await expect.poll(() => texts(page)).toEqual(["of somebody else"]);
    expect(await page.locator(".note-problems li").textContent()).toBe("line 7: found `<<<<<<<`, expected a note");
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
    await page.close();
  });
});
