// The list at work, against a server that says the same each time, and sometimes nothing.

import { expect, test, vi } from "vitest";
import { Client } from "../../api/client.ts";
import { only } from "../../model/choice.ts";
import { placeOf, timeOf } from "../../model/reel.ts";
import { decodeUrl } from "../../model/url.ts";
import { FIRST_EVENTS } from "../../state/events.ts";
import { Store } from "../../state/store.ts";
import { refiltered } from "../../state/filter.ts";
import { goneAlong, paused, resumed } from "../../state/live.ts";
import { moved, opened, reopened, withStatus, wentTo, type State } from "../../state/viewer.ts";
import type { Told } from "../../testing/arrow.ts";
import { Listing } from "../../testing/events.ts";
import { trackLike } from "../../testing/tracks.ts";
import { level } from "../../units/tiles.ts";
import { nanos } from "../../units/time.ts";
import { EventsDesk } from "./desk.ts";

const BEGIN = 1_795_219_372_253_260_578n;
const COUNT = 5_000;
/** Of each four events three have the same time. */
const TOLD: readonly Told[] = Array.from({ length: COUNT }, (_, index) => ({
  time: BEGIN + BigInt(Math.floor(index / 4) * 1_000 + (index % 4 === 3 ? 1 : 0)),
  name: index % 5 === 0 ? "jobs:begin" : "jobs:end",
  cpu: index % 3,
  id: BigInt(index),
}));
const END = (TOLD.at(-1)?.time ?? 0n) + 1n;

/** For how long something is waited for on a machine that has much else to do. */
const WAITING = { timeout: 30_000 };

class Office {
  readonly listing: Listing;
  readonly asked: string[] = [];
  /** Answers that are not given. */
  refusal: number | null = null;
  /** The same of questions for all fields only. */
  fieldsRefusal: number | null = null;
  readonly page: Store<State>;
  readonly desk: EventsDesk;

  constructor(listing = new Listing(TOLD)) {
    this.listing = listing;
    const extent = { begin: nanos(BEGIN), end: nanos(END) };
    const levels = { min: level(0), max: level(62) };
    const rest = { version: 1, doneBytes: 1, totalBytes: 1, etaMs: null, state: "complete", failure: null, events: 5_000n, lost: 0n } as const;
    this.page = new Store(withStatus(opened(decodeUrl(""), "UTC", "light"), { extent, unix: true, levels, ...rest }));
    this.desk = new EventsDesk(this.page, new Client("api/v1", null, (url, init) => this.fetch(url, init)));
    this.desk.setRoom(20);
  }

  private fetch(url: string, init: RequestInit): Promise<Response> {
    const { pathname, searchParams } = new URL(url, "http://127.0.0.1/");
    this.asked.push(url);
    const found = this.listing.answer(pathname.replace("/api/v1/", ""), searchParams, typeof init.body === "string" ? init.body : "");
    const isOfFields = pathname.endsWith("/events") && !searchParams.has("columns") && searchParams.get("limit") === "24";
    const refusal = this.refusal ?? (isOfFields ? this.fieldsRefusal : null);
    const { status, headers, body } = refusal === null ? found : { status: refusal, headers: {}, body: '{"error":{"message":"there is no room"}}' };
    return init.signal?.aborted === true ? Promise.reject(new Error("aborted")) : Promise.resolve(new Response(body, { status, headers }));
  }

  get state(): typeof FIRST_EVENTS {
    return this.desk.store.state;
  }

  /** Which of all events the first row on the screen is, and the current one. */
  get top(): number {
    return this.indexOf(this.state.top);
  }

  get current(): number {
    return this.state.current === null ? -1 : this.indexOf(this.state.current);
  }

  private indexOf(row: number): number {
    const place = placeOf(this.state.reel, row);
    return place === null ? -1 : TOLD.findIndex((event) => event.time === place.time) + place.rank;
  }

  async settled(): Promise<void> {
    await vi.waitFor(() => expect([this.state.asking, this.state.columns.length > 0, this.state.find.state === "searching"]).toEqual([false, true, false]), WAITING);
    await new Promise((done) => setTimeout(done, 0));
  }

  static async opened(): Promise<Office> {
    const office = new Office();
    office.desk.open();
    await office.settled();
    return office;
  }
}

test("the list begins where the window does, with few columns, and all fields of what is on the screen", async () => {
  const office = await Office.opened();
  expect([office.top, office.current]).toEqual([0, -1]);
  const pages = office.asked.filter((url) => url.includes("limit=512"));
  expect(pages.every((url) => url.endsWith("columns=time,name,cpu_id"))).toBe(true);
  await vi.waitFor(() => expect(office.state.blocks.map((block) => [block.first, block.rows.count])).toEqual([[0, 24]]), WAITING);
  expect(office.state.count).toEqual({ events: 5_000n, isExact: true });
  office.desk.close();
});

