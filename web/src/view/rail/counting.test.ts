import { expect, test, vi } from "vitest";
import { Client } from "../../api/client.ts";
import { Store } from "../../state/store.ts";
import type { Status } from "../../model/catalogue.ts";
import { goneAlong } from "../../state/live.ts";
import { FIRST_STATE, withStatus, type State } from "../../state/viewer.ts";
import { level } from "../../units/tiles.ts";
import { nanos } from "../../units/time.ts";
import { Desk } from "../analyses/desk.ts";
import { Counting } from "./counting.ts";

const column = (name: string, of: string): object => ({ name, title: name, class: of, unit: null });
const answerOf = (table: string, columns: readonly object[], rows: readonly unknown[][]): object => ({
  tables: [{ class: table, title: table, span: null, omitted: 0, columns, rows }],
  events_discarded: 0,
  events_discarded_is_lower_bound: false,
  packets_lost: 0,
  complete: true,
});
const RESULTS: Readonly<Record<string, object>> = {
  count: answerOf("per-class", [column("name", "string"), column("count", "number")], [["a", 5]]),
  threads: answerOf("per-cpu", [column("cpu", "cpu"), column("count", "number")], [[1, 5]]),
};

/** A server whose jobs are done when a test says so; what it was asked stands in a list. */
class Bureau {
  readonly asked: string[] = [];
  readonly store: Store<State> = new Store(FIRST_STATE);
  readonly desk: Desk;
  readonly counting: Counting;
  private readonly kinds: string[] = [];

  constructor() {
    this.desk = new Desk(new Client("api", null, (url, init) => Promise.resolve(this.answer(url, init))));
    this.counting = new Counting({ store: this.store, desk: this.desk });
  }

  /** Tells what became of a job. */
  tell(id: number, change: object): void {
    this.desk.hear(JSON.stringify({ jobs: [{ ...this.job(id), ...change }] }));
  }

  private answer(url: string, init: RequestInit): Response {
    const body = typeof init.body === "string" ? init.body : "";
    this.asked.push(`${init.method ?? "GET"} ${url} ${body}`.trimEnd());
    if (init.method === "POST") {
      this.kinds.push((JSON.parse(body) as { kind: string }).kind);
      return new Response(JSON.stringify(this.job(this.kinds.length - 1)));
    }
    const id = Number(/jobs\/(\d+)/.exec(url)?.[1]);
    return new Response(JSON.stringify(url.endsWith("/result") ? RESULTS[this.kinds[id] ?? ""] : this.job(id)));
  }

  private job(id: number): object {
    return { id: String(id), state: "running", done: 0, total: 4, eta_ms: null, failure: null };
  }
}

test("events are counted by name and by whose they are, and each is shown as soon as it is there", async () => {
  const office = new Bureau();
  expect([office.counting.store.state.counting, office.asked]).toEqual([null, []]);
  const release = office.counting.want();
  await expect.poll(() => office.asked).toEqual(['POST api/jobs {"kind":"count","options":{}}']);
  await expect.poll(() => office.desk.store.state.asked.get('{"kind":"count","options":{}}')?.state).toBe("running");
  office.tell(0, { done: 2 });
  expect(office.counting.store.state.counting?.part).toBe(0.25);
  office.tell(0, { state: "done" });
  await expect.poll(() => office.counting.store.state.counts?.byName?.get("a")).toBe(5n);
  expect([office.counting.store.state.counts?.whose, office.counting.store.state.counting?.part]).toEqual([null, 0.5]);
  await expect.poll(() => office.desk.store.state.asked.get('{"kind":"threads","options":{"top":10000}}')?.state).toBe("running");
  office.tell(1, { state: "done" });
  await expect.poll(() => office.counting.store.state.counting).toBeNull();
  expect(office.counting.store.state.all?.whose?.byCpu.get(1)).toBe(5n);
  release();
  office.counting.want();
  expect(office.asked.filter((one) => one.startsWith("POST")).length).toBe(2);
});

