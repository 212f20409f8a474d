import { expect, test } from "vitest";
import { HUES, SURFACES, colourOf, contrast, css, inkOn, luminance, mix, packed, paler, slotOf, type Rgb } from "./palette.ts";

/** What people without one kind of cones see (Machado, Oliveira and Fernandes 2009, severity 1), in linear light. */
const SEEN: Readonly<Record<string, readonly number[]>> = {
  "with all cones": [1, 0, 0, 0, 1, 0, 0, 0, 1],
  "without cones for red": [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  "without cones for green": [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  "without cones for blue": [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};

function linear(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

/** A colour as somebody sees it, in Oklab: distances there are about those that people see. */
function seenAs(matrix: readonly number[], colour: Rgb): readonly number[] {
  const [red, green, blue] = colour.map((value) => linear(value / 255)) as [number, number, number];
  const row = (at: number): number => Math.max(0, (matrix[at] ?? 0) * red + (matrix[at + 1] ?? 0) * green + (matrix[at + 2] ?? 0) * blue);
  const [r, g, b] = [row(0), row(3), row(6)];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function distance(one: readonly number[], other: readonly number[]): number {
  return Math.hypot(...one.map((value, index) => value - (other[index] ?? 0)));
}

test.each(Object.entries(SEEN))("all hues are told apart %s", (_, matrix) => {
  for (const [index, one] of HUES.entries()) {
    for (const other of HUES.slice(index + 1)) {
      expect(distance(seenAs(matrix, one), seenAs(matrix, other)), `${css(one)} ${css(other)}`).toBeGreaterThan(0.06);
    }
  }
});

test.each(Object.entries(SEEN))("running, ready and blocked are told apart %s", (_, matrix) => {
  for (const theme of ["light", "dark"] as const) {
    const colours = ["running", "runnable", "blocked: futex"].map((label) => seenAs(matrix, colourOf(theme, "state", label, 1)));
    for (const [index, one] of colours.entries()) {
      for (const other of colours.slice(index + 1)) {
        expect(distance(one, other)).toBeGreaterThan(0.1);
      }
    }
  }
});

test("a value keeps its colour, neighbouring hashes get different ones, and all colours are used", () => {
  expect(colourOf("light", "thread", "a", slotOf(77))).toEqual(colourOf("light", "thread", "b", slotOf(77)));
  const found = new Set<string>();
  let alike = 0;
  for (let hash = 0; hash < 500; hash++) {
    found.add(css(colourOf("light", "thread", "", slotOf(hash))));
    alike += css(colourOf("light", "thread", "", slotOf(hash))) === css(colourOf("light", "thread", "", slotOf(hash + 1))) ? 1 : 0;
  }
  expect(found.size).toBe(21);
  expect(alike).toBeLessThan(60);
});

test("states have their colour whatever their hash", () => {
  expect(colourOf("light", "state", "running", 1)).toEqual(colourOf("light", "state", "Running", 2));
  expect(colourOf("light", "thread", "running", slotOf(1))).not.toEqual(colourOf("light", "thread", "running", slotOf(2)));
});

test("text can be read on every colour, and on every surface", () => {
  for (const theme of ["light", "dark"] as const) {
    for (let hash = 0; hash < 200; hash++) {
      const colour = colourOf(theme, "thread", "", slotOf(hash));
      expect(contrast(colour, inkOn(colour))).toBeGreaterThan(4.5);
    }
    const { background, lane, ink, faint, accent } = SURFACES[theme];
    for (const surface of [background, lane]) {
      expect(contrast(ink, surface)).toBeGreaterThan(7);
      expect(contrast(faint, surface)).toBeGreaterThan(4.5);
      expect(contrast(accent, surface)).toBeGreaterThan(4.5);
    }
  }
});

test("what is estimated is nearer to the lane than what is exact", () => {
  const colour = HUES[0] as Rgb;
  expect(luminance(paler(colour, "light"))).toBeGreaterThan(luminance(colour));
  expect(mix([0, 0, 0], [255, 255, 255], 0.5)).toEqual([128, 128, 128]);
});

test("a packed colour is what a canvas has in memory", () => {
  const bytes = new Uint8Array(Uint32Array.of(packed([1, 2, 3])).buffer);
  expect([...bytes]).toEqual([1, 2, 3, 255]);
});
