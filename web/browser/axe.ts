// The findings of axe in a page.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The serious and critical findings, each with where that is. Fewer rules than `passesMin` that hold mean that there was no page to look at. */
export async function findings(page: Page, passesMin = 15): Promise<string[]> {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
  expect(passes.length).toBeGreaterThan(passesMin);
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return grave.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} at ${target.join(" ")}: ${failureSummary?.replace(/\s+/g, " ")}`));
}