/** The list of traces of which so many events are there, and the next ones come. */
class Growing extends Office {
  private count: number;

  constructor(count: number) {
    super();
    this.count = count;
    this.grow(0);
  }

  /** A recorder has written more; the window goes along as far as that. */
  grow(by: number): void {
    this.count += by;
    const end = nanos((TOLD[this.count]?.time ?? END) as bigint);
    this.listing.until = end;
    const live = { state: "recording", watermark: end, behindMs: null, problem: null } as const;
    this.page.update((state) => goneAlong(withStatus(state, { ...LIVE_STATUS, extent: { begin: nanos(BEGIN), end }, version: this.count, events: BigInt(this.count), live }), end));
  }

  /** How many events there are behind the last one on the screen. */
  get behind(): number {
    return this.count - this.top - this.state.room;
  }
}

const LIVE_STATUS = { unix: true, levels: { min: level(0), max: level(62) }, doneBytes: 1, totalBytes: 1, etaMs: null, state: "complete", failure: null, lost: 0n } as const;

test("while traces grow, a list at its end goes on standing there, and says how many events there are", async () => {
  const office = new Growing(1_000);
  expect(office.page.state.follow.isOn).toBe(true);
  office.desk.open();
  await office.settled();
  expect([office.behind, office.state.tails]).toEqual([0, true]);
  for (let step = 0; step < 10; step++) {
    const before = office.asked.length;
    office.grow(40);
    await office.settled();
    expect([office.behind, office.state.current]).toEqual([0, null]);
    expect(office.state.count).toEqual({ events: BigInt(1_000 + 40 * (step + 1)), isExact: true });
    // New rows are asked for, and their fields; nothing that is there already.
    const pages = office.asked.slice(before).filter((url) => url.includes("limit=512"));
    expect(pages.length).toBe(1);
    expect(office.asked.length - before).toBeLessThanOrEqual(3);
  }
  // Where it stands is where the window's end is: that is no place to come back to.
  expect(office.desk.listed.at).toBeNull();
  office.desk.close();
});

test("where more comes than is read page by page, the list is at the end all the same", async () => {
  const office = new Growing(500);
  office.desk.open();
  await office.settled();
  const before = office.asked.length;
  office.grow(4_000);
  await office.settled();
  expect([office.behind, office.state.tails]).toEqual([0, true]);
  expect(office.asked.slice(before).filter((url) => url.includes("limit=512")).length).toBeLessThanOrEqual(4);
  office.desk.close();
});

test("who looks at rows before the end keeps them, however much comes, until the end is there again", async () => {
  const office = new Growing(1_000);
  office.desk.open();
  await office.settled();
  office.desk.scroll(-30);
  const { top } = office;
  office.grow(200);
  await office.settled();
  expect([office.top, office.state.tails]).toEqual([top, false]);
  office.desk.scroll(10_000);
  await office.settled();
  expect([office.behind, office.state.tails]).toEqual([0, true]);
  // A row that is chosen stays, too; the last one is the end.
  office.desk.step(-1, false);
  const { current } = office;
  office.grow(100);
  await office.settled();
  expect([office.current, office.state.tails]).toEqual([current, false]);
  office.desk.toEnd();
  await office.settled();
  office.grow(100);
  await office.settled();
  expect([office.behind, office.state.tails]).toEqual([0, true]);
  office.desk.close();
});

test("where somebody holds the window back the list goes where it goes, and to the end when it follows again", async () => {
  const office = new Growing(1_000);
  office.desk.open();
  await office.settled();
  office.page.update((state) => wentTo(state, { begin: nanos(BEGIN + 10_000n), span: nanos(5_000) }));
  await office.settled();
  expect([office.top, office.state.tails]).toEqual([40, false]);
  office.grow(500);
  await office.settled();
  expect(office.top).toBe(40);
  office.page.update(resumed);
  await office.settled();
  expect([office.behind, office.state.tails]).toEqual([0, true]);
  // Held back where the end is, the list is there, too, and still tells of what comes.
  office.page.update(paused);
  office.grow(100);
  await office.settled();
  expect(office.behind).toBe(0);
  office.desk.setSync(false);
  office.desk.scroll(-40);
  const { top } = office;
  office.page.update(resumed);
  office.grow(100);
  await office.settled();
  expect(office.top).toBe(top);
  office.desk.close();
});

test("it moves by rows exactly, over pages and back, however fast", async () => {
  const office = await Office.opened();
  for (let turn = 0; turn < 40; turn++) {
    office.desk.scroll(77);
    if (turn % 7 === 0) {
      await office.settled();
    }
  }
  await office.settled();
  expect(office.top).toBe(40 * 77);
  for (let turn = 0; turn < 39; turn++) {
    office.desk.scroll(-77);
  }
  await office.settled();
  expect(office.top).toBe(77);
  office.desk.close();
});

