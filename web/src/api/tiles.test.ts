import { expect, test } from "vitest";
import { TileCache } from "../model/cache.ts";
import { NONE, type Answer, type Tile } from "../model/tile.ts";
import type { TileRange } from "../model/wanted.ts";
import { counts, encodeAnswer } from "../testing/tiles.ts";
import { level, tileIndex, trackNumber } from "../units/tiles.ts";
import { ApiFault, Client } from "./client.ts";
import { TileFetcher, type Wish } from "./tiles.ts";

/** A server whose answers come when the test says so. */
class Desk {
  readonly open: { readonly url: string; readonly aborted: () => boolean; answer(response: Response): Promise<void> }[] = [];
  readonly arrived: (readonly Tile[])[] = [];
  readonly failed: ApiFault[] = [];
  readonly cache = new TileCache(1e6);
  readonly fetcher: TileFetcher;

  constructor() {
    const client = new Client("api/v1", null, (url, init) => this.take(url, init));
    this.fetcher = new TileFetcher(client, this.cache, {
      arrived: (tiles) => void this.arrived.push(tiles),
      failed: (fault) => void this.failed.push(fault),
    });
  }

  private take(url: string, init: RequestInit): Promise<Response> {
    return new Promise((resolve, reject) => {
      const drop = (): void => void this.open.splice(this.open.findIndex((one) => one.url === url), 1);
      init.signal?.addEventListener("abort", () => {
        drop();
        reject(init.signal?.reason);
      });
      const answer = async (response: Response): Promise<void> => {
        drop();
        resolve(response);
        await settled();
      };
      this.open.push({ url, aborted: () => init.signal?.aborted ?? false, answer });
    });
  }

  get urls(): string[] {
    return this.open.map(({ url }) => url.replace("api/v1/tiles?", ""));
  }

  /** Answers the oldest question as it should be. */
  async answer(more: Partial<Answer> = {}, etag = '"a"'): Promise<void> {
    const [first] = this.open;
    const query = new URL(first?.url ?? "", "http://x").searchParams;
    const count = Number(query.get("count"));
    const tracks = (query.get("tracks") ?? "").split(",").map((number) => ({ track: trackNumber(Number(number)), carry: NONE, items: counts() }));
    const answer: Answer = {
      level: level(Number(query.get("level"))),
      first: BigInt(query.get("first") ?? 0),
      count,
      spans: [{ begin: 0, end: count, quality: "exact" }],
      tracks,
      ...more,
    };
    await first?.answer(new Response(encodeAnswer(answer), { headers: { ETag: etag } }));
  }
}

