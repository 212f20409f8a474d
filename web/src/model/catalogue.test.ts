import { expect, test } from "vitest";
import { EMPTY_CATALOGUE, isOtherServer, readCatalogue, readStatus, type Catalogue } from "./catalogue.ts";
import { Shape, ShapeFault, parseJson } from "./json.ts";
import { PLAIN_LAYOUT } from "./layout.ts";
import { heightOf, labelOf, nameOf, rowsBetween, rowsOf, toggled } from "./rows.ts";
import { trackLike } from "../testing/tracks.ts";
import { trackNumber } from "../units/tiles.ts";

const STATUS = `{"begin_ns":1795219372253260578,"end_ns":1795219372324470096,"unix":true,"level_min":0,"level_max":27,"version":3,
  "done_bytes":10,"total_bytes":20,"eta_ms":null,"state":"building","failure":null,"events":2400,"lost_events":7,"tracks":2,"values":0}`;

test("times are exact, although a double cannot hold them", () => {
  const status = readStatus(new Shape(parseJson(STATUS), "timeline"));
  expect(status.extent).toEqual({ begin: 1_795_219_372_253_260_578n, end: 1_795_219_372_324_470_097n });
  expect([status.state, status.events, status.lost, status.etaMs, status.levels]).toEqual(["building", 2_400n, 7n, null, { min: 0, max: 27 }]);
});

test("only whole numbers outside of texts become texts", () => {
  const text = '{"a":12345678901234567,"b":"x\\"1234567890123456789","c":-1795219372253260578,"d":1.2345678901234567,"e":12}';
  expect(parseJson(text)).toEqual({
    a: "12345678901234567",
    b: 'x"1234567890123456789',
    c: "-1795219372253260578",
    d: 1.2345678901234567,
    e: 12,
  });
});

test.each([
  ['{"begin_ns":1}', "timeline.end_ns: found nothing, expected a whole number"],
  ['{"begin_ns":1.5}', "timeline.begin_ns: found 1.5, expected a whole number"],
  [STATUS.replace("true", "1"), "timeline.unix: found 1, expected true or false"],
  [STATUS.replace('"building"', "7"), "timeline.state: found 7, expected a text"],
  ["[]", "timeline.begin_ns: found nothing, expected a whole number"],
  ["3", "timeline: found 3, expected an object"],
])("%s is refused", (text, message) => {
  const read = (): unknown => readStatus(new Shape(parseJson(text), "timeline"));
  expect(read).toThrow(ShapeFault);
  expect(read).toThrow(message);
});

/** A status of traces of which it says this. */
function liveOf(live: string): unknown {
  return readStatus(new Shape(parseJson(STATUS.replace("{", `{"live":${live},`)), "timeline")).live;
}

test("what a status says of traces that grow is read, and of servers that say nothing nothing", () => {
  expect(liveOf('{"state":"recording","watermark_ns":1795219372324470097,"behind_ms":412}')).toEqual({ state: "recording", watermark: 1_795_219_372_324_470_097n, behindMs: 412, problem: null });
  expect(liveOf('{"state":"ended","watermark_ns":5,"behind_ms":null}')).toEqual({ state: "ended", watermark: 5n, behindMs: null, problem: null });
  expect(liveOf('{"state":"recording","watermark_ns":-5,"behind_ms":-3}')).toEqual({ state: "recording", watermark: -5n, behindMs: 0, problem: null });
  expect(liveOf('{"state":"rewinding","watermark_ns":5}')).toEqual({ state: "ended", watermark: 5n, behindMs: null, problem: null });
  expect(liveOf('{"state":"recording","watermark_ns":5,"behind_ms":9,"problem":"it is gone"}')).toMatchObject({ problem: "it is gone" });
  expect("live" in readStatus(new Shape(parseJson(STATUS), "timeline"))).toBe(false);
  expect(liveOf("null")).toBeNull();
});

test.each([
  ["true", "timeline.live: found true, expected an object"],
  ["{}", "timeline.live.state: found nothing, expected a text"],
  ['{"state":"recording"}', "timeline.live.watermark_ns: found nothing, expected a whole number"],
  ['{"state":"recording","watermark_ns":1.5}', "timeline.live.watermark_ns: found 1.5, expected a whole number"],
  ['{"state":"recording","watermark_ns":1,"behind_ms":"soon"}', 'timeline.live.behind_ms: found "soon", expected a number'],
])("of traces that grow, %s is refused", (live, message) => {
  expect(() => liveOf(live)).toThrow(ShapeFault);
  expect(() => liveOf(live)).toThrow(message);
});

function trackOf(number: number, id: string, group: string, more: object = {}): object {
  return { number, id, kind: "states", name: id, group, ...more };
}

function catalogueOf(tracks: object[], before: Catalogue = EMPTY_CATALOGUE): Catalogue {
  return readCatalogue(new Shape({ version: 1, tracks, values: [] }, "catalogue"), before);
}

test("the catalogue grows, and what is told twice is there once", () => {
  const one = catalogueOf([trackOf(0, "a", "CPUs"), trackOf(1, "b", "CPUs")]);
  const two = catalogueOf([trackOf(1, "b", "CPUs"), trackOf(2, "c", "CPUs")], one);
  expect(two.tracks.map((track) => track.id)).toEqual(["a", "b", "c"]);
  expect(catalogueOf([], two).tracks).toBe(two.tracks);
});

