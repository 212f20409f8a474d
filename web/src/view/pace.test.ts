import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Pace } from "./pace.ts";

let late: number[];
let pace: Pace;

beforeEach(() => {
  vi.useFakeTimers();
  late = [];
  pace = new Pace(() => late.push(pace.version));
});
afterEach(() => {
  vi.useRealTimers();
});

test("of many versions the first is taken at once, and then the last one each second", () => {
  expect([pace.hear(1, 1_000), pace.version]).toEqual([true, 1]);
  pace.answered();
  for (let version = 2; version <= 6; version++) {
    vi.advanceTimersByTime(150);
    expect(pace.hear(version, 1_000)).toBe(false);
  }
  expect([pace.version, late]).toEqual([1, []]);
  vi.advanceTimersByTime(250);
  expect([pace.version, late]).toEqual([6, [6]]);
  pace.answered();
  vi.advanceTimersByTime(5_000);
  expect(late).toEqual([6]);
  expect([pace.hear(7, 1_000), pace.version]).toEqual([true, 7]);
});

test("no version is taken before the answers in the last one have come, and the newest a pause after that", () => {
  pace.hear(1, 100);
  for (let version = 2; version <= 40; version++) {
    vi.advanceTimersByTime(150);
    expect(pace.hear(version, 100)).toBe(false);
  }
  expect([pace.version, late]).toEqual([1, []]);
  pace.answered();
  vi.advanceTimersByTime(99);
  // What else is answered meanwhile makes it no later.
  pace.answered();
  expect(pace.hear(41, 100)).toBe(false);
  vi.advanceTimersByTime(1);
  expect([pace.version, late]).toEqual([41, [41]]);
});

test("what is urgent waits for the answers alone", () => {
  pace.hear(1, 1_000);
  pace.hear(2, 0);
  expect(pace.version).toBe(1);
  pace.answered();
  vi.advanceTimersByTime(0);
  expect([pace.version, late]).toEqual([2, [2]]);
});

test("what is urgent is taken at once, and nothing follows it", () => {
  pace.hear(1, 1_000);
  pace.answered();
  pace.hear(2, 1_000);
  expect([pace.hear(3, 0), pace.version]).toEqual([true, 3]);
  vi.advanceTimersByTime(5_000);
  expect(late).toEqual([]);
});

test("the version that was taken already is nothing new", () => {
  pace.hear(4, 1_000);
  expect([pace.hear(4, 0), pace.version]).toEqual([false, 4]);
});

test("another server's versions are taken from the first on", () => {
  pace.hear(4, 1_000);
  pace.hear(5, 1_000);
  pace.reset();
  expect([pace.hear(4, 1_000), pace.version]).toEqual([true, 4]);
  vi.advanceTimersByTime(5_000);
  expect(late).toEqual([]);
});
