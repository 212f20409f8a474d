import { expect, test } from "vitest";
import { trackLike } from "../testing/tracks.ts";
import type { Track } from "./catalogue.ts";
import { HUES, SLOTS, colourOf, css } from "./palette.ts";
import { slotOfValue, slotsOf } from "./siblings.ts";

const thread = (number: number, tid: number, process: string, more: Partial<Track> = {}): Track => trackLike(number, { tid, process, ...more });
const many = (process: string, count: number, first = 0): Track[] => Array.from({ length: count }, (_, index) => thread(first + index, 1_000 + index, process));
const slotsIn = (tracks: readonly Track[]): number[] => tracks.map(({ number }) => slotsOf(tracks).get(number) ?? -1);

test("threads of a process have different colors, neighbors different hues, and colors come again as late as can be", () => {
  for (const process of ["1", "4711", "nginx", "99999"]) {
    const slots = slotsIn(many(process, 50));
    expect(new Set(slots.slice(0, SLOTS)).size).toBe(SLOTS);
    expect(slots.map((slot, index) => slots.indexOf(slot, index + 1) - index).filter((apart) => apart > 0).every((apart) => apart === SLOTS)).toBe(true);
    expect(slots.every((slot, index) => index === 0 || slot % HUES.length !== (slots[index - 1] ?? 0) % HUES.length)).toBe(true);
    const colours = slots.slice(0, SLOTS).map((slot) => css(colourOf("dark", "thread", "", slot)));
    expect(new Set(colours).size).toBe(SLOTS);
  }
});

test("a thread has the same color in whichever order tracks come, and however many start later", () => {
  const tracks = many("4711", 12);
  const before = new Map(tracks.map((track, index) => [track.tid, slotsIn(tracks)[index]]));
  const mixed = [...many("12", 5, 100), ...[...tracks].reverse(), thread(200, 5_000, "4711")];
  expect(mixed.filter(({ process, tid }) => process === "4711" && tid !== 5_000).map(({ number, tid }) => [slotsOf(mixed).get(number), before.get(tid)]).every(([now, then]) => now === then)).toBe(true);
});

test("all tracks of a thread have its color; hosts, and threads of unknown processes, are apart", () => {
  const tracks = [thread(0, 7, "7"), thread(1, 7, "7", { depth: 1 }), thread(2, 8, "7"), trackLike(3, { tid: 9 }), trackLike(4), thread(5, 7, "7", { host: "b" })];
  const [one, part, other, unknown, none] = slotsIn(tracks);
  expect([part, unknown, none]).toEqual([one, -1, -1]);
  expect(other).toBe(((one ?? 0) + 1) % SLOTS);
});

test("a value has the color of its thread; of its application where these are colored; else its own", () => {
  const tracks = [thread(0, 7, "7"), thread(1, 8, "7")];
  const value = { kind: "thread", colour: 99, track: 1, owner: { colour: 5 } };
  const own = slotsOf(tracks).get(1);
  expect(slotOfValue(value, "thread", tracks)).toBe(own);
  expect(slotOfValue({ ...value, kind: "event" }, "thread", tracks)).toBe(slotOfValue({ kind: "event", colour: 99 }, "thread", []));
  expect(slotOfValue(value, "application", tracks)).toBe(slotOfValue({ kind: "thread", colour: 5 }, "thread", tracks));
  expect(slotOfValue({ ...value, owner: { colour: null } }, "application", tracks)).toBe(own);
});

test("ten thousands of threads have their colors in no time", () => {
  const began = performance.now();
  expect(slotsOf(many("1", 30_000)).size).toBe(30_000);
  expect(performance.now() - began).toBeLessThan(3_000);
});
