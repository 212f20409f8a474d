// What a browser loads before it shows anything, compressed: small enough that nobody waits for it. Measured on what was built.

import { gzipSync } from "node:zlib";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const DIST = join(import.meta.dirname, "../dist");
/** The limit of the pages as they are to be; these are a part of them. */
const BYTES_MAX = 150_000;

test("the pages are light", () => {
  expect(existsSync(join(DIST, "index.html")), "scripts/web.sh build").toBe(true);
  const files = readdirSync(DIST, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const sizes = files.map((entry) => gzipSync(readFileSync(join(entry.parentPath, entry.name)), { level: 9 }).length);
  const all = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`${all} bytes in ${files.length} files, compressed`);
  expect(all).toBeLessThan(BYTES_MAX);
});

test("the page loads nothing from elsewhere", () => {
  const page = readFileSync(join(DIST, "index.html"), "utf8");
  const urls = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1] ?? "");
  expect(urls.every((url) => url.startsWith("./assets/") || url.startsWith("data:image/"))).toBe(true);
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son[a-z]+=/);
});
