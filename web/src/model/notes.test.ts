import { expect, test } from "vitest";
import { ShapeFault } from "./json.ts";
import { NOTE_COLOURS, colourOf, marksOf, nextOf, noteBody, notesIn, notesWith, readNotes, titleOf, type Note } from "./notes.ts";
import { SURFACES, type Rgb } from "./palette.ts";
import { itemTexts, memberTexts } from "./parts.ts";
import { nanos } from "../units/time.ts";

const note = (id: string, begin: number, end: number | null = null): Note => ({
  id,
  begin: nanos(begin),
  end: end === null ? null : nanos(end),
  text: id,
  track: null,
  author: null,
  colour: null,
  rest: [],
});
const window = { begin: nanos(100), span: nanos(1_000) };

test("an answer is read to the last digit, in the order of times", () => {
  const later = '{"id":"b","begin_ns":1795219372256000001,"end_ns":1795219372256000003,"text":"two","track":"cpu 0","author":"Ada"}';
  const first = '{"id":"a","begin_ns":-5,"text":"one"}';
  const found = readNotes(`{"file":"t.kymo-notes","notes":[${later},${first}],"problems":[{"line":3,"message":"found <<<"}]}`);
  expect(found.notes.map(({ id, begin, end, track, author }) => [id, begin, end, track, author])).toEqual([
    ["a", -5n, null, null, null],
    ["b", 1_795_219_372_256_000_001n, 1_795_219_372_256_000_003n, "cpu 0", "Ada"],
  ]);
  expect([found.file, found.problems]).toEqual(["t.kymo-notes", [{ line: 3, message: "found <<<" }]]);
});

test("an answer that is none says where", () => {
  expect(() => readNotes('{"file":"f","notes":[{"id":"a","begin_ns":9,"end_ns":8,"text":""}],"problems":[]}')).toThrow(/a: found end_ns 8, expected .* begin_ns 9/);
  expect(() => readNotes('{"file":"f","notes":[{"id":"a","text":""}],"problems":[]}')).toThrow(ShapeFault);
  expect(() => readNotes("{")).toThrow(SyntaxError);
});

test("what a page does not know of a note goes back as it came", () => {
  const text = String.raw`{"id":"a\"","begin_ns":12345678901234567890,"text":"x,{y","mood":[1, {"deep":"]"}],"size":0.10000000000000000001}`;
  const [one] = readNotes(`{"file":"f","notes":[${text}],"problems":[]}`).notes;
  expect(one?.rest).toEqual([["mood", '[1, {"deep":"]"}]'], ["size", "0.10000000000000000001"]]);
  expect(noteBody(one ?? note("", 0))).toBe(text);
});

test("parts of JSON are what stands between the outermost brackets", () => {
  expect(itemTexts(' [1, "a,b" ,{"c":[2,3]} ] ')).toEqual(["1", '"a,b"', '{"c":[2,3]}']);
  expect(itemTexts("[]")).toEqual([]);
  expect(memberTexts('{"a":{"b":1},"c\\u0064" : "}"}')).toEqual([["a", '{"b":1}'], ["cd", '"}"']]);
});

test("a note is called by the first line that says something, cut where it is long", () => {
  expect(titleOf({ text: "\n  here it begins \nmore" })).toBe("here it begins");
  expect(titleOf({ text: " \n" })).toBe("a note without text");
  expect(titleOf({ text: "x".repeat(61) })).toBe(`${"x".repeat(59)}…`);
  expect(titleOf({ text: "x".repeat(60) })).toHaveLength(60);
});

test("notes of a window are those of which something is in it", () => {
  const notes = [note("over", 0, 5_000), note("before", 10, 100), note("into", 10, 101), note("first", 100), note("last", 1_099), note("after", 1_100)];
  expect(notesIn(notes, window).map(({ id }) => id)).toEqual(["over", "into", "first", "last"]);
});

