import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { bodyOf, progressText, readAnalyses, readJob, type Asked, type Question } from "../model/jobs.ts";
import { Shape, parseJson } from "../model/json.ts";
import { Client } from "./client.ts";
import { Jobs } from "./jobs.ts";

const ANSWER = '{"tables":[],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}';
const count: Question = { kind: "count", options: { top: 5, begin_ns: 1_795_219_372_253_260_578n } };
const other: Question = { kind: "rates", options: {} };

/** A server of jobs: what it was asked, and what it says. */
class Server {
  readonly asked: string[] = [];
  readonly states = new Map<string, object>();
  refuses: string | null = null;
  isGone = false;
  private ids = 0;

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const path = url.replace("api/v1/", "");
    this.asked.push(`${init.method ?? "GET"} ${path}`);
    if (this.isGone) {
      throw new TypeError("failed to fetch");
    }
    if (this.refuses !== null) {
      return new Response(`{"error":{"code":"parameter","message":"${this.refuses}"}}`, { status: 400 });
    }
    if (init.method === "POST") {
      const id = String(++this.ids);
      this.set(id, "running");
      return new Response(JSON.stringify(this.states.get(id)), { status: 202 });
    }
    const [, id = "", result] = path.split("/");
    if (init.method === "DELETE") {
      this.states.delete(id);
      return new Response(null, { status: 204 });
    }
    const state = this.states.get(id);
    return state === undefined ? new Response('{"error":{"code":"absent","message":"gone"}}', { status: 404 }) : new Response(result === undefined ? JSON.stringify(state) : ANSWER);
  };

  set(id: string, state: string, more: object = {}): void {
    this.states.set(id, { id, state, done: 25, total: 100, eta_ms: 1_500, failure: null, ...more });
  }

  /** What `changes` tell. */
  get told(): Shape {
    return new Shape({ jobs: [...this.states.values()] }, "changes");
  }
}

let server: Server;
let jobs: Jobs;
const heard = new Map<string, Asked | null>();
const stateOf = (question: Question): string | undefined => heard.get(bodyOf(question))?.state;

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
  heard.clear();
  jobs = new Jobs(new Client("api/v1", null, server.fetch), (key, asked) => heard.set(key, asked));
});
afterEach(() => {
  vi.useRealTimers();
});

/** Everything that is on its way arrives, and timers of so many milliseconds end. */
async function later(milliseconds = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
}

test("a question is asked once, followed by what the server tells, and kept when it is answered", async () => {
  const end = jobs.want(count);
  jobs.want(count);
  expect(stateOf(count)).toBe("asking");
  await later();
  expect(heard.get(bodyOf(count))).toEqual({ state: "running", done: 25, total: 100, etaMs: 1_500 });
  server.set("1", "done");
  jobs.hear(server.told);
  await later();
  expect(stateOf(count)).toBe("done");
  // The server need not keep what is here.
  expect(server.asked).toEqual(["POST jobs", "GET jobs/1/result", "DELETE jobs/1"]);
  end();
  await later(1_000);
  jobs.want({ kind: "count", options: { begin_ns: 1_795_219_372_253_260_578n, top: 5 } });
  await later(5_000);
  expect(server.asked.length).toBe(3);
});

test("what nobody looks at any more is cancelled, but not at once", async () => {
  const end = jobs.want(count);
  await later();
  end();
  const again = jobs.want(count);
  await later(1_000);
  expect(server.asked).toEqual(["POST jobs"]);
  again();
  await later(1_000);
  expect(server.asked).toEqual(["POST jobs", "DELETE jobs/1"]);
  expect(heard.get(bodyOf(count))).toBeNull();
});

test("requests about a job that the server forgets end before", async () => {
  let held: AbortSignal | null | undefined;
  const slow = async (url: string, init: RequestInit): Promise<Response> => {
    if (init.method !== undefined || url.endsWith("/result")) {
      return server.fetch(url, init);
    }
    held = init.signal;
    return new Promise((_, refuse) => init.signal?.addEventListener("abort", () => refuse(new DOMException("it is aborted", "AbortError"))));
  };
  jobs = new Jobs(new Client("api/v1", null, slow), (key, asked) => heard.set(key, asked));
  jobs.want(count);
  await later(10_000);
  expect(held?.aborted).toBe(false);
  // The message that it is done comes before the answer that it runs.
  server.set("1", "done");
  jobs.hear(server.told);
  await later();
  expect([stateOf(count), held?.aborted]).toEqual(["done", true]);
  expect(server.asked.at(-1)).toBe("DELETE jobs/1");
});

test("what was let go of before the server gave it a name is cancelled as soon as it has one", async () => {
  jobs.want(count);
  jobs.end();
  await later();
  expect(server.asked).toEqual(["POST jobs", "DELETE jobs/1"]);
});

test("somebody cancels, and asks again", async () => {
  jobs.want(count);
  await later();
  jobs.cancel(count);
  expect(stateOf(count)).toBe("cancelled");
  jobs.again(count);
  await later();
  expect(stateOf(count)).toBe("running");
  expect(server.asked).toEqual(["POST jobs", "DELETE jobs/1", "POST jobs"]);
});

