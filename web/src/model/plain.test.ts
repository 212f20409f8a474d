import { expect, test } from "vitest";
import { labelOf, nameOf } from "./rows.ts";
import { plain } from "./plain.ts";
import { trackLike } from "../testing/tracks.ts";

test.each([
  ["nginx: worker (4711)", "nginx: worker (4711)"],
  ["größer → 日本 👩‍💻", "größer → 日本 👩‍💻"],
  ["a\u202Eexe.gpj", "a\\u{202E}exe.gpj"],
  ["\u202A\u202B\u202C\u202D", "\\u{202A}\\u{202B}\\u{202C}\\u{202D}"],
  ["\u2066a\u2069 \u2067b\u2069", "\\u{2066}a\\u{2069} \\u{2067}b\\u{2069}"],
  ["a\u2068b", "a\\u{2068}b"],
  ["a\u2069b", "a\\u{2069}b"],
  ["\u2068a\u2066b\u2069c", "\\u{2068}a\\u{2066}b\\u{2069}c"],
  ["a\0b\x1b[31m\x7f\x9b", "a\\u{0}b\\u{1B}[31m\\u{7F}\\u{9B}"],
  ["one\ntwo\tthree\r", "one\\ntwo\\tthree\\r"],
  ["a\u200Bb\u200E\uFEFF\u2028", "a\\u{200B}b\\u{200E}\\u{FEFF}\\u{2028}"],
  ["\uD800", "\\u{D800}"],
  ["שרת (4711)", "\u2068שרת (4711)\u2069"],
  ["خادم\u202E", "\u2068خادم\\u{202E}\u2069"],
])("%j is shown as %j, and as that again", (text, shown) => {
  expect(plain(text)).toBe(shown);
  expect(plain(shown)).toBe(shown);
});

test("a text of parts keeps the isolates of these", () => {
  const parts = `${plain("שרת")} wakes ${plain("b\u202E")}`;
  expect(plain(parts)).toBe("\u2068שרת\u2069 wakes b\\u{202E}");
  expect(plain(`${parts} עוד`)).toBe(`\u2068${parts} עוד\u2069`);
});

test("names of tracks are shown so, wherever they stand", () => {
  const track = trackLike(0, { tid: 7, name: "a\u202E (7)", host: "ש" });
  expect([nameOf(track), labelOf(trackLike(1, { tid: 7, name: "ש" }))]).toEqual(["\u2068a\\u{202E} (7) · ש\u2069", "\u20687: ש\u2069"]);
});

test("long texts are shown in no time", () => {
  const began = performance.now();
  plain("\u202E".repeat(100_000) + "\u2068".repeat(100_000));
  expect(performance.now() - began).toBeLessThan(2_000);
});