test("a window is said to the nanosecond; what nobody wants any more before it is counted is asked for again", async () => {
  const office = new Bureau();
  const [begin, span] = [nanos(1_795_219_372_253_260_578n), nanos(1)];
  office.store.update((state) => ({ ...state, view: { begin, span } }));
  office.counting.scope(true);
  const release = office.counting.want();
  const question = 'POST api/jobs {"kind":"count","options":{"begin_ns":1795219372253260578,"end_ns":1795219372253260579}}';
  await expect.poll(() => office.asked[0]).toBe(question);
  release();
  expect(office.counting.store.state.counting).toBeNull();
  await expect.poll(() => office.asked.filter((one) => one.startsWith("DELETE")).length).toBe(1);
  office.counting.want();
  await expect.poll(() => office.asked.filter((one) => one === question).length).toBe(2);
});

test("why something cannot be counted is said, and it can be tried again", async () => {
  const office = new Bureau();
  office.counting.want();
  await expect.poll(() => office.desk.store.state.asked.get('{"kind":"count","options":{}}')?.state).toBe("running");
  office.tell(0, { state: "done" });
  await expect.poll(() => office.desk.store.state.asked.get('{"kind":"threads","options":{"top":10000}}')?.state).toBe("running");
  expect(office.counting.store.state.counts?.byName?.get("a")).toBe(5n);
  office.tell(1, { state: "failed", failure: { code: "traces", message: "no" } });
  await expect.poll(() => office.counting.store.state.failure).toEqual({ code: "traces", message: "no" });
  office.counting.again();
  expect(office.counting.store.state.failure).toBeNull();
  await expect.poll(() => office.asked.filter((one) => one.includes('"threads"')).length).toBe(2);
});

/** What the server says of traces that are recorded, and end there so far. */
function recordedTo(end: number): Status {
  const extent = { begin: nanos(0), end: nanos(end - 1) };
  const live = { state: "recording", watermark: nanos(end), behindMs: null, problem: null } as const;
  return { extent, unix: true, levels: { min: level(0), max: level(30) }, version: end, doneBytes: 1, totalBytes: 1, etaMs: null, state: "complete", failure: null, events: null, lost: 0n, live };
}

test("of traces that grow all are counted as far as they went, and what came since when somebody wants that", async () => {
  const office = new Bureau();
  const asked = (): string[] => office.asked.filter((one) => one.includes('"kind":"count"'));
  office.store.update((state) => withStatus(state, recordedTo(1_000)));
  office.counting.want();
  await expect.poll(asked).toEqual(['POST api/jobs {"kind":"count","options":{"end_ns":1000}}']);
  office.store.update((state) => withStatus(state, recordedTo(2_000)));
  expect(asked().length).toBe(1);
  office.counting.recount();
  await expect.poll(() => asked().at(-1)).toBe('POST api/jobs {"kind":"count","options":{"end_ns":2000}}');
  office.tell(1, { state: "done" });
  await expect.poll(() => office.counting.store.state.all?.byName?.get("a")).toBe(5n);
});

test("a window that goes along is counted every few seconds, and what is counted is counted to its end", async () => {
  vi.useFakeTimers();
  try {
    const office = new Bureau();
    const asked = (): string[] => office.asked.filter((one) => one.startsWith("POST"));
    office.store.update((state) => withStatus(state, recordedTo(1_000)));
    office.counting.scope(true);
    office.counting.want();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked().length).toBe(1);
    for (let end = 1_100; end <= 3_000; end += 100) {
      office.store.update((state) => goneAlong(withStatus(state, recordedTo(end)), nanos(end - 1)));
      await vi.advanceTimersByTimeAsync(600);
    }
    // That was twelve seconds: nothing else is asked for before the first is done.
    expect(asked().length).toBe(1);
    office.tell(0, { state: "done" });
    await vi.advanceTimersByTimeAsync(0);
    office.tell(1, { state: "done" });
    await vi.advanceTimersByTimeAsync(0);
    expect(office.counting.store.state.counting).toBeNull();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(asked().at(-1)).toBe('POST api/jobs {"kind":"count","options":{"begin_ns":0,"end_ns":2999}}');
    expect(asked().length).toBe(3);
  } finally {
    vi.useRealTimers();
  }
});
