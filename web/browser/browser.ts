// The system's browser, if there is one.

import type { Page } from "playwright-core";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** Where a browser is that tests can drive; `KYMO_CHROMIUM` names another one. */
export function findBrowser(): string | null {
  const named = process.env["KYMO_CHROMIUM"];
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const places = named === undefined ? folders.flatMap((folder) => NAMES.map((name) => join(folder, name))) : [named];
  return places.find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The page has done its delayed work: timers of a page run in the order of their times, however busy the machine is. */
export async function rested(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((done) => setTimeout(done, 250)));
}
