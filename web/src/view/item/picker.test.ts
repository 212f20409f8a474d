import { expect, test, vi } from "vitest";
import { Client } from "../../api/client.ts";
import type { Status, Track, TrackKind } from "../../model/catalogue.ts";
import { opened, withCatalogue, withStatus, FIRST_STATE, resized, wentTo, type State } from "../../state/viewer.ts";
import { Store } from "../../state/store.ts";
import { withItem } from "../../state/item.ts";
import { answerItems, type TestItem } from "../../testing/items.ts";
import { decodeUrl } from "../../model/url.ts";
import { cssPx } from "../../units/screen.ts";
import { level } from "../../units/tiles.ts";
import { nanos } from "../../units/time.ts";
import { Picker } from "./picker.ts";
import { trackLike } from "../../testing/tracks.ts";

const extent = { begin: nanos(0), end: nanos(1_000_000) };
const STATUS: Status = {
  extent,
  unix: false,
  levels: { min: level(0), max: level(62) },
  version: 1,
  doneBytes: 0,
  totalBytes: 1,
  etaMs: null,
  state: "complete",
  failure: null,
  events: null,
  lost: 0n,
};

function trackOf(number: number, id: string, kind: TrackKind, tid: number | null = null): Track {
  return trackLike(number, { id, kind, name: id, tid });
}

const TRACKS = [
  trackOf(0, "cpu", "states"),
  trackOf(1, "waker", "states", 7),
  trackOf(2, "woken", "states", 8),
  trackOf(3, "events", "instants"),
  trackOf(4, "wakeups", "arrows"),
  trackOf(5, "queue", "counter"),
];
const value = (label: string, kind: string, track: number | null = null): object => ({ number: 0, label, kind, colour: 1, track });
const run = (begin: number, end: number, label: string, kind = "doing", track: number | null = null): TestItem => {
  return { begin, end, more: { kind: "run", begin_known: true, end_known: true, in_doubt: false, value: value(label, kind, track) } };
};
const event = (at: number, label: string): TestItem => ({ begin: at, end: at, more: { kind: "event", value: value(label, "event"), event: { payload: { at } } } });
const arrow = (begin: number, end: number, endKnown = true): TestItem => {
  return { begin, end, more: { kind: "arrow", end_known: endKnown, received_first: false, from: 0, to: 2, value: value("woken", "thread", 2), waker: value("waker", "thread", 1) } };
};

/** Seldom there is something at first, and then there is more than an answer holds. */
const EVENTS = [event(10, "first"), ...Array.from({ length: 500 }, (_, index) => event(900_000 + 3 * index, `e${index}`)), event(950_000, "twin"), event(950_000, "twins")];
const ITEMS: Readonly<Record<number, readonly TestItem[]>> = {
  0: [run(0, 400, "idle", "thread"), run(400, 500, "waker", "thread", 1), run(500, 800, "woken", "thread", 2)],
  1: [run(0, 400, "blocked"), run(400, 500, "running"), run(500, 9_000, "blocked")],
  2: [run(0, 450, "blocked"), run(450, 500, "waiting for a CPU"), run(500, 800, "running"), run(900_000, 900_100, "running")],
  3: EVENTS,
  4: [arrow(450, 500), arrow(8_000, 8_000, false)],
};

interface Bench {
  readonly store: Store<State>;
  readonly picker: Picker;
  readonly asked: string[];
  /** Answers that wait until they are let out; `null`: none does. */
  held: (() => void)[] | null;
  fail: Response | null;
  /** Waits until nothing happens any more. */
  rest(): Promise<void>;
}

function benchOf(hash = ""): Bench {
  const sized = resized(withStatus(opened(decodeUrl(hash), "UTC", "light"), STATUS), { width: cssPx(100), height: cssPx(100), ratio: 1 });
  const store = new Store(withCatalogue(sized, { tracks: TRACKS, values: [] }));
  const bench: Omit<Bench, "picker"> = {
    store,
    asked: [],
    held: null,
    fail: null,
    rest: () => new Promise((done) => setTimeout(done, 0)),
  };
  const client = new Client("api", null, async (url, { signal }) => {
    const query = new URL(url, "http://test").searchParams;
    bench.asked.push(`${query.get("track")} ${query.get("begin")}-${query.get("end")}`);
    await new Promise<void>((done, end) => {
      signal?.addEventListener("abort", () => end(new Error("aborted")));
      if (bench.held === null) {
        done();
      } else {
        bench.held.push(done);
      }
    });
    return bench.fail ?? new Response(answerItems(ITEMS[Number(query.get("track"))] ?? [], query));
  });
  return Object.assign(bench, { picker: new Picker(store, client) });
}

/** What is picked, in a line. */
function seen({ store, picker }: Bench): string {
  const { item, itemExtent } = store.state;
  const { phase, items, note } = picker.picked.state;
  const names = items.map((one) => (one.kind === "arrow" ? "arrow" : one.value.label)).join("+");
  return `${item === null ? "nothing" : `${item.track}@${item.time}`} ${phase} ${names}${itemExtent === null ? "" : ` ${itemExtent.begin}-${itemExtent.end}`}${note === null ? "" : ` (${note})`}`;
}

