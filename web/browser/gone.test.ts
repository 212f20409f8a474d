// A server that is gone: no progress goes on for ever, and all of it goes on when the server is back.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { BEGIN } from "./invented.ts";
import { complete, picture, withInvented } from "./stage.ts";

withInvented("without a server", (stage) => {
  /** No request is answered any more. */
  async function leave(page: Page): Promise<void> {
    await page.route("**/api/**", (route) => route.abort());
    stage.server.hangUp();
    await page.getByText("no answer").waitFor();
  }

  async function comeBack(page: Page): Promise<void> {
    await page.unroute("**/api/**");
    await page.getByText("no answer").waitFor({ state: "detached" });
  }

  test("reading, analyses, details and sums say that there is no answer, and go on once there is one", async () => {
    stage.server.read = 0.4;
    stage.server.office.clear();
    stage.server.office.isHeld = true;
    const page = await stage.visit("#panels=drawer.statistics");
    await page.locator("footer progress").waitFor();
    await page.locator(".job progress").waitFor();
    await complete(page);
    await leave(page);
    await page.getByText("40 % were read when the server answered last").waitFor();
    await page.locator(".job.bad").getByRole("button", { name: "Ask again" }).waitFor();
    await page.evaluate((hash) => (location.hash = hash), `panels=inspector&selected=${BEGIN + 1_000_000n}~1000000`);
    await page.locator(".sums .bad").waitFor();
    expect(await page.locator("progress").count()).toBe(0);
    await picture(page, "gone");
    stage.server.read = 1;
    stage.server.office.isHeld = false;
    await comeBack(page);
    await page.locator(".sums caption").first().waitFor();
    expect(await page.locator(".sums .bad").count()).toBe(0);
    await page.waitForSelector(".badge.good");
    expect(await page.locator("footer .progress").count()).toBe(0);
    await page.close();
    stage.expectFaults(/ERR_FAILED|ERR_INCOMPLETE_CHUNKED/);
  });
});
