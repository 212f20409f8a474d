import { expect, test } from "vitest";
import type { Status } from "../model/catalogue.ts";
import type { Live } from "../model/live.ts";
import { endOf } from "../model/viewport.ts";
import { paused, resumed } from "../state/live.ts";
import { Store } from "../state/store.ts";
import { FIRST_STATE, drawnTo, resized, withStatus } from "../state/viewer.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { Follower } from "./following.ts";

/** A page, whose pictures the test makes. */
class Bench {
  now = 0;
  isStill = false;
  frames: (() => void)[] = [];
  readonly store = new Store(resized(FIRST_STATE, { width: cssPx(1_000), height: cssPx(100), ratio: 1 }));

  constructor() {
    new Follower(this.store, { now: () => this.now, next: (act) => this.frames.push(act), isStill: () => this.isStill });
  }

  tell(ms: number, state: Live["state"] = "recording"): void {
    const end = nanos(ms * 1_000_000);
    const status: Status = { extent: { begin: nanos(0), end }, unix: true, levels: { min: level(0), max: level(40) }, version: ms, doneBytes: 1, totalBytes: 1, etaMs: null, state: "complete", failure: null, events: 1n, lost: 0n, live: { state, watermark: end, behindMs: null, problem: null } };
    this.store.update((now) => withStatus(now, status));
  }

  /** Pictures, one each 16 ms; where the window ends in each, in milliseconds. */
  pictures(count: number): number[] {
    return Array.from({ length: count }, () => {
      this.now += 16;
      this.frames.splice(0).forEach((act) => act());
      return this.end;
    });
  }

  get end(): number {
    const { view } = this.store.state;
    return view === null ? NaN : Number(endOf(view)) / 1e6;
  }
}

test("the window goes to the watermark a picture at a time, and then nothing is asked for any more", () => {
  const bench = new Bench();
  bench.tell(60_000);
  bench.pictures(2);
  expect([bench.end, bench.frames.length]).toEqual([60_000, 0]);
  bench.tell(60_300);
  const ends = bench.pictures(40);
  expect(ends[1]).toBeGreaterThan(60_000);
  expect(ends[10]).toBeLessThan(60_300);
  expect(new Set(ends).size).toBeGreaterThan(15);
  expect([...ends].sort((one, other) => one - other)).toEqual(ends);
  expect([bench.end, bench.frames.length]).toEqual([60_300, 0]);
});

test("it goes no further than there are tiles", () => {
  const bench = new Bench();
  bench.tell(60_000);
  bench.store.update((state) => drawnTo(state, nanos(60_000_000_000n)));
  bench.tell(60_300);
  bench.tell(60_600);
  expect(bench.pictures(60).at(-1)).toBe(60_000);
  bench.store.update((state) => drawnTo(state, nanos(60_300_000_000n)));
  expect(bench.pictures(60).at(-1)).toBe(60_300);
  // What was drawn once stays so.
  bench.store.update((state) => drawnTo(state, nanos(60_100_000_000n)));
  expect(bench.pictures(60).at(-1)).toBe(60_300);
  // Nor is it over before the end is drawn.
  bench.tell(60_600, "ended");
  bench.pictures(60);
  expect(bench.store.state.follow.isOn).toBe(true);
  bench.store.update((state) => drawnTo(state, nanos(60_600_000_000n)));
  bench.pictures(200);
  expect([bench.end, bench.store.state.follow.isOn]).toEqual([60_600, false]);
});

test("who wants nothing to move by itself sees a step for each watermark", () => {
  const bench = new Bench();
  bench.isStill = true;
  bench.tell(60_000);
  bench.tell(60_300);
  expect(bench.pictures(3)).toEqual([60_300, 60_300, 60_300]);
  expect(bench.frames.length).toBe(0);
});

test("held back it stays, and goes on from where the traces are then", () => {
  const bench = new Bench();
  bench.tell(60_000);
  bench.tell(60_300);
  bench.pictures(3);
  bench.store.update(paused);
  const { end } = bench;
  bench.tell(61_000);
  expect(bench.pictures(50)).toEqual(Array(50).fill(end));
  expect(bench.frames.length).toBe(0);
  bench.store.update(resumed);
  expect(bench.pictures(1)).toEqual([61_000]);
});

test("when the recorder has ended it goes to the end and is not followed any more", () => {
  const bench = new Bench();
  bench.tell(60_000);
  bench.tell(60_300, "ended");
  const [first = NaN] = bench.pictures(1);
  expect(first).toBeLessThan(60_300);
  expect(bench.store.state.follow.isOn).toBe(true);
  bench.pictures(60);
  expect([bench.end, bench.store.state.follow.isOn, bench.frames.length]).toEqual([60_300, false, 0]);
});
