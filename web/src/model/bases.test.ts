import { expect, test } from "vitest";
import { baseAt, basesOfColumn, integerText } from "./bases.ts";

const base = (base: number, bits: number): Parameters<typeof integerText>[1] => ({ path: [], base, bits, events: null });

// What `kymo print` writes: crates/ir/src/emit.rs has the same cases.
test.each<[bigint, ReturnType<typeof base>, string]>([
  [17n, null, "17"],
  [0xdead_beefn, base(16, 32), "0xDEADBEEF"],
  [0n, base(16, 8), "0x0"],
  [-1n, base(16, 6), "0xFF"],
  [-1n, base(16, 64), "0xFFFFFFFFFFFFFFFF"],
  [2n ** 64n - 1n, base(16, 64), "0xFFFFFFFFFFFFFFFF"],
  [8n, base(8, 8), "010"],
  [-1n, base(8, 8), "0777"],
  [-1n, base(8, 64), "01777777777777777777777"],
  [5n, base(2, 4), "0b0101"],
  [-2n, base(2, 4), "0b1110"],
])("%d in a base is %s", (value, of, text) => {
  expect(integerText(value, of)).toBe(text);
});

test("a base is that of a path, and may be that of some events alone", () => {
  const bases = basesOfColumn('[{"path":[],"base":16,"bits":8,"events":["a"]},{"path":["deep","one"],"base":8,"bits":8}]');
  expect([baseAt(bases, [], "a")?.base, baseAt(bases, [], "b"), baseAt(bases, []), baseAt(bases, ["deep", "one"], "b")?.base, baseAt(bases, ["deep"])]).toEqual([16, null, null, 8, null]);
});

test("what a column says of itself that is not understood is nothing", () => {
  expect([basesOfColumn(undefined), basesOfColumn("{"), basesOfColumn('[{"base":16}]')]).toEqual([[], [], []]);
});