test("Home and End lead to the first and the last event, and the timeline knows", async () => {
  const office = await Office.opened();
  office.page.update((state) => moved(state, { begin: nanos(BEGIN), span: nanos(10_000) }));
  office.desk.toEnd();
  await office.settled();
  expect([office.current, office.top]).toEqual([COUNT - 1, COUNT - 20]);
  const { mark, view } = office.page.state;
  expect(mark).toBe(END - 1n);
  expect(view !== null && view.begin <= END - 1n && view.begin + view.span >= END - 1n).toBe(true);
  office.desk.toBegin();
  await office.settled();
  expect([office.current, office.top, office.page.state.mark]).toEqual([0, 0, BEGIN]);
  office.desk.close();
});

test("where the window goes, the list goes, and it is not moved by what it did itself", async () => {
  const office = await Office.opened();
  office.page.update((state) => moved(state, { begin: nanos(BEGIN + 600_000n), span: nanos(5_000) }));
  await office.settled();
  expect(timeOf(office.state.reel, office.state.top)).toBe(BEGIN + 600_000n);
  const { view } = office.page.state;
  office.desk.step(1, false);
  office.desk.step(1, false);
  expect([office.current, office.page.state.mark, office.page.state.view]).toEqual([2_401, BEGIN + 600_000n, view]);
  // A window in which the list is already does not move it.
  office.page.update((state) => moved(state, { begin: nanos(BEGIN + 599_000n), span: nanos(5_000) }));
  await office.settled();
  expect(office.current).toBe(2_401);
  office.desk.setSync(false);
  office.page.update((state) => moved(state, { begin: nanos(BEGIN), span: nanos(5_000) }));
  await office.settled();
  expect(office.current).toBe(2_401);
  office.desk.step(8, false);
  expect(office.page.state.mark).toBe(BEGIN + 600_000n);
  office.desk.close();
});

test("a click on the timeline leads to the first event from there on", async () => {
  const office = await Office.opened();
  const { view } = office.page.state;
  office.desk.clicked(nanos(BEGIN + 1_000_002n));
  await office.settled();
  expect([office.current, office.page.state.mark, office.page.state.view]).toEqual([4_004, BEGIN + 1_000_002n, view]);
  office.desk.close();
  office.desk.clicked(nanos(BEGIN));
  expect(office.page.state.mark).toBe(BEGIN + 1_000_002n);
});

test("matches are found one after the other, also among events of one time, and back again", async () => {
  const office = await Office.opened();
  office.desk.setFind("cpu_id == 1 && id < 20");
  const expected = [1, 4, 7, 10, 13, 16, 19];
  for (const match of expected) {
    office.desk.find("from");
    await office.settled();
    expect(office.current).toBe(match);
    expect(office.page.state.mark).toBe(TOLD[match]?.time);
  }
  office.desk.find("from");
  await office.settled();
  expect([office.current, office.state.find.state]).toEqual([19, "absent"]);
  for (const match of expected.toReversed().slice(1)) {
    office.desk.find("before");
    await office.settled();
    expect(office.current).toBe(match);
  }
  office.desk.find("before");
  await office.settled();
  expect([office.current, office.state.find.state]).toEqual([1, "absent"]);
  office.desk.close();
});

test("the row on top may be the first match", async () => {
  const office = await Office.opened();
  office.desk.setFind("id < 3");
  office.desk.find("from");
  await office.settled();
  expect(office.current).toBe(0);
  office.desk.close();
});

test("what is wrong with an expression is said, and nothing is asked with it", async () => {
  const office = await Office.opened();
  office.desk.setFind("  idd == 3");
  office.desk.find("from");
  await office.settled();
  expect(office.state.find.problem).toEqual({ message: "no class of events has `idd`", help: "there is `id`", begin: 0, end: 8 });
  expect(office.asked.some((url) => url.includes("idd"))).toBe(false);
  office.desk.close();
});

test("events of one name have their own columns; a name that nobody has is told as that", async () => {
  const office = await Office.opened();
  office.desk.setNames("jobs:begin");
  await office.settled();
  expect(office.state.columns).toEqual(["time", "cpu_id", "id", "text"]);
  expect([office.state.count?.events, timeOf(office.state.reel, 1)]).toEqual([1_000n, TOLD[5]?.time]);
  expect(office.state.blocks).toEqual([]);
  office.desk.setNames("nobody");
  await vi.waitFor(() => expect(office.state.fault?.message).toBe("no event has a name like `nobody`"), WAITING);
  const asked = office.asked.length;
  office.desk.scroll(3);
  await new Promise((done) => setTimeout(done, 0));
  expect(office.asked.length).toBe(asked);
  office.desk.setNames("");
  await office.settled();
  expect([office.state.fault, office.top]).toEqual([null, 0]);
  office.desk.close();
});

