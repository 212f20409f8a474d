import { expect, test } from "vitest";
import { Shape } from "../model/json.ts";
import { nanos } from "../units/time.ts";
import { Client } from "./client.ts";
import { countByName, readCounts } from "./counts.ts";

function answerOf(streams: readonly (readonly [string, number | null, number, number])[]): object {
  const columns = (...names: string[]): object[] => names.map((name) => ({ name }));
  return {
    tables: [
      { class: "per-class", columns: columns("name", "count"), rows: [["a", 5], ["b", 7], ["a", 1]] },
      { class: "per-stream", columns: columns("stream", "cpu", "count", "lost"), rows: streams },
    ],
  };
}

test("events are counted by name, of whatever trace, and by CPU", () => {
  const { byName, byCpu } = readCounts(new Shape(answerOf([["0", 0, 9, 0], ["1", 1, 3, 2], ["2", 0, 1, 0]]), "result"));
  expect([...byName]).toEqual([["a", 6n], ["b", 7n]]);
  expect([...(byCpu ?? [])]).toEqual([[0, 10n], [1, 3n]]);
});

test("where a stream with events does not say its CPU, none is said to have so many", () => {
  expect(readCounts(new Shape(answerOf([["0", 0, 9, 0], ["1", null, 3, 0]]), "result")).byCpu).toBeNull();
  expect(readCounts(new Shape(answerOf([["0", 0, 9, 0], ["1", null, 0, 0]]), "result")).byCpu?.get(0)).toBe(9n);
});

test("a job is begun, waited for, and forgotten; a window is said to the nanosecond", async () => {
  const asked: string[] = [];
  const parts: number[] = [];
  let states = ["waiting", "running", "done"];
  const client = new Client("api", null, (url, init) => {
    asked.push(`${init.method ?? "GET"} ${url} ${String(init.body ?? "")}`.trimEnd());
    if (init.method === "POST") {
      return Promise.resolve(new Response('{"id":"7"}'));
    }
    const [state = "done", ...rest] = states;
    const isJob = init.method === undefined && url.endsWith("/7");
    states = isJob ? rest : states;
    const body = isJob ? { state, done: 1, total: 4 } : answerOf([]);
    return Promise.resolve(new Response(JSON.stringify(body)));
  });
  const window = { begin: nanos(1_795_219_372_253_260_578n), span: nanos(1) };
  const counts = await countByName(client, window, (part) => void parts.push(part), new AbortController().signal);
  expect(counts.byName.get("b")).toBe(7n);
  expect(parts).toEqual([0.25, 0.25]);
  expect(asked).toEqual([
    'POST api/jobs {"kind":"count","options":{"begin_ns":1795219372253260578,"end_ns":1795219372253260579}}',
    "GET api/jobs/7",
    "GET api/jobs/7",
    "GET api/jobs/7",
    "GET api/jobs/7/result",
    "DELETE api/jobs/7",
  ]);
});

test("a job that nobody wants any more before the server has named it is forgotten there", async () => {
  const asked: string[] = [];
  const ending = new AbortController();
  let name: (response: Response) => void = () => undefined;
  const client = new Client("api", null, (url, init) => {
    asked.push(`${init.method ?? "GET"} ${url}`);
    if (init.method !== "POST") {
      return Promise.resolve(new Response("{}"));
    }
    return new Promise((done, fail) => {
      name = done;
      init.signal?.addEventListener("abort", () => fail(new DOMException("", "AbortError")));
    });
  });
  const counts = countByName(client, null, () => undefined, ending.signal);
  ending.abort();
  name(new Response('{"id":"7"}'));
  await expect(counts).rejects.toThrow();
  expect(asked).toEqual(["POST api/jobs", "DELETE api/jobs/7"]);
});
