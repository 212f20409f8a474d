import { expect, test } from "vitest";
import type { Sums } from "../model/sums.ts";
import { NONE, type Answer, type Items } from "../model/tile.ts";
import { encodeAnswer, runs, states } from "../testing/tiles.ts";
import { level, trackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { ApiFault, Client } from "./client.ts";
import { askSums } from "./sums.ts";

/** Traces of 2^24 ns on whose only track values 0, 1 and 2 take turns of 4,096 ns each. */
const SPAN = 2 ** 24;
const RUN = 4_096;

/** Tells runs one by one where buckets are at most so wide, and there are not more runs than buckets. */
function server(stored: number, asked: string[]): Client {
  return new Client("api/v1", null, (url, init) => {
    if (init.signal?.aborted === true) {
      return Promise.reject(init.signal.reason);
    }
    const query = new URL(url, "http://x").searchParams;
    const [of, first, count] = ["level", "first", "count"].map((name) => Number(query.get(name))) as [number, number, number];
    asked.push(url);
    const [begin, width] = [first * 2 ** of, 2 ** of];
    const end = Math.min(SPAN, begin + count * width);
    const all = Array.from({ length: Math.ceil(end / RUN) }, (_, at) => [at * RUN, (at + 1) * RUN, at % 3, 0] as const).filter(([, until]) => until > begin);
    const isFew = all.length <= count && of < stored;
    const bucketed = Array.from({ length: Math.ceil((end - begin) / width) }, (_, at) => [at, 0, 1, 0, Math.max(1, Math.floor(width / RUN)), 21_845, 21_845]);
    const items: Items = isFew ? runs(...all.map(([from, to, value, flags]) => [from - begin, to - begin, value, flags])) : states(...bucketed);
    const answer: Answer = { level: level(of), first: BigInt(first), count, spans: [{ begin: 0, end: count, quality: "exact" }], tracks: [{ track: trackNumber(3), carry: NONE, items }] };
    return Promise.resolve(new Response(encodeAnswer(answer)));
  });
}

async function told(stored: number, asked: string[] = [], signal = new AbortController().signal): Promise<{ readonly sums: Sums; readonly isLast: boolean }[]> {
  const found: { sums: Sums; isLast: boolean }[] = [];
  const extent = { begin: nanos(500), end: nanos(500 + SPAN) };
  const question = { window: { begin: nanos(500 + 100), span: nanos(SPAN - 200) }, extent, levels: { min: level(0), max: level(24) }, tracks: [trackNumber(3)], queryOf: () => "" };
  await askSums(server(stored, asked), question, signal, (sums, isLast) => void found.push({ sums, isLast }));
  return found;
}

test("rounded sums come at once; runs that are too many for an answer are then asked for part by part, and are exact", async () => {
  const [first, last, ...more] = await told(13);
  expect([first?.isLast, last?.isLast, more.length]).toEqual([false, true, 0]);
  expect([first?.sums.tracks[0]?.isExact, first?.sums.tracks[0]?.untold]).toEqual([false, expect.closeTo(SPAN / 3, -5)]);
  const exact = last?.sums.tracks[0];
  const turns = SPAN / RUN;
  expect([exact?.isExact, exact?.untold, exact?.count]).toEqual([true, 0, turns - 1]);
  // 4,096 runs: the first and the last one lack what is not selected.
  expect([...(exact?.values ?? [])].sort(([one], [other]) => one - other)).toEqual([
    [0, { time: Math.ceil(turns / 3) * RUN - 200, count: Math.ceil(turns / 3), longest: RUN }],
    [1, { time: Math.floor(turns / 3) * RUN, count: Math.floor(turns / 3), longest: RUN }],
    [2, { time: Math.floor(turns / 3) * RUN, count: Math.floor(turns / 3), longest: RUN }],
  ]);
});

test("a server that never tells runs one by one is not asked for ever, and its sums stay rounded", async () => {
  const asked: string[] = [];
  const found = await told(0, asked);
  expect([found.length, found.at(-1)?.isLast, found.at(-1)?.sums.tracks[0]?.isExact]).toEqual([2, true, false]);
  expect(asked.length).toBeLessThan(80);
});

test("sums that are not wanted any more are not asked for any more", async () => {
  const asking = new AbortController();
  asking.abort();
  await expect(told(13, [], asking.signal)).rejects.toBeInstanceOf(ApiFault);
});
