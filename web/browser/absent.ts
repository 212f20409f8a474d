// Says once, before the first test, which programs and files are missing, so that skipped tests do not look like tests that pass.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { findBrowser } from "./browser.ts";

export default function setup(): void {
  const { KYMO_CHROMIUM: named, KYMO: kymo, KYMO_CORPUS: corpus } = process.env;
  if (findBrowser() === null) {
    // A browser that is named has to be used.
    if (named !== undefined) {
      throw new Error(`KYMO_CHROMIUM is ${named}, which is no program`);
    }
    console.error("BROWSER ABSENT: no chromium found; NO page is tested in one");
    return;
  }
  if (kymo === undefined) {
    console.error("KYMO ABSENT: it names no command; pages are tested with invented traces alone");
  } else if (!existsSync(kymo)) {
    throw new Error(`KYMO is ${kymo}, which is not there`);
  } else if (!existsSync(join(corpus ?? "/nowhere", "ctf"))) {
    console.error("CORPUS ABSENT: pages are not tested with a kernel's trace");
  }
}