async function picked(track: string, time: number, until = time + 1): Promise<Bench> {
  const bench = benchOf();
  const found = TRACKS.find(({ id }) => id === track);
  if (found !== undefined) {
    bench.picker.pick(found, { time: nanos(time), until: nanos(until), extent: null });
  }
  await settled(bench);
  return bench;
}

async function settled(bench: Bench): Promise<void> {
  for (let before = -1; before !== bench.asked.length; ) {
    before = bench.asked.length;
    await bench.rest();
    await bench.rest();
  }
}

async function after(bench: Bench, ...acts: ((picker: Picker) => void)[]): Promise<string> {
  for (const act of acts) {
    act(bench.picker);
    await settled(bench);
  }
  return seen(bench);
}

const next = (picker: Picker): void => picker.step(1);
const previous = (picker: Picker): void => picker.step(-1);
const toEffect = (picker: Picker): void => picker.follow("effect");
const toCause = (picker: Picker): void => picker.follow("cause");

test("what is picked is asked for, and the panel opens once", async () => {
  const bench = await picked("cpu", 420);
  expect(seen(bench)).toBe("cpu@420 found waker 400-500");
  expect(bench.store.state.panels.inspector.isOpen).toBe(true);
  bench.store.update((state) => ({ ...state, panels: FIRST_STATE.panels }));
  bench.picker.pick(TRACKS[3] as Track, { time: nanos(10), until: nanos(11), extent: null });
  await settled(bench);
  expect([seen(bench), bench.store.state.panels.inspector.isOpen]).toEqual(["events@10 found first 10-10", false]);
});

test("what begins later in the bucket that was pointed at is picked where it begins, with what is there too", async () => {
  const bench = await picked("events", 949_990, 950_100);
  expect(seen(bench)).toBe("events@950000 found twin+twins 950000-950000");
  expect(bench.asked).toEqual(["3 949990-950100"]);
});

test("a URL says what is picked, as soon as it is known which tracks there are", async () => {
  const bench = benchOf("#item=420~cpu");
  await settled(bench);
  expect(seen(bench)).toBe("cpu@420 found waker 400-500");
  bench.store.update((state) => withItem(state, { track: "later", time: nanos(1) }));
  expect(seen(bench)).toBe("later@1 absent ");
  bench.store.update((state) => withCatalogue(state, { tracks: [...TRACKS, trackOf(6, "later", "states")], values: [] }));
  await settled(bench);
  expect(seen(bench)).toBe("later@1 found ");
});

test("one goes from one thing to the next, over gaps, and back again", async () => {
  const bench = await picked("woken", 470);
  expect(await after(bench, next)).toBe("woken@500 found running 500-800");
  expect(await after(bench, next)).toBe("woken@900000 found running 900000-900100");
  expect(await after(bench, next)).toBe("woken@900000 found running 900000-900100 (There is nothing behind this on its track.)");
  expect(await after(bench, previous)).toBe("woken@500 found running 500-800");
  expect(await after(bench, previous, previous)).toBe("woken@0 found blocked 0-450");
  expect(await after(bench, previous)).toBe("woken@0 found blocked 0-450 (There is nothing before this on its track.)");
});

test("events before a time are found where there are many, and where there are none for long", async () => {
  const bench = await picked("events", 900_600);
  expect(await after(bench, previous)).toBe("events@900597 found e199 900597-900597");
  expect(await after(bench, next, next)).toBe("events@900603 found e201 900603-900603");
  const first = await picked("events", 900_000);
  expect(await after(first, previous)).toBe("events@10 found first 10-10");
  expect(first.asked.length).toBeLessThan(12);
  expect(await after(await picked("events", 999_999), previous)).toBe("events@950000 found twin+twins 950000-950000");
});

test("the window follows what is gone to", async () => {
  const bench = await picked("woken", 470);
  bench.store.update((state) => wentTo(state, { begin: nanos(0), span: nanos(1_000) }));
  await after(bench, next);
  expect(bench.store.state.view?.begin).toBe(0n);
  await after(bench, next);
  expect(bench.store.state.view).toEqual({ begin: 899_550n, span: 1_000n });
});

test("arrows are followed from whoever ran to whoever was woken, and back", async () => {
  const bench = await picked("waker", 420);
  expect(await after(bench, toEffect)).toBe("wakeups@450 found arrow 450-500");
  expect(await after(bench, toEffect)).toBe("woken@500 found running 500-800");
  expect(await after(bench, toCause)).toBe("wakeups@450 found arrow 450-500");
  expect(await after(bench, toCause)).toBe("waker@450 found running 400-500");
  expect(await after(bench, toCause)).toBe("waker@450 found running 400-500 (No arrow leads here.)");
  // Who waits was woken by the same arrow, and a CPU does what the thread does that it runs.
  expect(await after(await picked("woken", 470), toCause)).toBe("wakeups@450 found arrow 450-500");
  expect(await after(await picked("cpu", 600), toCause)).toBe("wakeups@450 found arrow 450-500");
  expect(await after(await picked("cpu", 420), toEffect)).toBe("wakeups@450 found arrow 450-500");
});

