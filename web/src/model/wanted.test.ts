import { expect, test } from "vitest";
import { px } from "../units/screen.ts";
import { LEVEL_MAX, level, tileIndex } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { around, bucketSpan, levelFor, levelWithin, tileBegin, tileSpan, tilesIn, type Levels } from "./wanted.ts";

const levels: Levels = { min: level(0), max: LEVEL_MAX };
const extent = { begin: nanos(1_000), end: nanos(1_000 + 1_000_000) };

test("a bucket is a pixel or less, and one level serves all screens up to 2048 pixels", () => {
  for (const span of [1_920n, 1_921n, 4_000n, 71_210_000n, 86_400_000_000_000n, 1n << 60n]) {
    for (const width of [320, 1_000, 1_920, 3_840]) {
      const found = levelFor(nanos(span), px(width), levels);
      const pixels = (Number(bucketSpan(found)) * width) / Number(span);
      expect(pixels <= 1 || found === 0).toBe(true);
      expect((Number(bucketSpan(level(found + 1))) * Math.max(2_048, 2 ** Math.ceil(Math.log2(width)))) / Number(span)).toBeGreaterThan(1);
      expect(found === levelFor(nanos(span), px(2_048), levels)).toBe(width <= 2_048 || found === 0);
    }
  }
});

test("a span has at most so many buckets, and more than half of them", () => {
  for (const span of [3_584n, 3_585n, 71_210_000n, 86_400_000_000_000n]) {
    const buckets = Number(span) / Number(bucketSpan(levelWithin(nanos(span), 3_584, levels)));
    expect(buckets).toBeLessThanOrEqual(3_584);
    expect(buckets).toBeGreaterThan(1_791);
  }
  expect(levelWithin(nanos(100), 3_584, levels)).toBe(0);
});

test("levels that the server does not have are not asked for", () => {
  const few: Levels = { min: level(8), max: level(20) };
  expect(levelFor(nanos(100), px(1_000), few)).toBe(8);
  expect(levelFor(nanos(1n << 60n), px(1_000), few)).toBe(20);
});

test("a window is covered by its tiles, and by no more", () => {
  const view = { begin: nanos(1_000 + 512), span: nanos(512) };
  expect(tilesIn(view, extent, level(0))).toEqual({ level: 0, first: 2, count: 2 });
  expect(tilesIn({ begin: nanos(1_000 + 511), span: nanos(514) }, extent, level(0))).toEqual({ level: 0, first: 1, count: 4 });
  expect(tileBegin(level(0), tileIndex(2), extent.begin)).toBe(1_512n);
  expect(tileSpan(level(3))).toBe(2_048n);
});

test("windows beyond the traces want tiles on them alone", () => {
  const view = { begin: nanos(-50_000), span: nanos(10_000_000) };
  expect(tilesIn(view, extent, level(10))).toEqual({ level: 10, first: 0, count: 4 });
  const empty = { begin: nanos(5), end: nanos(5) };
  expect(tilesIn({ begin: nanos(5), span: nanos(20) }, empty, level(0))).toEqual({ level: 0, first: 0, count: 1 });
});

test("a margin ends where the traces end", () => {
  expect(around({ level: level(10), first: tileIndex(1), count: 1 }, extent, 2)).toEqual({ level: 10, first: 0, count: 4 });
});

test("a window of sixty tracks on a wide screen wants a few tiles, at any zoom", () => {
  const long = { begin: nanos(0), end: nanos(86_400_000_000_000n) };
  for (let span = 86_400_000_000_000n; span > 4_000n; span /= 3n) {
    const view = { begin: nanos((long.end - span) / 2n), span: nanos(span) };
    const count = tilesIn(view, long, levelFor(view.span, px(3_840), levels)).count;
    expect(count).toBeGreaterThanOrEqual(16);
    expect(count).toBeLessThanOrEqual(33);
  }
});
