import { expect, test } from "vitest";
import { px } from "../units/screen.ts";
import { nanos } from "../units/time.ts";
import { dayText, digitsFor, duration, timeText, zoneText, type Clock } from "./clock.ts";
import { stepFor, ticks } from "./ruler.ts";

// 2026-11-21T00:02:52.253260578Z
const TIME = nanos(1_795_219_372_253_260_578n);
const utc: Clock = { origin: nanos(TIME - 71_210_000n), unix: true, zone: "UTC", style: "absolute" };

/** Digits stand in groups; tests are easier to read with plain spaces. */
function plain(text: string): string {
  return text.replaceAll("\u202f", " ");
}

test.each([
  [0n, "0 ns"],
  [999n, "999 ns"],
  [1_000n, "1.000 µs"],
  [12_345n, "12.34 µs"],
  [999_999n, "999.9 µs"],
  [1_000_000n, "1.000 ms"],
  [71_210_000n, "71.21 ms"],
  [59_999_999_999n, "59.99 s"],
  [60_000_000_000n, "1 min 0 s"],
  [3_661_000_000_000n, "1 h 1 min"],
  [90_000_000_000_000n, "1 d 1 h"],
  [-12_345n, "−12.34 µs"],
])("%d ns is %s", (span, text) => {
  expect(duration(nanos(span))).toBe(text);
});

test("more digits tell shorter differences", () => {
  expect(duration(nanos(71_210_001), 8)).toBe("71.210001 ms");
  expect(duration(nanos(71_210_001), 2)).toBe("71 ms");
});

test("relative times count from the begin of the traces", () => {
  const clock: Clock = { ...utc, style: "relative" };
  expect(plain(timeText(clock, TIME))).toBe("0.071 210 000 s");
  expect(plain(timeText(clock, nanos(clock.origin - 1_500_000_000n), 1))).toBe("−1.5 s");
  expect(zoneText(clock, TIME)).toBe("since begin");
});

test("absolute times are those of the zone, to the nanosecond", () => {
  expect(plain(timeText(utc, TIME))).toBe("00:02:52.253 260 578");
  expect(dayText(utc, TIME)).toBe("2026-11-21");
  expect(zoneText(utc, TIME)).toBe("UTC");
  const berlin: Clock = { ...utc, zone: "Europe/Berlin" };
  expect(timeText(berlin, TIME, 0)).toBe("01:02:52");
  const york: Clock = { ...utc, zone: "America/New_York" };
  expect(dayText(york, TIME)).toBe("2026-11-20");
});

test("times before 1970 are in the second that they belong to", () => {
  expect(plain(timeText(utc, nanos(-1), 9))).toBe("23:59:59.999 999 999");
  expect(dayText(utc, nanos(-1))).toBe("1969-12-31");
});

test("clocks that do not know the epoch have no absolute times", () => {
  const clock: Clock = { ...utc, unix: false };
  expect(plain(timeText(clock, TIME, 3))).toBe("0.071 s");
  expect(dayText(clock, TIME)).toBe("");
});

test("as many digits as tell steps apart", () => {
  expect([5_000_000_000, 1_000_000_000, 500_000_000, 100_000_000, 20_000, 1].map((step) => digitsFor(nanos(step)))).toEqual([0, 0, 1, 1, 5, 9]);
});

test.each([
  [1_000n, 100n],
  [10_000n, 1_000n],
  [71_210_000n, 10_000_000n],
  [10n * 1_000_000_000n, 1_000_000_000n],
  [600n * 1_000_000_000n, 60n * 1_000_000_000n],
  [86_400n * 1_000_000_000n, 10_800n * 1_000_000_000n],
  [30n * 86_400n * 1_000_000_000n, 3n * 86_400n * 1_000_000_000n],
])("a window of %d ns has marks each %d ns", (span, step) => {
  expect(stepFor({ begin: nanos(0), span: nanos(span) }, px(1_000), px(100))).toBe(step);
});

test("marks stand at round times, apart from each other, and none is missing", () => {
  const view = { begin: nanos(utc.origin + 3_333n), span: nanos(1_000_000) };
  for (const style of ["relative", "absolute"] as const) {
    const marks = ticks(view, px(1_000), px(120), { ...utc, style });
    const named = marks.filter((mark) => mark.label !== "");
    expect(named.length).toBeGreaterThanOrEqual(4);
    expect(new Set(named.map((mark) => mark.label)).size).toBe(named.length);
    for (const [index, mark] of named.entries()) {
      const base = style === "absolute" ? 0n : utc.origin;
      expect((mark.time - base) % 200_000n).toBe(0n);
      const before = named[index - 1];
      expect(before === undefined || Math.abs(mark.x - before.x - 200) < 1e-6).toBe(true);
    }
    expect(marks.length).toBe(25);
  }
});