test("of arrows that leave at the same time the one that was followed stays the first", async () => {
  const both = [arrow(450, 500), { ...arrow(450, 460), more: { ...arrow(450, 460).more, to: 1, value: value("other", "thread", 1) } }].reverse();
  const before = ITEMS[4] ?? [];
  (ITEMS as Record<number, readonly TestItem[]>)[4] = both;
  const bench = await picked("woken", 470);
  await after(bench, toCause);
  expect(bench.picker.picked.state.items.map((item) => item.kind === "arrow" && item.value.label)).toEqual(["woken", "other"]);
  (ITEMS as Record<number, readonly TestItem[]>)[4] = before;
});

test("an arrow is followed as soon as it is known what is picked", async () => {
  const bench = await picked("cpu", 420);
  bench.held = [];
  bench.store.update((state) => withItem(state, { track: "wakeups", time: nanos(450) }));
  toEffect(bench.picker);
  const { held } = bench;
  bench.held = null;
  held.forEach((letOut) => letOut());
  await settled(bench);
  expect(seen(bench)).toBe("woken@500 found running 500-800");
});

test("where no arrow is, or nobody knows where it leads, that is said", async () => {
  expect(await after(await picked("woken", 600), toEffect)).toBe("woken@600 found running 500-800 (No arrow leaves from here.)");
  expect(await after(await picked("events", 10), toCause)).toBe("events@10 found first 10-10 (No arrow leads here.)");
  expect(await after(await picked("wakeups", 8_000), toEffect)).toBe("wakeups@8000 found arrow 8000-8000 (Nobody knows when woken ran.)");
});

test("of what adds up there is nothing to tell, and nothing to go to", async () => {
  const bench = await picked("queue", 5);
  expect(await after(bench, next)).toBe("queue@5 apart  (What this track shows adds up: there is nothing that comes next.)");
  expect(bench.asked).toEqual([]);
});

test("a question is let go of when something else is picked", async () => {
  const bench = benchOf();
  bench.held = [];
  bench.picker.pick(TRACKS[0] as Track, { time: nanos(420), until: nanos(421), extent: null });
  bench.picker.pick(TRACKS[2] as Track, { time: nanos(470), until: nanos(471), extent: null });
  expect(seen(bench)).toBe("woken@470 asking ");
  // The answers come in the other order.
  bench.held.reverse().forEach((letOut) => letOut());
  await settled(bench);
  expect(seen(bench)).toBe("woken@470 found waiting for a CPU 450-500");
  bench.held = [];
  next(bench.picker);
  bench.store.update((state) => withItem(state, null));
  bench.held.forEach((letOut) => letOut());
  await settled(bench);
  expect(seen(bench)).toBe("nothing none ");
});

test("a server that fails is asked again until it answers, and at once by who picks the same again", async () => {
  vi.useFakeTimers();
  const bench = benchOf();
  const pick = (): void => bench.picker.pick(TRACKS[0] as Track, { time: nanos(420), until: nanos(421), extent: null });
  bench.fail = new Response('{"error":{"code":"fault","message":"the disk is gone"}}', { status: 500 });
  pick();
  await vi.advanceTimersByTimeAsync(10);
  expect(seen(bench)).toBe("cpu@420 failed ");
  bench.fail = null;
  await vi.advanceTimersByTimeAsync(5_000);
  expect([seen(bench), bench.asked.length]).toEqual(["cpu@420 found waker 400-500", 2]);
  // What does not pass by itself waits for somebody.
  const other = benchOf();
  other.fail = new Response('{"items":5}');
  const again = (): void => other.picker.pick(TRACKS[0] as Track, { time: nanos(420), until: nanos(421), extent: null });
  again();
  await vi.advanceTimersByTimeAsync(5_000);
  expect([seen(other), other.asked.length]).toEqual(["cpu@420 failed ", 1]);
  other.fail = null;
  again();
  await vi.advanceTimersByTimeAsync(10);
  expect([seen(other), other.asked.length]).toEqual(["cpu@420 found waker 400-500", 2]);
  vi.useRealTimers();
});

test("what goes wrong is kept as it was said", async () => {
  const bench = benchOf();
  bench.fail = new Response('{"error":{"code":"fault","message":"the disk is gone"}}', { status: 500 });
  bench.picker.pick(TRACKS[0] as Track, { time: nanos(420), until: nanos(421), extent: null });
  await settled(bench);
  expect(bench.picker.picked.state).toMatchObject({ phase: "failed", fault: { kind: "server", message: "the disk is gone" } });
  bench.fail = new Response('{"items":5}');
  expect(await after(bench, next)).toBe("cpu@420 failed  (Items.complete: found nothing, expected true or false.)");
});
