// Links to a view: copied in one tab, opened in another one.

import { expect, test } from "vitest";
import { rested } from "./browser.ts";
import { BEGIN } from "./invented.ts";
import { TOKEN } from "./server.ts";
import { complete, picture, withInvented } from "./stage.ts";

withInvented("a link to a view", (stage) => {
  const VIEW = `at=${BEGIN + 500_000_000n}~250000000`;

  test("is copied, and opens the same view elsewhere, without the token in the address", async () => {
    const page = await stage.visit(`#${VIEW}`);
    await page.waitForSelector(".badge.good");
    await complete(page);
    // The link holds the view of now, however short ago it has changed.
    await page.keyboard.press("p");
    await page.keyboard.press("d");
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    expect(new URL(link).search).toBe("");
    expect(link).toContain(`#token=${TOKEN}&at=`);
    await rested(page);
    const { hash } = new URL(page.url());
    expect(hash).not.toContain(TOKEN);
    // Another browser, which has never seen the token.
    const other = await stage.open(link);
    await other.waitForSelector(".badge.good");
    await complete(other);
    await rested(other);
    expect(new URL(other.url()).hash).toBe(hash);
    await other.close();
    // The keys do the same.
    await page.getByRole("button", { name: "Copy link" }).waitFor();
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await page.keyboard.press("Control+Shift+L");
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(link);
    await picture(page, "link");
    await page.close();
  });

  test("that is pasted into a tab whose token is an old one begins anew with its own", async () => {
    const page = await stage.open(`${stage.server.url}/#token=${"0".repeat(32)}`);
    await page.getByText("not allowed").or(page.getByText("token")).first().waitFor();
    stage.expectFaults(/401/);
    await page.goto(`${stage.server.url}/#token=${TOKEN}&${VIEW}`);
    await page.waitForSelector(".badge.good");
    await complete(page);
    await rested(page);
    expect(decodeURIComponent(new URL(page.url()).hash)).toBe(`#${VIEW}`);
    await page.close();
  });
});
