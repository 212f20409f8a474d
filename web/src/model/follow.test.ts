import { expect, test } from "vitest";
import { px } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { SECOND, nanos } from "../units/time.ts";
import type { Status } from "./catalogue.ts";
import { FIRST_FOLLOW, FOLLOW_SPAN, windowAt } from "./follow.ts";
import { behindText, sinceText } from "./live.ts";
import { endOf } from "./viewport.ts";

const extentTo = (end: bigint): { begin: ReturnType<typeof nanos>; end: ReturnType<typeof nanos> } => ({ begin: nanos(7), end: nanos(end) });

test("of traces that are shorter everything is seen, of longer ones the last part", () => {
  const width = px(1_000);
  expect(FIRST_FOLLOW).toEqual({ isOn: false, span: 10n * SECOND, left: null });
  expect(windowAt(extentTo(3n * SECOND + 7n), nanos(3n * SECOND + 7n), FOLLOW_SPAN, width)).toEqual({ begin: 7n, span: 3n * SECOND });
  expect(windowAt(extentTo(60n * SECOND + 7n), nanos(60n * SECOND + 7n), FOLLOW_SPAN, width)).toEqual({ begin: 50n * SECOND + 7n, span: 10n * SECOND });
  expect(windowAt(extentTo(60n * SECOND), nanos(30n * SECOND + 7n), null, width)).toEqual({ begin: 7n, span: 30n * SECOND });
});

test("the window moves by whole pixels, keeps its span, and ends no more than a pixel from where it is to", () => {
  const [width, span] = [px(333), nanos(1_000_003)];
  const extent = extentTo(2n * SECOND);
  const begins = new Set<bigint>();
  for (let edge = SECOND as bigint; edge < SECOND + 20_000n; edge += 101n) {
    const found = windowAt(extent, nanos(edge), span, width);
    expect(found.span).toBe(span);
    const over = endOf(found) - edge;
    expect(over >= 0n && over <= span / BigInt(width) + 1n, String(over)).toBe(true);
    begins.add(found.begin);
  }
  // 20 µs are about seven of its pixels, of 3 µs each.
  expect(begins.size).toBeLessThanOrEqual(8);
  // Where the traces end, the window does so, too.
  expect(endOf(windowAt(extent, extent.end, span, width))).toBe(extent.end);
});

test("a window is there before the page has a size", () => {
  expect(windowAt(extentTo(60n * SECOND), nanos(60n * SECOND), FOLLOW_SPAN, px(0)).span).toBe(10n * SECOND);
  expect(windowAt(extentTo(7n), nanos(7), FOLLOW_SPAN, px(0)).span).toBe(20n);
});

function statusOf(end: bigint, events: bigint | null): Status {
  const levels = { min: level(0), max: level(30) };
  return { extent: extentTo(end), unix: true, levels, version: 1, doneBytes: 1, totalBytes: 1, etaMs: null, state: "complete", failure: null, events, lost: 0n };
}

test("what has come since is said in seconds and events", () => {
  const left = { end: nanos(5n * SECOND), events: 1_000n };
  expect(sinceText(left, statusOf(17_340_000_000n, 46_012n))).toBe("12.3 s, 45,012 events");
  expect(sinceText(left, statusOf(17_340_000_000n, 1_001n))).toBe("12.3 s, 1 event");
  expect(sinceText(left, statusOf(17_340_000_000n, null))).toBe("12.3 s");
  expect(sinceText({ ...left, events: null }, statusOf(17_340_000_000n, 5n))).toBe("12.3 s");
  expect(sinceText(left, statusOf(200n * SECOND, 1_000n))).toBe("3 min 15 s, 0 events");
  // Another recorder may have begun anew.
  expect(sinceText(left, statusOf(1n * SECOND, 3n))).toBe("0.0 s, 0 events");
});

test("how old what is seen is counts the window, too", () => {
  const live = { state: "recording", watermark: nanos(0), problem: null } as const;
  expect(behindText({ ...live, behindMs: 312 }, nanos(0))).toBe("0.3 s behind");
  expect(behindText({ ...live, behindMs: 312 }, nanos(150_000_000))).toBe("0.5 s behind");
  expect(behindText({ ...live, behindMs: 90_000 }, nanos(0))).toBe("1 min 30 s behind");
  expect(behindText({ ...live, behindMs: null, problem: null }, nanos(0))).toBeNull();
});
