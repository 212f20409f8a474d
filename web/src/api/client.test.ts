import { expect, test } from "vitest";
import { ChangeParser, listen, pause, pauseMs } from "./changes.ts";
import { ApiFault, Client, type Fetch } from "./client.ts";
import { takeToken, type Place } from "./token.ts";
import { takeTold } from "./told.ts";

function placeOf(href: string, kept: string | null = null): Place & { shown: string | null; kept: string | null } {
  const place = {
    location: { href },
    shown: null as string | null,
    kept,
    history: { replaceState: (_: unknown, __: string, url: string) => void (place.shown = url) },
    storage: { getItem: () => place.kept, setItem: (_: string, value: string) => void (place.kept = value) },
  };
  return place;
}

test.each([
  ["http://127.0.0.1:8000/?token=abc", "http://127.0.0.1:8000/"],
  ["http://127.0.0.1:8000/?token=abc#at=1~2", "http://127.0.0.1:8000/#at=1~2"],
  ["http://127.0.0.1:8000/#token=abc", "http://127.0.0.1:8000/"],
  ["http://127.0.0.1:8000/?x=1#at=1~2&token=abc", "http://127.0.0.1:8000/?x=1#at=1%7E2"],
])("the token of %s is taken out of it", (href, shown) => {
  const place = placeOf(href, "older");
  expect(takeToken(place)).toBe("abc");
  expect([place.kept, place.shown]).toEqual(["abc", shown]);
});

test("a page that is reloaded has the token that it had", () => {
  const place = placeOf("http://127.0.0.1:8000/#at=1~2", "kept");
  expect(takeToken(place)).toBe("kept");
  expect(place.shown).toBeNull();
  expect(takeToken(placeOf("http://127.0.0.1:8000/"))).toBeNull();
});

function clientOf(answer: (url: string, init: RequestInit) => Response | Promise<Response>, token: string | null = "abc"): Client {
  const fetch: Fetch = async (url, init) => answer(url, init);
  return new Client("api/v1", token, fetch);
}

