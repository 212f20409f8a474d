import { expect, test } from "vitest";
import { px } from "../units/screen.ts";
import { nanos } from "../units/time.ts";
import { dayText, digitsFor, duration, lettersMax, timeText, zoneAhead, zoneText, type Clock } from "./clock.ts";
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
  [12_344n, "12.34 µs"],
  [12_345n, "12.35 µs"],
  [9_999_600n, "10.00 ms"],
  [38_758_778n, "38.76 ms"],
  [999_949n, "999.9 µs"],
  [999_950n, "1.000 ms"],
  [999_999n, "1.000 ms"],
  [1_000_000n, "1.000 ms"],
  [71_210_000n, "71.21 ms"],
  [59_994_999_999n, "59.99 s"],
  [59_999_999_999n, "1 min 0 s"],
  [119_600_000_000n, "2 min 0 s"],
  [3_599_600_000_000n, "1 h 0 min"],
  [60_000_000_000n, "1 min 0 s"],
  [3_661_000_000_000n, "1 h 1 min"],
  [90_000_000_000_000n, "1 d 1 h"],
  [-12_345n, "−12.35 µs"],
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

const DAY = 86_400_000_000_000n;

test.each([
  [59_999_999_999n, 0, "59 s"],
  [60_000_000_000n, 0, "1 min"],
  [60_000_000_000n, 3, "1 min 0.000 s"],
  [4_510_000_000_000n, 0, "1 h 15 min 10 s"],
  [4_838_400_000_000_000n, 0, "56 d"],
  [4_838_400_000_000_001n, 9, "56 d 0.000 000 001 s"],
  [-5_400_500_000_000n, 1, "−1 h 30 min 0.5 s"],
])("%d ns behind the begin with %d digits is %s", (since, digits, text) => {
  expect(plain(timeText({ ...utc, style: "relative" }, nanos(utc.origin + since), digits))).toBe(text);
});

test("no time until the end has more letters than are kept free for it", () => {
  const clock: Clock = { ...utc, origin: nanos(0), style: "relative" };
  for (const end of [1n, 59_000_000_000n, 60_000_000_000n, 3_600_000_000_000n, 10n * DAY, 10n * DAY + 1n]) {
    const most = [end, end - 1n, (end * 9n) / 10n].reduce((found, time) => Math.max(found, timeText(clock, nanos(time)).length), 0);
    expect(lettersMax(clock, nanos(end))).toBeGreaterThanOrEqual(most);
  }
  expect(lettersMax(clock, nanos(DAY))).toBe("23 h 59 min 59.999 999 999 s".length);
});

test("times of traces of several days have their day", () => {
  expect(timeText({ ...utc, days: true }, TIME, 0)).toBe("2026-11-21 00:02:52");
  expect(timeText({ ...utc, style: "relative", days: true }, TIME, 2)).toBe("0.07 s");
});

test("zones are ahead of UTC, or behind it, and not always as far", () => {
  const berlin: Clock = { ...utc, zone: "Europe/Berlin" };
  const hours = (clock: Clock, time: bigint): number => Number(zoneAhead(clock, nanos(time)) / 1_800_000_000_000n) / 2;
  expect([hours(berlin, TIME), hours(berlin, TIME - 120n * DAY), hours({ ...utc, zone: "America/New_York" }, TIME), hours({ ...utc, zone: "Asia/Kolkata" }, -1n)]).toEqual([1, 2, -5, 5.5]);
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

/** The names of the marks of a window. */
function namesOf(clock: Clock, begin: bigint, span: bigint): string[] {
  const marks = ticks({ begin: nanos(begin), span: nanos(span) }, px(1_300), px(130), clock);
  return marks.flatMap(({ label }) => (label === "" ? [] : [plain(label)]));
}

test("marks over hours and days are called by what they count", () => {
  const clock: Clock = { ...utc, origin: nanos(0), style: "relative" };
  expect(namesOf(clock, 0n, 40n * 60_000_000_000n)).toEqual(["0 s", "5 min", "10 min", "15 min", "20 min", "25 min", "30 min", "35 min"]);
  expect(namesOf(clock, 0n, DAY).slice(0, 3)).toEqual(["0 s", "3 h", "6 h"]);
  expect(namesOf(clock, 2n * DAY, 2n * DAY)).toEqual(["2 d", "2 d 6 h", "2 d 12 h", "2 d 18 h", "3 d", "3 d 6 h", "3 d 12 h", "3 d 18 h"]);
  expect(namesOf(clock, 0n, 60n * DAY).slice(0, 3)).toEqual(["0 s", "6 d", "12 d"]);
});

test("names that need more room have fewer marks", () => {
  const clock: Clock = { ...utc, origin: nanos(0), style: "relative" };
  // Ten names of an instant after days would run into each other: there is room for five.
  expect(namesOf(clock, 10n * DAY - 60_000_000_000n, 10_000n)).toEqual([0, 2, 4, 6, 8].map((at) => `9 d 23 h 59 min 0.000 00${at} s`));
});

test("marks of times of the day say on which day they are where that changes, and stand at midnight of the zone", () => {
  const midnight = 1_795_219_200_000_000_000n;
  expect(namesOf(utc, midnight - DAY / 4n, DAY / 2n).slice(2, 5)).toEqual(["22:00:00", "2026-11-21", "02:00:00"]);
  expect(namesOf({ ...utc, zone: "Asia/Kolkata" }, midnight, 8n * DAY)).toEqual(["2026-11-22", "2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27", "2026-11-28", "2026-11-29"]);
  // Summer time ends in the night to the 25th of October.
  const names = namesOf({ ...utc, zone: "Europe/Berlin" }, midnight - 29n * DAY, 4n * DAY);
  expect(names).toEqual(["12:00:00", "2026-10-24", "12:00:00", "2026-10-25", "11:00:00", "23:00:00", "2026-10-26 11:00:00", "23:00:00"]);
});
