import { expect, test } from "vitest";
import { cssPx } from "../units/screen.ts";
import { nanos } from "../units/time.ts";
import type { Row } from "./rows.ts";
import { rowsSelected } from "./selection.ts";

const rows = ["a", "b", "c", "d"].map((key): Row => ({ key, top: cssPx(0), height: cssPx(20), group: "g", track: null, pinned: false, count: 0, counted: "", folded: false, dimmed: false }));
const chosen = (from: string, to: string): string => rowsSelected(rows, { begin: nanos(0), span: nanos(1), rows: { from, to } }).map((row) => row.key).join("");

test("rows are selected from one to another, in whichever order they are named", () => {
  expect([chosen("b", "c"), chosen("d", "b"), chosen("c", "c")]).toEqual(["bc", "bcd", "c"]);
  expect(rowsSelected(rows, { begin: nanos(0), span: nanos(1) })).toBe(rows);
});

test("where one of them is not there, the other is left, and else nothing", () => {
  expect([chosen("b", "gone"), chosen("gone", "d"), chosen("x", "y")]).toEqual(["b", "d", ""]);
});
