import { expect, test } from "vitest";
import { nanos } from "../units/time.ts";
import { edgeAt, headed, isMoving, resting, type Glide } from "./glide.ts";

const ms = (count: number): ReturnType<typeof nanos> => nanos(Math.round(count * 1e6));

/** Where the end is at each of some times, while watermarks come at others. */
function path(watermarks: readonly (readonly [at: number, to: number])[], times: readonly number[]): number[] {
  let glide = resting(ms(watermarks[0]?.[1] ?? 0), watermarks[0]?.[0] ?? 0);
  let next = 1;
  return times.map((now) => {
    for (let mark = watermarks[next]; mark !== undefined && mark[0] <= now; mark = watermarks[++next]) {
      glide = headed(glide, ms(mark[1]), mark[0]);
    }
    return Number(edgeAt(glide, now)) / 1e6;
  });
}

/** Pictures of the screen, 60 in a second. */
function pictures(from: number, to: number): number[] {
  return Array.from({ length: Math.floor(((to - from) * 60) / 1_000) }, (_, index) => from + (index * 1_000) / 60);
}

function steps(found: readonly number[]): number[] {
  return found.slice(1).map((edge, index) => edge - (found[index] ?? 0));
}

test("watermarks that come in time move the end at their rate, half a step behind the last one", () => {
  const watermarks = Array.from({ length: 60 }, (_, index) => [index * 250, 1_000 + index * 250] as const);
  const times = pictures(8_000, 14_000);
  const found = path(watermarks, times);
  for (const step of steps(found)) {
    expect(step).toBeCloseTo(1_000 / 60, 1);
  }
  // Just before the next one comes.
  expect(path(watermarks, [8_249.9])[0]).toBeCloseTo(1_000 + 8_000 - 125, 0);
});

test("the end never jumps, never turns back and is never ahead, however watermarks come", () => {
  let state = 7;
  const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const watermarks: [number, number][] = [[0, 0]];
  for (let at = 0, to = 0; at < 20_000; ) {
    at += 150 + random() * 350;
    to += random() < 0.1 ? 0 : random() * 600;
    watermarks.push([at, to]);
  }
  const times = pictures(0, 20_000);
  const found = path(watermarks, times);
  steps(found).forEach((step) => {
    expect(step).toBeGreaterThanOrEqual(0);
    // The longest step is made in no less than the shortest time that is usual.
    expect(step).toBeLessThan(150);
  });
  times.forEach((now, index) => {
    const last = watermarks.filter(([at]) => at <= now).at(-1)?.[1] ?? 0;
    expect(found[index]).toBeLessThanOrEqual(last + 0.001);
  });
});

test("one that is late by a third of the usual time stops nothing", () => {
  const watermarks = Array.from({ length: 40 }, (_, index) => [index * 300 + (index % 2 === 0 ? 100 : 0), index * 300] as const);
  for (const step of steps(path(watermarks, pictures(6_000, 11_000)))) {
    expect(step).toBeGreaterThan(4);
    expect(step).toBeLessThan(40);
  }
});

test("where nothing comes the end rests at the last watermark", () => {
  const glide = headed(resting(ms(0), 0), ms(100), 1_000);
  expect([isMoving(glide, 1_001), edgeAt(glide, 1_000), edgeAt(glide, 99_999), isMoving(glide, 99_999)]).toEqual([true, 0n, ms(100), false]);
  // The same again moves nothing; a page that was not looked at for a minute is there at once.
  expect(headed(glide, ms(100), 1_200)).toBe(glide);
  expect(edgeAt(headed(glide, ms(60_000), 61_000), 64_001)).toBe(ms(60_000));
});

test("a watermark before the last one is of other traces", () => {
  const glide: Glide = headed(resting(ms(0), 0), ms(100), 100);
  expect(edgeAt(headed(glide, ms(5), 150), 150)).toBe(ms(5));
});

test("times beyond what a double holds are exact", () => {
  const begin = 1_795_219_372_253_260_578n;
  const glide = headed(resting(nanos(begin), 0), nanos(begin + 3n), 100);
  expect([edgeAt(glide, 100), edgeAt(glide, 1e9)]).toEqual([begin, begin + 3n]);
});
