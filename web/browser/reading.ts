// The texts of pages, as numbers again: from when to when the window is, and times as lists write them.

import type { Page } from "playwright-core";

/** From when to when the window is, in nanoseconds since the begin, as exactly as the line at the bottom says it. */
export async function windowShown(page: Page): Promise<{ readonly begin: number; readonly end: number; readonly span: number }> {
  const text = ((await page.locator(".status .window").textContent()) ?? "").replaceAll("\u202f", "");
  const [, at = NaN, length = NaN, unit = "s"] = /^([\d.]+) s \+ ([\d.]+) (\S+)$/.exec(text) ?? [];
  const [begin, span] = [Number(at) * 1e9, Number(length) * ({ s: 1e9, ms: 1e6, µs: 1e3 }[unit] ?? NaN)];
  return { begin, end: begin + span, span };
}

/** As lists write a time that is so long after the begin. */
export function sinceBegin(nanoseconds: bigint): string {
  return `${nanoseconds / 1_000_000_000n}.${(nanoseconds % 1_000_000_000n).toString().padStart(9, "0").replace(/(\d{3})(?=\d)/g, "$1\u202f")} s`;
}