test("what was asked for again is let go of, too", async () => {
  const end = jobs.want(count);
  await later();
  jobs.cancel(count);
  jobs.again(count);
  await later();
  end();
  await later(1_000);
  expect(server.asked).toEqual(["POST jobs", "DELETE jobs/1", "POST jobs", "DELETE jobs/2"]);
  expect(heard.get(bodyOf(count))).toBeNull();
});

test("another server is asked for what is wanted, and not believed to have said the rest", async () => {
  jobs.want(count);
  const end = jobs.want(other);
  await later();
  server.set("1", "done");
  server.set("2", "done");
  jobs.hear(server.told);
  await later();
  end();
  await later(1_000);
  jobs.renew();
  await later();
  expect([stateOf(count), heard.get(bodyOf(other))]).toEqual(["running", null]);
  expect(server.asked.filter((line) => line.startsWith("POST")).length).toBe(3);
});

test("a job is asked for where nothing tells of it, and one that the server forgot has failed", async () => {
  jobs.want(count);
  jobs.want(other);
  await later();
  server.set("1", "done");
  server.states.delete("2");
  await later(2_000);
  expect(stateOf(count)).toBe("done");
  expect(heard.get(bodyOf(other))).toMatchObject({ state: "failed", failure: { code: "forgotten" } });
});

test("why there is no answer is told", async () => {
  jobs.want(count);
  await later();
  server.set("1", "failed", { failure: { code: "traces", message: "no event means `begin`" } });
  jobs.hear(server.told);
  expect(heard.get(bodyOf(count))).toEqual({ state: "failed", failure: { code: "traces", message: "no event means `begin`" } });
  server.refuses = "`top` is `0`";
  jobs.want(other);
  await later();
  expect(heard.get(bodyOf(other))).toEqual({ state: "failed", failure: { code: "refused", message: "`top` is `0`" } });
});

test("a few answers are kept, those that were wanted last", async () => {
  for (let top = 1; top <= 18; top++) {
    const end = jobs.want({ kind: "count", options: { top } });
    await later();
    server.set(String(top), "done");
    jobs.hear(server.told);
    await later();
    end();
  }
  await later(1_000);
  expect([...heard].filter(([, asked]) => asked === null).map(([key]) => key)).toEqual(['{"kind":"count","options":{"top":1}}', '{"kind":"count","options":{"top":2}}']);
});

test("the same question is the same text, with times to the nanosecond", () => {
  expect(bodyOf(count)).toBe('{"kind":"count","options":{"begin_ns":1795219372253260578,"top":5}}');
  expect(bodyOf({ kind: "pairs", options: { pairs: { stop: ["b"], start: ['a"'] }, bins: undefined } })).toBe('{"kind":"pairs","options":{"pairs":{"start":["a\\""],"stop":["b"]}}}');
});

test("how far it is stands in words", () => {
  expect(progressText({ state: "running", done: 25, total: 100, etaMs: 1_500 })).toBe("25 % read, 1.5 s left");
  expect(progressText({ state: "running", done: 0, total: 0, etaMs: null })).toBe("0 % read");
  expect(progressText({ state: "running", done: 100, total: 100, etaMs: 0 })).toBe("100 % read");
  expect(progressText({ state: "waiting" })).toBe("waits for its turn");
  expect(readJob(new Shape({ id: "3", state: "resting", done: 0, total: 0, eta_ms: null, failure: null }, "job")).state).toBe("waiting");
});

test("analyses say their tables", () => {
  const text = '{"analyses":[{"kind":"gaps","title":"Gaps","description":"Where nothing happens.","tables":[{"class":"gaps","title":"The longest","columns":[{"name":"length","title":"Length","class":"duration","unit":null}]}],"understands":{"by":["x"],"threads":true}}]}';
  expect(readAnalyses(new Shape(parseJson(text), "analyses"))).toEqual([
    { kind: "gaps", title: "Gaps", description: "Where nothing happens.", tables: [{ name: "gaps", title: "The longest", columns: [{ name: "length", title: "Length", of: "duration", unit: null }] }], by: ["x"], ofThreads: true, ofEvents: true },
  ]);
});

test("progress ends when the server does not answer for a while, and goes on once it does", async () => {
  jobs.want(count);
  await later();
  server.isGone = true;
  await later(4_500);
  // It may only be slow.
  expect(stateOf(count)).toBe("running");
  await later(2_000);
  expect(heard.get(bodyOf(count))).toMatchObject({ state: "failed", failure: { code: "unreachable" } });
  server.isGone = false;
  jobs.reached();
  await later();
  expect(stateOf(count)).toBe("running");
});

test("answers in between count: a server that misses one request now and then is not given up", async () => {
  jobs.want(count);
  await later();
  for (let time = 0; time < 8; time++) {
    server.isGone = time % 3 !== 2;
    await later(2_000);
  }
  expect(stateOf(count)).toBe("running");
});