test("notes that begin about there share a flag, and bands that touch are one", () => {
  const { flags, bands } = marksOf([note("a", 0, 200), note("b", 105), note("c", 205, 300), note("d", 700, 5_000)], window, 1_000);
  expect(flags.map(({ x, notes }) => [x, notes.map(({ id }) => id)])).toEqual([
    [0, ["a", "b"]],
    [105, ["c"]],
    [600, ["d"]],
  ]);
  expect(bands.map(({ from, to }) => [from, to])).toEqual([[0, 100], [105, 200], [600, 1_000]]);
  expect(marksOf([note("a", 200, 300), note("b", 250, 400)], window, 1_000).bands).toEqual([{ from: 100, to: 300, colours: new Set([null]) }]);
});

test("however many notes there are, flags fit and bands are seen", () => {
  const many = Array.from({ length: 10_000 }, (_, index) => note(String(index), 100 + Math.floor(index / 10), 100 + Math.floor(index / 10)));
  const { flags, bands } = marksOf(many, window, 140);
  expect(flags.length).toBeLessThanOrEqual(10);
  expect(flags.reduce((sum, { notes }) => sum + notes.length, 0)).toBe(10_000);
  expect(bands.length).toBe(1);
  expect(marksOf([note("a", 500, 500)], window, 140).bands).toEqual([{ from: 56, to: 58, colours: new Set([null]) }]);
});

test("clicks on a flag go around the notes that share it", () => {
  const flag = { x: 0, notes: [note("a", 0), note("b", 0)] };
  expect([nextOf(flag, null), nextOf(flag, "a"), nextOf(flag, "b"), nextOf({ x: 0, notes: [] }, "a")].map((one) => one?.id)).toEqual(["a", "b", "a", undefined]);
});

test("notes are found by each word that they say, or who says it, in any order", () => {
  const notes = [{ ...note("a", 1), text: "The disk\nis FULL", author: "Ada" }, { ...note("b", 2), text: "the disk", track: "cpu/0" }];
  const found = (query: string): string[] => notesWith(notes, query).map(({ id }) => id);
  expect([found("disk"), found("full the"), found("ada"), found("CPU/0 disk"), found("ada cpu"), found(" ")]).toEqual([["a", "b"], ["a"], ["a"], ["b"], [], ["a", "b"]]);
});

test("what notes say together has their colour, if that is one; else that of notes without any", () => {
  const plain = colourOf([null], "light");
  expect([colourOf([], "light"), colourOf(["orange"], "light"), colourOf(["toString"], "light"), colourOf(["red", "blue"], "light"), colourOf([null, "red"], "light")]).toEqual([plain, plain, plain, plain, plain]);
  expect(colourOf(["red", "red"], "dark")).toEqual(NOTE_COLOURS["red"]?.dark);
  expect([colourOf(["#0a64FF"], "dark"), colourOf(["#0a64F"], "light")]).toEqual([[10, 100, 255], plain]);
});

test("a note that is changed keeps its colour, and what nobody knows here", () => {
  const { notes } = readNotes('{"file":"f","problems":[],"notes":[{"id":"a","begin_ns":5,"text":"x","colour":"red","mood":[1]}]}');
  expect(notes.map(noteBody)).toEqual(['{"id":"a","begin_ns":5,"text":"x","colour":"red","mood":[1]}']);
});

/** How much one colour stands out of another: 4.5 is enough for small letters. */
function contrast(one: Rgb, other: Rgb): number {
  const part = (value: number): number => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]: Rgb): number => 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  const [high, low] = [Math.max(light(one), light(other)), Math.min(light(one), light(other))];
  return (high + 0.05) / (low + 0.05);
}

test.each(["light", "dark"] as const)("numbers on flags are read in any colour (%s)", (theme) => {
  for (const [name, colours] of Object.entries(NOTE_COLOURS)) {
    expect(contrast(colours[theme], SURFACES[theme].background), name).toBeGreaterThan(4.5);
  }
});
