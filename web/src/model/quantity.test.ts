import { expect, test } from "vitest";
import { exactQuantity, shortQuantity } from "./quantity.ts";

test("short numbers have four digits at most, and their unit", () => {
  const short = (value: number, unit: string | null = null): string => shortQuantity(value, unit);
  expect([0, 7, -3, 9999, 10_000, 123_456, 1.5e9, 2.345678].map((value) => short(value))).toEqual(["0", "7", "−3", "9999", "10 k", "123.5 k", "1500 M", "2.346"]);
  expect([0.00001, 1e20, -2.5e-7].map((value) => short(value))).toEqual(["1.00e−5", "1.00e20", "−2.50e−7"]);
  expect(short(12, "jobs")).toBe("12 jobs");
  expect(short(45_000, "jobs")).toBe("45 k jobs");
  expect(short(50, "%")).toBe("50 %");
  expect([short(1, "threads"), short(-1, "jobs"), short(1.5, "jobs"), short(0, "threads"), short(1, "retries"), exactQuantity(1, "bytes")]).toEqual(["1 thread", "−1 job", "1.5 jobs", "0 threads", "1 retry", "1 byte"]);
  // The unit of conductance is no plural.
  expect(short(1, "siemens")).toBe("1 siemens");
  expect(short(Infinity, "bytes")).toBe("Infinity");
});

test("sizes and times are in the unit that suits them", () => {
  expect(shortQuantity(512, "bytes")).toBe("512 B");
  expect(shortQuantity(65_536, "bytes")).toBe("64 KiB");
  expect(shortQuantity(1_572_864, "B")).toBe("1\u202f536 KiB");
  expect(shortQuantity(-20_480, "byte")).toBe("−20 KiB");
  expect(shortQuantity(1_500, "us")).toBe("1.500 ms");
  expect(shortQuantity(2, "s")).toBe("2 s");
  expect(shortQuantity(0, "ms")).toBe("0 ns");
  // What is less than a nanosecond stays what it is.
  expect(shortQuantity(0.25, "ns")).toBe("0.25 ns");
});

test("exact numbers have all their digits", () => {
  expect(exactQuantity(1_234_567, "bytes")).toBe("1\u202f234\u202f567 bytes");
  expect(exactQuantity(-12, null)).toBe("−12");
  expect(exactQuantity(0.1, "V")).toBe("0.1 V");
});
