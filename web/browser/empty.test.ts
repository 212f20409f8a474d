// Lists and tables without rows: they say why there are none.

import { expect, test } from "vitest";
import { complete, withInvented } from "./stage.ts";

withInvented("a list without rows", (stage) => {
  test("names the choice that leaves none, and the losses that no list can have", async () => {
    stage.server.lost = 7;
    const page = await stage.visit("#panels=drawer.events&filter=id+%3C+0");
    await complete(page);
    await expect.poll(() => page.locator(".event-words").textContent()).toBe("No event of these traces passes the filter. Change the filter. 7 events were lost, which no list can have.");
    await page.close();
  });

  test("of an analysis says what was chosen that leaves no row", async () => {
    const page = await stage.visit("#panels=drawer.statistics.420&stats=syscalls.slowest");
    await page.waitForSelector(".grid [role=row], .grid-row, [role=grid]");
    await page.getByRole("searchbox", { name: "Rows that have" }).fill("there is no such row");
    await page.getByText("No row has this.").waitFor();
    await page.close();
  });
});