test("pinned tracks stand on top and stay where they are; groups follow, slices below their thread", () => {
  const catalogue = catalogueOf([
    trackOf(0, "cpu", "CPUs"),
    trackOf(1, "thread", "Threads"),
    trackOf(2, "other", "Threads"),
    trackOf(3, "thread/deep", "Threads", { parent: 1, depth: 2 }),
    trackOf(4, "thread/slice", "Threads", { parent: 1, depth: 1 }),
  ]);
  const rows = rowsOf(catalogue, { ...PLAIN_LAYOUT, pinned: ["other", "gone"], hidden: [], folded: [] });
  expect(rows.map((row) => row.key)).toEqual([
    "group Pinned",
    "pinned other",
    "group CPUs",
    "track cpu",
    "group Threads",
    "track other",
    "track thread",
    "track thread/slice",
    "track thread/deep",
  ]);
  expect(rows.map((row) => row.top)).toEqual([0, 24, 44, 68, 88, 112, 132, 152, 168]);
  expect(heightOf(rows)).toBe(184);
});

test("rows have the same order whenever the traces are opened: groups by what they are, tracks by their ids", () => {
  const tracks = [
    trackOf(0, "events/0/0", "Events"),
    trackOf(1, "thread/0/100", "Threads"),
    trackOf(2, "cpu/0/10", "CPUs"),
    trackOf(3, "user", "Requests"),
    trackOf(4, "cpu/0/9", "CPUs"),
    trackOf(5, "thread/0/20", "Threads"),
  ];
  const keys = ["cpu/0/9", "cpu/0/10", "thread/0/20", "thread/0/100", "user", "events/0/0"].map((id) => `track ${id}`);
  for (const some of [tracks, tracks.toReversed().map((track, number) => ({ ...track, number }))]) {
    const rows = rowsOf(catalogueOf(some), PLAIN_LAYOUT);
    expect(rows.map((row) => row.key).filter((key) => key.startsWith("track"))).toEqual(keys);
  }
});

test("a part of a thread without a row says of which thread it is", () => {
  const [alone, part, named] = catalogueOf([
    trackOf(0, "events", "Threads", { tid: 77 }),
    trackOf(1, "events", "Threads", { tid: 77, parent: 5 }),
    trackOf(2, "app (77)", "Threads", { tid: 77, host: "b" }),
  ]).tracks.map(nameOf);
  expect([alone, part, named]).toEqual(["thread 77: events", "events", "app (77) · b"]);
  const deep = { ...trackLike(9), tid: 77, depth: 2, name: "durations, depth 2" };
  expect([nameOf(deep), labelOf(deep), nameOf({ ...deep, parent: trackNumber(1) }), labelOf({ ...deep, tid: null, name: "thread pool: x" })]).toEqual(["thread 77: depth 2", "77: depth 2", "durations, depth 2", "thread pool: x"]);
});

test("folded groups are a head, hidden tracks are nowhere", () => {
  const catalogue = catalogueOf([trackOf(0, "a", "CPUs"), trackOf(1, "b", "CPUs"), trackOf(2, "c", "Other")]);
  const rows = rowsOf(catalogue, { ...PLAIN_LAYOUT, pinned: [], hidden: ["c"], folded: ["CPUs"] });
  expect(rows.map((row) => [row.key, row.count, row.folded])).toEqual([["group CPUs", 2, true]]);
});

test("tracks that say they are part of each other are shown all the same", () => {
  const rows = rowsOf(catalogueOf([trackOf(0, "a", "G", { parent: 1 }), trackOf(1, "b", "G", { parent: 0 })]), PLAIN_LAYOUT);
  expect(rows.map((row) => row.key)).toEqual(["group G", "track a", "track b"]);
});

test("only rows that are on the screen are drawn", () => {
  const many = Array.from({ length: 10_000 }, (_, index) => trackOf(index, `t${index}`, "Threads"));
  const rows = rowsOf(catalogueOf(many), PLAIN_LAYOUT);
  const seen = rowsBetween(rows, 1_000, 1_100);
  expect(seen.map((row) => row.key)).toEqual(["track t48", "track t49", "track t50", "track t51", "track t52", "track t53"]);
  expect(rowsBetween(rows, 0, 0)).toEqual([]);
  expect(rowsBetween([], 0, 100)).toEqual([]);
});

test("a list without what it had, and with what it had not", () => {
  expect(toggled(["a", "b"], "a")).toEqual(["b"]);
  expect(toggled(["b"], "a")).toEqual(["b", "a"]);
});

test("a server is another one if it says so, else if it knows other things after it was not heard", () => {
  const of = (more: string, version = 5): ReturnType<typeof readStatus> =>
    readStatus(new Shape(parseJson(`{"begin_ns":1,"end_ns":9,"unix":true,"level_max":62,"version":${version},"done_bytes":0,"total_bytes":1,"state":"complete"${more}}`), "timeline"));
  const [one, two, mute] = [of(',"instance":"a"'), of(',"instance":"b"', 6), of("")];
  expect([one.instance, mute.instance]).toEqual(["a", undefined]);
  expect([isOtherServer(one, one, true), isOtherServer(one, two, false), isOtherServer(one, mute, true)]).toEqual([false, true, true]);
  expect([isOtherServer(mute, of("", 6), true), isOtherServer(mute, of("", 4), true), isOtherServer(mute, of("", 4), false)]).toEqual([false, true, false]);
  expect([isOtherServer(mute, of(',"end_ns":10'), true), isOtherServer(mute, of(',"begin_ns":0'), true), isOtherServer(mute, of(',"end_ns":10'), false)]).toEqual([true, true, false]);
});
