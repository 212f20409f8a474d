import { expect, test } from "vitest";
import { marksOf, type Note } from "../model/notes.ts";
import { NOTE_COLOURS } from "../model/notes.ts";
import { css } from "../model/palette.ts";
import { RecordingPen } from "../testing/pen.ts";
import { nanos } from "../units/time.ts";
import { drawFlags } from "./flags.ts";

test("flags stand in the lower half of the ruler, where the page has them, with how many notes they stand for", () => {
  const note = (begin: number, end: number | null, colour: string | null): Note => ({ id: String(begin), begin: nanos(begin), end: end === null ? null : nanos(end), text: "", track: null, author: null, colour, rest: [] });
  const marks = marksOf([note(100, 300, "red"), note(105, null, "red"), note(500, null, null)], { begin: nanos(0), span: nanos(1_000) }, 1_000);
  const pen = new RecordingPen();
  drawFlags(pen, { ...marks, height: 52, ratio: 2, theme: "light" });
  const [red, plain] = [css(NOTE_COLOURS["red"]?.light ?? [0, 0, 0]), css(NOTE_COLOURS["orange"]?.light ?? [0, 0, 0])];
  expect(pen.calls[0]).toBe(`rect 200 42 400 10 ${red} 0.55`);
  expect(pen.of("rect").filter((call) => call.startsWith("rect 200 ")).every((call) => Number(call.split(" ")[2]) >= 26 && call.includes(red))).toBe(true);
  expect(pen.of("rect").filter((call) => call.startsWith("rect 1000 ")).every((call) => call.endsWith(plain))).toBe(true);
  expect(pen.of("text").map((call) => call.split(" ").slice(1, 3))).toEqual([["2", "206"], ["", "1006"]]);
});