test("the filter of the page is asked with, and another one lists other events at the same time", async () => {
  const office = await Office.opened();
  office.desk.toEnd();
  await office.settled();
  office.page.update((state) => refiltered(state, { text: "cpu_id == 2" }));
  await office.settled();
  expect(office.state.question).toEqual({ filter: "cpu_id == 2", names: [] });
  expect(timeOf(office.state.reel, office.state.current ?? 0)).toBe(TOLD.findLast((event) => event.cpu === 2)?.time);
  const asked = office.asked.length;
  office.page.update((state) => refiltered(state, { mode: "hide" }));
  expect(office.asked.length).toBe(asked);
  office.desk.setNames("jobs:begin");
  await office.settled();
  expect(office.state.question).toEqual({ filter: "cpu_id == 2", names: ["jobs:begin"] });
  office.desk.close();
});

test("a mark that comes with a URL is gone to", async () => {
  const office = await Office.opened();
  office.page.update((state) => reopened(state, decodeUrl(`#mark=${BEGIN + 5_000n}`)));
  await office.settled();
  expect(office.current).toBe(20);
  office.desk.close();
});

test("traces that grow have more events behind the last one", async () => {
  const told = [...TOLD];
  const office = new Office(new Listing(told));
  office.desk.open();
  await office.settled();
  office.desk.toEnd();
  await office.settled();
  expect(office.state.reel.isEnd).toBe(true);
  told.push({ time: END + 5n, name: "jobs:end", cpu: 1, id: 5_000n });
  const { status } = office.page.state;
  const extent = { begin: nanos(BEGIN), end: nanos(END + 6n) };
  office.page.update((state) => (status === null ? state : withStatus(state, { ...status, extent, version: 2 })));
  await office.settled();
  expect(office.state.count).toEqual({ events: 5_000n, isExact: false });
  office.desk.step(1, false);
  expect(timeOf(office.state.reel, office.state.current ?? 0)).toBe(END + 5n);
  office.desk.close();
});

test("events of chosen threads are asked for again once all of the timeline is read", async () => {
  for (const [threads, isAskedAgain] of [[only([7]), true], [null, false]] as const) {
    const office = new Office();
    const become = (now: "building" | "complete"): void => {
      const { status } = office.page.state;
      office.page.update((state) => (status === null ? state : withStatus(state, { ...status, state: now, version: status.version + 1 })));
    };
    become("building");
    const tracks = [trackLike(0, { id: "cpu/0/0/thread" }), trackLike(1, { tid: 7 })];
    office.page.update((state) => ({ ...state, catalogue: { ...state.catalogue, tracks }, filter: { ...state.filter, names: { cpu: [], thread: [], process: [], processName: [] }, threads } }));
    office.desk.open();
    await office.settled();
    expect(office.state.question.threads).toBe(isAskedAgain ? "7" : undefined);
    const asked = office.asked.length;
    become("complete");
    await office.settled();
    expect(office.asked.length > asked).toBe(isAskedAgain);
    office.desk.close();
  }
});

test("a server that is busy is asked again", async () => {
  vi.useFakeTimers();
  const office = new Office();
  office.refusal = 503;
  office.desk.open();
  await vi.advanceTimersByTimeAsync(10);
  expect(office.state.fault).toEqual({ kind: "busy", message: "there is no room" });
  office.refusal = null;
  await vi.advanceTimersByTimeAsync(5_000);
  expect([office.state.fault, office.top, office.state.reel.pages.length > 0]).toEqual([null, 0, true]);
  office.desk.close();
  vi.useRealTimers();
});

test("fields that did not come are asked for again, also if nobody scrolls", async () => {
  vi.useFakeTimers();
  const office = new Office();
  office.fieldsRefusal = 503;
  office.desk.open();
  await vi.advanceTimersByTimeAsync(10);
  expect([office.state.fault?.kind, office.state.blocks]).toEqual(["busy", []]);
  office.fieldsRefusal = null;
  await vi.advanceTimersByTimeAsync(5_000);
  expect([office.state.fault, office.state.blocks.map((block) => [block.first, block.rows.count])]).toEqual([null, [[0, 24]]]);
  office.desk.close();
  vi.useRealTimers();
});

test("whoever closes the list asks nothing more; opened again it is where the mark is", async () => {
  const office = await Office.opened();
  office.desk.toEnd();
  await office.settled();
  office.desk.close();
  const asked = office.asked.length;
  office.page.update((state) => moved(state, { begin: nanos(BEGIN), span: nanos(500) }));
  office.desk.scroll(-700);
  expect(office.asked.length).toBe(asked);
  office.desk.open();
  await office.settled();
  expect(timeOf(office.state.reel, office.state.current ?? 0)).toBe(END - 1n);
  office.desk.close();
});
