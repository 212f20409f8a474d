// Layouts of traces with ten thousands of tracks.

import { expect, test } from "vitest";
import { PLAIN_LAYOUT, layoutParts, readLayout, withNamesWidth, withTrackSize } from "./layout.ts";

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

test("tracks are sized with a few looks at each, however many there are", () => {
  const [ids, others] = ["new", "old"].map((name) => Array.from({ length: COUNT }, (_, index) => `${name}/${index}`));
  const [own, there] = [counted(ids ?? []), counted(others ?? [])];
  const layout = { ...PLAIN_LAYOUT, small: there.list };
  const sized = withTrackSize(layout, own.list, "small");
  expect([sized.small.length, sized.large.length]).toEqual([2 * COUNT, 0]);
  expect(own.reads() + there.reads()).toBeLessThan(50 * COUNT);
});

test("the column of names is as wide as the user wants, within reason, and is kept", () => {
  const kept = (width: number): unknown => readLayout(new URLSearchParams(layoutParts(withNamesWidth(PLAIN_LAYOUT, width)))).names;
  expect([kept(320.4), kept(3), kept(99_999)]).toEqual([320, 72, 1_200]);
  const read = (text: string): unknown => readLayout(new URLSearchParams(text)).names;
  expect([read(""), read("names=5"), read("names=x"), read("names=-4"), read("names=123456")]).toEqual([null, 72, null, null, null]);
});
