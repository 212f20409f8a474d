// What is asked for in each picture is found once.

import { expect, test } from "vitest";
import type { Track } from "./catalogue.ts";
import { isOfKernel } from "./latency.ts";
import { overviewTracks } from "./overview.ts";
import { trackLike } from "../testing/tracks.ts";

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
