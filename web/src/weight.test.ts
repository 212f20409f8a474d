// What a browser loads before it shows anything, compressed: small enough that nobody waits for it. Measured on what was built.

import { gzipSync } from "node:zlib";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const DIST = join(import.meta.dirname, "../dist");
/** What is loaded at once. */
const BYTES_MAX = 150_000;
/** With what is fetched when somebody looks at it, as charts are. */
const ALL_BYTES_MAX = 300_000;

test("the pages are light", () => {
  expect(existsSync(join(DIST, "index.html")), "scripts/web.sh build").toBe(true);
  const files = readdirSync(DIST, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const page = readFileSync(join(DIST, "index.html"), "utf8");
  const weigh = (some: typeof files): number => some.reduce((sum, entry) => sum + gzipSync(readFileSync(join(entry.parentPath, entry.name)), { level: 9 }).length, 0);
  const first = files.filter(({ name }) => name === "index.html" || page.includes(`/${name}"`));
  console.log(`${weigh(first)} bytes in ${first.length} files at once, ${weigh(files)} bytes in all ${files.length}, compressed`);
  expect(first.length).toBeGreaterThan(2);
  expect(weigh(first)).toBeLessThan(BYTES_MAX);
  expect(weigh(files)).toBeLessThan(ALL_BYTES_MAX);
});

test("the page loads nothing from elsewhere", () => {
  const page = readFileSync(join(DIST, "index.html"), "utf8");
  const urls = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1] ?? "");
  expect(urls.every((url) => url.startsWith("./assets/") || url.startsWith("data:image/"))).toBe(true);
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son[a-z]+=/);
});