/** Everything that can happen without waiting has happened. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((done) => setImmediate(done));
  }
}

function rangeOf(of: number, first: number, count: number): TileRange {
  return { level: level(of), first: tileIndex(first), count };
}

function wishOf(range: TileRange, soon: TileRange | null = null, version = 1): Wish {
  const tracks = [trackNumber(1), trackNumber(2)];
  return { seen: [{ range, tracks }], soon: soon === null ? [] : [{ range: soon, tracks }], version };
}

test("the window comes first, then its neighbours, and then it is complete", async () => {
  const desk = new Desk();
  desk.fetcher.want(wishOf(rangeOf(3, 4, 2), rangeOf(3, 3, 4)));
  expect(desk.urls).toEqual(["level=3&first=1024&count=512&tracks=1,2", "level=3&first=768&count=256&tracks=1,2"]);
  expect(desk.fetcher.complete).toBe(false);
  await desk.answer();
  expect(desk.fetcher.complete).toBe(true);
  expect(desk.arrived[0]?.length).toBe(4);
  expect(desk.urls).toEqual(["level=3&first=768&count=256&tracks=1,2", "level=3&first=1536&count=256&tracks=1,2"]);
  await desk.answer();
  await desk.answer();
  expect(desk.urls).toEqual([]);
});

test("no more than two questions are on the way", () => {
  const desk = new Desk();
  const tracks = Array.from({ length: 900 }, (_, number) => trackNumber(number));
  desk.fetcher.want({ seen: [{ range: rangeOf(3, 0, 4), tracks }], soon: [], version: 1 });
  expect(desk.urls.length).toBe(2);
});

test("what nobody wants any more is not waited for", async () => {
  const desk = new Desk();
  desk.fetcher.want(wishOf(rangeOf(3, 0, 2)));
  desk.fetcher.want(wishOf(rangeOf(5, 0, 2)));
  await settled();
  expect(desk.urls).toEqual(["level=5&first=0&count=512&tracks=1,2"]);
  expect(desk.failed).toEqual([]);
});

test("what is on the way is not asked for twice when the window moves a little", () => {
  const desk = new Desk();
  desk.fetcher.want(wishOf(rangeOf(3, 0, 2)));
  desk.fetcher.want(wishOf(rangeOf(3, 1, 2)));
  expect(desk.urls).toEqual(["level=3&first=0&count=512&tracks=1,2", "level=3&first=512&count=256&tracks=1,2"]);
});

test("what is not exact is asked for again with its tag, and kept if it is still right", async () => {
  const desk = new Desk();
  desk.fetcher.want(wishOf(rangeOf(3, 0, 1)));
  await desk.answer({ spans: [{ begin: 0, end: 256, quality: "building" }] });
  desk.fetcher.want(wishOf(rangeOf(3, 0, 1)));
  expect(desk.urls).toEqual([]);
  desk.fetcher.want(wishOf(rangeOf(3, 0, 1), null, 2));
  expect(desk.urls.length).toBe(1);
  await desk.open[0]?.answer(new Response(null, { status: 304 }));
  expect(desk.urls).toEqual([]);
  expect(desk.fetcher.complete).toBe(true);
});

test.each([
  [{ level: level(9) }, "asked for 256 buckets of level 3 from 0 on, got 256 of level 9 from 0 on"],
  [{ first: 256n }, "asked for 256 buckets of level 3 from 0 on, got 256 of level 3 from 256 on"],
  [{ tracks: [] }, "asked for track 1, got nothing of it"],
])("an answer to another question is refused: %o", async (more, message) => {
  const desk = new Desk();
  desk.fetcher.want(wishOf(rangeOf(3, 0, 1)));
  await desk.answer(more);
  expect(desk.failed.map((fault) => [fault.kind, fault.message])).toEqual([["nonsense", message]]);
  // It would be answered the same way: it is asked again when there is a new wish.
  expect(desk.urls).toEqual([]);
  desk.fetcher.want(wishOf(rangeOf(3, 0, 1)));
  expect(desk.urls.length).toBe(1);
});

test("bytes that are no tiles are told with where", async () => {
  const desk = new Desk();
  desk.fetcher.want(wishOf(rangeOf(3, 0, 1)));
  await desk.open[0]?.answer(new Response(Uint8Array.of(1, 2)));
  expect(desk.failed[0]?.message).toBe("at byte 0 of the tiles: the magic number: 4 bytes are needed, 2 are left");
});

test("a server that is busy is asked again after a pause", async () => {
  const desk = new Desk();
  desk.fetcher.want(wishOf(rangeOf(3, 0, 1)));
  await desk.open[0]?.answer(new Response("", { status: 503 }));
  expect(desk.failed.map((fault) => fault.kind)).toEqual(["busy"]);
  expect(desk.urls).toEqual([]);
  await new Promise((done) => setTimeout(done, 400));
  expect(desk.urls.length).toBe(1);
  desk.fetcher.stop();
  await settled();
  expect(desk.urls).toEqual([]);
});

test("a server that tells nothing of use is not asked for ever", async () => {
  const desk = new Desk();
  // The cache forgets each tile at once, so that all of them seem to be missing for ever.
  const full = new TileCache(1);
  Object.assign(desk.fetcher, { cache: full });
  desk.fetcher.want(wishOf(rangeOf(3, 0, 2)));
  let asked = 0;
  while (desk.open.length > 0 && asked < 1_000) {
    asked++;
    await desk.answer();
  }
  expect(asked).toBe(64);
});

const SOME_EVENTS = "filter=id+%3E+10&event=a";

test("tracks of some events are asked apart, and their tiles are no others'", async () => {
  const desk = new Desk();
  const wish: Wish = { seen: [{ range: { level: level(4), first: tileIndex(0), count: 1 }, tracks: [trackNumber(1), trackNumber(2)] }], soon: [], version: 1 };
  desk.cache.choose(SOME_EVENTS, new Set([2]));
  desk.fetcher.want(wish);
  expect(desk.urls).toEqual(["level=4&first=0&count=256&tracks=1", `level=4&first=0&count=256&tracks=2&${SOME_EVENTS}`]);
  await desk.answer();
  await desk.answer();
  expect([desk.fetcher.complete, desk.arrived.length]).toEqual([true, 2]);
  // All events of the track are asked for; the other track's tile is still right.
  desk.cache.choose("", new Set([2]));
  desk.fetcher.want(wish);
  expect(desk.urls).toEqual(["level=4&first=0&count=256&tracks=2"]);
  // Back to some events before the answer is here: it is let go of, and nothing has to be asked.
  desk.cache.choose(SOME_EVENTS, new Set([2]));
  desk.fetcher.want(wish);
  expect([desk.urls, desk.fetcher.complete]).toEqual([[], true]);
  expect(desk.cache.pieces({ level: level(4), first: tileIndex(0), count: 1 }, trackNumber(2)).length).toBe(1);
});

test("a filter that is refused is not asked again, and all else is", async () => {
  const desk = new Desk();
  const wish: Wish = { seen: [{ range: { level: level(4), first: tileIndex(0), count: 1 }, tracks: [trackNumber(2), trackNumber(1)] }], soon: [], version: 1 };
  desk.cache.choose(SOME_EVENTS, new Set([2]));
  desk.fetcher.want(wish);
  await desk.open[0]?.answer(new Response('{"error":{"message":"no event has a name like `a`"}}', { status: 400 }));
  expect(desk.failed.map((fault) => [fault.kind, fault.message])).toEqual([["refused", "no event has a name like `a`"]]);
  await desk.answer();
  expect([desk.urls, desk.fetcher.complete]).toEqual([[], true]);
  desk.fetcher.want({ ...wish, version: 2 });
  expect(desk.urls).toEqual([]);
});
