// What is asked for in each picture is found once.

import { expect, test } from "vitest";
import type { Track } from "./catalogue.ts";
import { isOfKernel } from "./latency.ts";
import { overviewMarks, overviewTracks } from "./overview.ts";
import { trackLike } from "../testing/tracks.ts";
import { px } from "../units/screen.ts";
import { nanos } from "../units/time.ts";

const trackOf = (number: number, id: string, group: string, kind: Track["kind"]): Track => trackLike(number, { id, kind, name: id, group });

/** A list that counts how often one of its items is looked at. */
function counted(tracks: readonly Track[]): { readonly list: readonly Track[]; readonly reads: () => number } {
  let reads = 0;
  const list = new Proxy(tracks, {
    get: (target, name): unknown => {
      reads++;
      return Reflect.get(target, name) as unknown;
    },
  });
  return { list, reads: () => reads };
}

test("the overview is of all events, or of those of the only stream", () => {
  const [cpu, stream, all] = [trackOf(0, "cpu/0/0/thread", "CPUs", "states"), trackOf(1, "events/0/0", "Events", "instants"), trackOf(2, "all/events", "Events", "instants")];
  expect(overviewTracks({ tracks: [cpu, stream], values: [] })).toEqual([stream]);
  expect(overviewTracks({ tracks: [cpu, stream, all], values: [] })).toEqual([all]);
  expect([isOfKernel([cpu, stream]), isOfKernel([stream, all])]).toEqual([true, false]);
});

test("all tracks are looked through once, not in each picture", () => {
  const { list, reads } = counted(Array.from({ length: 100 }, (_, index) => trackOf(index, `events/0/${index}`, "Events", "instants")));
  const both = (): unknown[] => [overviewTracks({ tracks: list, values: [] }), isOfKernel(list)];
  const first = both();
  const once = reads();
  expect(both()).toEqual(first);
  expect(reads()).toBe(once);
});

test("the window can be seen on the overview however short it is", () => {
  const all = { begin: nanos(1_000), span: nanos(256) };
  const marksOf = (begin: number, span: number): unknown => overviewMarks({ view: { begin: nanos(begin), span: nanos(span) }, selection: null, mark: null }, all, px(16), 1).view;
  expect([marksOf(1_000, 256), marksOf(1_064, 64), marksOf(1_128, 1), marksOf(1_256, 1)]).toEqual([[0, 16], [4, 8], [8, 10], [16, 18]]);
  const shown = { view: all, selection: { begin: nanos(1_016), span: nanos(64) }, mark: nanos(1_207) };
  expect(overviewMarks(shown, all, px(16), 1)).toEqual({ view: [0, 16], selection: [1, 5], mark: 12 });
});