async function faultOf(asked: Promise<unknown>): Promise<string> {
  const fault = await asked.then(
    () => null,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(ApiFault);
  return fault instanceof ApiFault ? `${fault.kind}: ${fault.message}` : "";
}

/** A document with one element, which is taken out of it. */
function leafOf(text: string | null): { getElementById(id: string): { textContent: string; remove(): void } | null; taken: boolean } {
  const leaf = {
    taken: false,
    getElementById: (id: string) => (text === null || id !== "told" ? null : { textContent: text, remove: () => void (leaf.taken = true) }),
  };
  return leaf;
}

test("what the page was told is not asked for, but once", async () => {
  const leaf = leafOf('{"timeline": "{\\"begin_ns\\": 1795219372255263261}"}');
  const asked: string[] = [];
  const client = new Client("api/v1", "abc", async (url) => (asked.push(url), new Response('{"begin_ns": 7}')), takeTold(leaf));
  expect(leaf.taken).toBe(true);
  const begin = async (): Promise<bigint> => (await client.json("timeline")).get("begin_ns").whole();
  expect([await begin(), await begin(), asked]).toEqual([1795219372255263261n, 7n, ["api/v1/timeline"]]);
});

test.each([[null], [""], ["["], ["[]"], ["7"], ['{"timeline": 7}']])("a page that was told %s asks", (text) => {
  expect(takeTold(leafOf(text)).size).toBe(0);
});

test("the token is said in a header, never in the URL", async () => {
  let seen: [string, unknown] = ["", null];
  const client = clientOf((url, init) => {
    seen = [url, init.headers];
    return new Response("{}");
  });
  await client.json("timeline");
  expect(seen).toEqual(["api/v1/timeline", { Authorization: "Bearer abc" }]);
});

test.each([
  [401, '{"error":{"message":"the token is another one"}}', "token: the token is another one"],
  [400, '{"error":{"message":"`level` is 70; it is from 0 to 62"}}', "refused: `level` is 70; it is from 0 to 62"],
  [409, '{"error":{"message":"packets do not say when they are"}}', "traces: packets do not say when they are"],
  [404, "", "absent: the server answered with status 404"],
  [503, "<html>", "busy: the server answered with status 503"],
  [500, '{"error":7}', "server: the server answered with status 500"],
])("status %d is told as what it is", async (status, text, expected) => {
  expect(await faultOf(clientOf(() => new Response(text, { status })).json("timeline"))).toBe(expected);
});

test("an answer that is no JSON, and none at all", async () => {
  expect(await faultOf(clientOf(() => new Response("<html>")).json("timeline"))).toMatch(/^nonsense: the answer is no JSON/);
  expect(await faultOf(clientOf(() => Promise.reject(new TypeError("failed"))).json("timeline"))).toBe("unreachable: the server does not answer");
});

test("what is not needed any more is no fault of the server", async () => {
  const controller = new AbortController();
  controller.abort();
  const client = clientOf((_, init) => Promise.reject(init.signal?.reason));
  expect(await faultOf(client.json("timeline", controller.signal))).toMatch(/^aborted/);
});

test("bytes come with their tag, or not at all if they are known", async () => {
  const client = clientOf((_, init) => {
    const known = new Headers(init.headers).get("If-None-Match");
    return known === '"a"' ? new Response(null, { status: 304 }) : new Response(Uint8Array.of(1, 2), { headers: { ETag: '"a"' } });
  });
  const found = await client.bytes("tiles", null);
  expect(found !== "unchanged" && [found.etag, ...new Uint8Array(found.bytes)]).toEqual(['"a"', 1, 2]);
  expect(await client.bytes("tiles", '"a"')).toBe("unchanged");
});

test("events are put together, however the stream is cut", () => {
  const text = ": hello\nevent: timeline\ndata: {\ndata: }\n\nevent: none\n\ndata:x\r\n\r\nid: 5\n\n";
  const whole = [
    { name: "timeline", data: "{\n}" },
    { name: "message", data: "x" },
  ];
  for (let size = 1; size <= text.length; size++) {
    const parser = new ChangeParser();
    const found = [];
    for (let at = 0; at < text.length; at += size) {
      found.push(...parser.take(text.slice(at, at + size)));
    }
    expect(found).toEqual(whole);
  }
});

test("pauses grow, up to ten seconds", () => {
  expect([1, 2, 3, 6, 7, 100].map(pauseMs)).toEqual([250, 500, 1_000, 8_000, 10_000, 10_000]);
});

test("a pause ends with its signal, and listens to it no longer than it lasts", async () => {
  const ending = new AbortController();
  const listening = new Set<unknown>();
  const { signal } = ending;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (name: string, listener: EventListener) => (listening.add(listener), add(name, listener));
  signal.removeEventListener = (name: string, listener: EventListener) => (listening.delete(listener), remove(name, listener));
  await pause(0, signal);
  expect(listening.size).toBe(0);
  const long = pause(1_000_000_000, signal);
  expect(listening.size).toBe(1);
  ending.abort();
  await long;
  expect(listening.size).toBe(0);
  await pause(1_000_000_000, signal);
});

test("whoever listens hears what the server tells, and ends when it is refused", async () => {
  let calls = 0;
  const client = clientOf(() => {
    calls++;
    return calls === 1 ? new Response("event: timeline\ndata: 1\n\n") : new Response("", { status: 401 });
  });
  const heard: string[] = [];
  const listener = {
    change: ({ name, data }: { name: string; data: string }) => void heard.push(`${name} ${data}`),
    connected: () => void heard.push("connected"),
    lost: (fault: ApiFault) => void heard.push(fault.kind),
  };
  await listen(client, listener, new AbortController().signal);
  expect(heard).toEqual(["connected", "timeline 1", "token"]);
});
