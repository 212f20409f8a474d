import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Client } from "../../api/client.ts";
import { answerItems, type TestItem } from "../../testing/items.ts";
import { nanos } from "../../units/time.ts";
import { Hinter, type Target } from "./hinter.ts";
import { trackLike } from "../../testing/tracks.ts";

const TRACK = trackLike(3, { id: "a", kind: "instants", name: "a" });
const AT = { x: 5, y: 6 };
const target: Target = { track: TRACK, spot: { time: nanos(10), until: nanos(20), extent: null }, words: "a: 3 in 10 ns" };
const event = (at: number, label: string): TestItem => ({ begin: at, end: at, more: { kind: "event", value: { number: 0, label, kind: "event", colour: 1, track: null }, event: null } });

let asked: string[];
let fail: Response | null;
let signals: AbortSignal[];

/** The track of events that the durations of the track above belong to, and these. */
const CALLS = trackLike(5, { id: "calls", tid: 9 });
const TRACKS = [TRACK, CALLS, trackLike(7, { id: "thread/0/9/events", kind: "instants", tid: 9 })];

function hinterOf(items: (track: number) => readonly TestItem[] = () => [event(12, "one"), event(12, "two"), event(15, "three")]): Hinter {
  const client = new Client("api", null, async (url, { signal }) => {
    asked.push(url);
    signals.push(signal as AbortSignal);
    const { searchParams } = new URL(url, "http://test");
    return fail ?? new Response(answerItems(items(Number(searchParams.get("track"))), searchParams));
  });
  return new Hinter({ client }, () => TRACKS);
}

/** What is told, in a line. */
function told({ hint }: Hinter): string {
  const { state } = hint;
  const item = state?.item;
  return state === null ? "nothing" : `${state.words}|${item?.kind === "event" ? item.value.label : ""}+${state.others}|${state.isAsking ? "asking" : (state.failure ?? "")}`;
}

beforeEach(() => {
  [asked, fail, signals] = [[], null, []];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("nothing is told, asked or even looked for while the pointer moves", async () => {
  const hinter = hinterOf();
  let found = 0;
  for (let step = 0; step < 10; step++) {
    hinter.rest(AT, () => (found++, target));
    await vi.advanceTimersByTimeAsync(300);
  }
  expect([told(hinter), found, asked.length]).toEqual(["nothing", 0, 0]);
});

test("once it rests, first what is drawn is told, and then what the server says", async () => {
  const hinter = hinterOf();
  hinter.rest(AT, () => target);
  vi.advanceTimersByTime(350);
  expect(told(hinter)).toBe("a: 3 in 10 ns|+0|asking");
  await vi.advanceTimersByTimeAsync(0);
  expect(told(hinter)).toBe("a: 3 in 10 ns|one+1|");
  expect(asked).toEqual(["api/items?track=3&begin=10&end=20&limit=8"]);
});

test("where nothing is, nothing is told; of what adds up nothing is asked", async () => {
  const hinter = hinterOf();
  hinter.rest(AT, () => null);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told(hinter)).toBe("nothing");
  hinter.rest(AT, () => ({ ...target, track: { ...TRACK, kind: "counter" } }));
  await vi.advanceTimersByTimeAsync(1_000);
  hinter.rest(AT, () => ({ ...target, spot: null }));
  await vi.advanceTimersByTimeAsync(1_000);
  expect([told(hinter), asked.length]).toEqual(["a: 3 in 10 ns|+0|", 0]);
});

test("a question is let go of when the pointer goes on", async () => {
  const hinter = hinterOf();
  hinter.rest(AT, () => target);
  vi.advanceTimersByTime(350);
  hinter.hide();
  await vi.advanceTimersByTimeAsync(0);
  expect([told(hinter), signals.map((signal) => signal.aborted)]).toEqual(["nothing", [true]]);
});

test("what goes wrong is told, and what was known stays", async () => {
  const hinter = hinterOf();
  fail = new Response('{"error":{"message":"the disk is gone"}}', { status: 500 });
  hinter.rest(AT, () => target);
  await vi.advanceTimersByTimeAsync(350);
  expect(told(hinter)).toBe("a: 3 in 10 ns|+0|The disk is gone.");
});

test("a call has the arguments of the event that begins it, which is asked for once the call is known", async () => {
  const call: TestItem = { begin: 12, end: 40, more: { kind: "run", begin_known: true, end_known: true, in_doubt: false, value: { number: 0, label: "read", kind: "call", colour: 1, track: null } } };
  const entry: TestItem = { ...event(12, "sys_read"), more: { ...event(12, "sys_read").more, event: { time: 12, payload: { fd: 7 } } } };
  const hinter = hinterOf((track) => (track === 5 ? [call] : [entry]));
  hinter.rest(AT, () => ({ ...target, track: CALLS }));
  await vi.advanceTimersByTimeAsync(350);
  expect([hinter.hint.state?.item?.kind, hinter.hint.state?.begun?.value.label]).toEqual(["run", "sys_read"]);
  expect(asked).toEqual(["api/items?track=5&begin=10&end=20&limit=8", "api/items?track=7&begin=12&end=13&limit=64"]);
});
