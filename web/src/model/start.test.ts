// What the choice of traces says, and how files are sent.

import { expect, test } from "vitest";
import { nanos, SECOND } from "../units/time.ts";
import { Shape, parseJson } from "./json.ts";
import { agoText, arranged, bytesText, readStart, refusalOf, titleOf } from "./start.ts";

test("what the server says is read to the nanosecond", () => {
  const text = `{"failure": null, "problem": "damaged", "recent": [{"opened_ns": 1795219372256000001, "paths": ["/a/b/", "/c"], "there": false}],
    "record": [{"command": "kymo record", "what": "all"}], "sample": true, "state": "choosing", "upload_bytes_max": 5}`;
  expect(readStart(new Shape(parseJson(text), "start"))).toEqual({
    state: "choosing",
    waiting: null,
    recent: [{ paths: ["/a/b/", "/c"], opened: 1795219372256000001n, there: false }],
    problem: "damaged",
    record: [{ command: "kymo record", what: "all" }],
    sample: true,
    uploadBytesMax: 5,
    failure: null,
  });
  expect(() => readStart(new Shape({ state: "open" }, "start"))).toThrow("start.recent");
});

test("the server may wait for events, and says for which", () => {
  const started = (more: object): unknown => readStart(new Shape({ recent: [], record: [], sample: true, upload_bytes_max: 0, ...more }, "start"));
  expect(started({ state: "waiting", waiting: "`./server` has begun." })).toMatchObject({ state: "waiting", waiting: "`./server` has begun." });
  expect(started({ state: "waiting", waiting: null })).toMatchObject({ state: "waiting", waiting: null });
  // What a newer server may do before traces are open, whoever asks for them learns.
  expect(started({ state: "dreaming" })).toMatchObject({ state: "open", waiting: null });
  expect(() => started({ state: "waiting", waiting: 7 })).toThrow("start.waiting: found 7, expected a text");
});

test.each([
  [["/traces/kernel/"], "kernel"],
  [["/traces/kernel", "C:\\traces\\ust"], "kernel, ust"],
  [["/"], "/"],
])("%s is called %s", (paths, title) => expect(titleOf(paths)).toBe(title));

test.each([
  [-5n, "just now"],
  [59n, "just now"],
  [60n, "1 minute ago"],
  [7_199n, "1 hour ago"],
  [86_400n * 3n, "3 days ago"],
])("%d seconds are %s", (seconds, text) => expect(agoText(nanos(0n), nanos(seconds * SECOND))).toBe(text));

test.each([
  [0, "0 bytes"],
  [1023, "1023 bytes"],
  [1536, "1.5 KiB"],
  [2 * 2 ** 30, "2 GiB"],
  [300 * 2 ** 20, "300 MiB"],
  [4 * 2 ** 40, "4096 GiB"],
])("%d bytes are %s", (bytes, text) => expect(bytesText(bytes)).toBe(text));

const file = (path: string): { path: string; size: number; file: null } => ({ path, size: 10, file: null });

test("files of a trace without its folder get one, all else stays as it is", () => {
  const paths = (...names: string[]): string[] => arranged(names.map(file)).map((one) => one.path);
  expect(paths("metadata", "stream_0", "index/stream_0.idx")).toEqual(["dropped/metadata", "dropped/stream_0", "index/stream_0.idx"]);
  expect(paths("t/metadata", "a.tar.gz")).toEqual(["t/metadata", "a.tar.gz"]);
});

test("nothing is sent that would be refused", () => {
  expect(refusalOf([], 100)).toContain("no file");
  expect(refusalOf([file("a"), file("b")], 20)).toBeNull();
  expect(refusalOf([file("a"), file("b")], 19)).toBe("These files have 20 bytes, and 19 bytes are the most that can be sent: type the path of the trace instead.");
});
