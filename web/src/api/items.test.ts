import { expect, test } from "vitest";
import { answerItems, type TestItem } from "../testing/items.ts";
import { trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { Client } from "./client.ts";
import { askEdge } from "./items.ts";

/** The first or last edge that a server with these items knows in a part of the time. */
async function edge(items: readonly TestItem[], [begin, end]: readonly [number, number], by: 1 | -1): Promise<number | null> {
  const client = new Client("api/v1", null, (url) => Promise.resolve(new Response(answerItems(items, new URL(url, "http://x").searchParams))));
  const found = await askEdge(client, trackNumber(0), { begin: nanos(begin), end: nanos(end) }, by, new AbortController().signal);
  return found === null ? null : Number(found);
}

const run = (begin: number, end: number, more: object = {}): TestItem => ({ begin, end, more: { kind: "run", begin_known: true, end_known: true, in_doubt: false, value: { number: 0, label: "a", kind: "slice", colour: 0, track: null }, ...more } });

test("the first and the last edge in a part of the time are begins or ends of bars", async () => {
  const bars = [run(10, 80), run(85, 89), run(89, 200)];
  expect([await edge(bars, [80, 96], 1), await edge(bars, [81, 96], 1), await edge(bars, [86, 96], 1), await edge(bars, [90, 200], 1)]).toEqual([80, 85, 89, null]);
  expect([await edge(bars, [80, 96], -1), await edge(bars, [80, 89], -1), await edge(bars, [80, 85], -1), await edge(bars, [90, 200], -1)]).toEqual([89, 85, 80, null]);
});

test("ends that are not known are no edges", async () => {
  const bars = [run(10, 40, { end_known: false }), run(50, 60, { begin_known: false })];
  expect([await edge(bars, [20, 100], 1), await edge(bars, [20, 100], -1), await edge(bars, [20, 60], -1)]).toEqual([60, 60, null]);
});

test("the last edge is found among more bars than an answer holds", async () => {
  const bars = Array.from({ length: 1_000 }, (_, at) => run(10 * at, 10 * at + 5));
  expect([await edge(bars, [0, 9_990], -1), await edge(bars, [0, 20_000], -1), await edge(bars, [3, 20_000], 1)]).toEqual([9_985, 9_995, 5]);
});
