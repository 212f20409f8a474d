// Layouts of traces with ten thousands of tracks.

import { expect, test } from "vitest";
import { PLAIN_LAYOUT, withPinned, withTrackSize } from "./layout.ts";

const COUNT = 1_000;

/** A list that counts how often one of its items is looked at. */
function counted(ids: readonly string[]): { readonly list: readonly string[]; readonly reads: () => number } {
  let reads = 0;
  const list = new Proxy(ids, {
    get: (target, name): unknown => {
      reads++;
      return Reflect.get(target, name) as unknown;
    },
  });
  return { list, reads: () => reads };
}

test("tracks are pinned and sized with a few looks at each, however many there are", () => {
  const [ids, others] = ["new", "old"].map((name) => Array.from({ length: COUNT }, (_, index) => `${name}/${index}`));
  const [own, there] = [counted(ids ?? []), counted(others ?? [])];
  const layout = { ...PLAIN_LAYOUT, pinned: there.list, small: there.list };
  expect(withPinned(layout, own.list, true).pinned).toEqual([...(others ?? []), ...(ids ?? [])]);
  expect(withPinned(layout, own.list, false).pinned).toEqual(others);
  const sized = withTrackSize(layout, own.list, "small");
  expect([sized.small.length, sized.large.length]).toEqual([2 * COUNT, 0]);
  expect(own.reads() + there.reads()).toBeLessThan(50 * COUNT);
});
