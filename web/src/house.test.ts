// The rooms of this folder: which may import which. What ARCHITECTURE.md says of crates, for TypeScript.

import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const SOURCE = import.meta.dirname;

/** Which rooms a room may import, beside its own files. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  units: [],
  model: ["units", "@uwdata"],
  api: ["units", "model"],
  state: ["units", "model"],
  draw: ["units", "model"],
  view: ["units", "model", "api", "state", "draw", "preact", "uplot"],
  main: ["view", "preact"],
  testing: ["units", "model", "draw", "@uwdata"],
};
/** Words that mean a page: rooms that must work without one do not have them. */
const PAGE_WORDS = /\b(document|window|navigator|localStorage|sessionStorage|location)\s*[.[]/;
const PURE = new Set(["units", "model", "state", "draw"]);
const LINES_MAX = 800;

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));

function roomOf(name: string): string {
  return name.includes("/") ? (name.split("/")[0] ?? "") : name.replace(/\.tsx?$/, "");
}

function importsOf(name: string): string[] {
  const text = readFileSync(join(SOURCE, name), "utf8");
  return [...text.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)"|^import "([^"]+)"/gm)].map((found) => found[1] ?? found[2] ?? "");
}

const code = files.filter((name) => !name.endsWith(".test.ts"));

test.each(code)("%s is in a room, and imports what the room may", (name) => {
  const room = roomOf(name);
  const allowed = ROOMS[room];
  expect(allowed, `there is no room ${room}`).toBeDefined();
  for (const target of importsOf(name)) {
    if (target.endsWith(".css")) {
      continue;
    }
    const other = target.startsWith(".") ? roomOf(relative(SOURCE, join(SOURCE, dirname(name), target))) : (target.split("/")[0] ?? "");
    expect(other === room || allowed?.includes(other), `${name} imports ${target}`).toBe(true);
  }
});

test.each(code)("%s says first why it exists, and is not too long", (name) => {
  const text = readFileSync(join(SOURCE, name), "utf8");
  expect(text.startsWith("// ")).toBe(true);
  expect(text.split("\n").length).toBeLessThan(LINES_MAX);
  expect(text).not.toMatch(/\b(TODO|FIXME|XXX):|@ts-|\bany\b[,;>)\]]/);
  if (PURE.has(roomOf(name))) {
    expect(text.replace(/\/\*[^]*?\*\/|\/\/.*/g, "")).not.toMatch(PAGE_WORDS);
  }
});

test("nothing of the tests is in the page", () => {
  for (const name of code.filter((file) => roomOf(file) !== "testing")) {
    expect(importsOf(name).some((target) => target.includes("testing"))).toBe(false);
  }
});
