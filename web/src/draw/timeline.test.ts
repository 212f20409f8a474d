import { expect, test } from "vitest";
import { NO_ARROWS } from "../model/arrows.ts";
import type { Piece } from "../model/cache.ts";
import { EMPTY_CATALOGUE, type Track, type TrackKind, type TrackValue } from "../model/catalogue.ts";
import { densityOf } from "../model/density.ts";
import { MISSING, SURFACES, css } from "../model/palette.ts";
import { rowsOf, PLAIN_LAYOUT } from "../model/rows.ts";
import { ticks } from "../model/ruler.ts";
import { NONE, type Items, type Span } from "../model/tile.ts";
import { RecordingPen, recordingTools } from "../testing/pen.ts";
import { counter, counts, heldCounter, runs, states } from "../testing/tiles.ts";
import { px } from "../units/screen.ts";
import { level, tileIndex, trackNumber, valueNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { Looks } from "./looks.ts";
import { drawOverview } from "./overview.ts";
import { fitted } from "./pen.ts";
import { drawRuler } from "./ruler.ts";
import { StripSheet } from "./strip.ts";
import { drawTimeline, joined, type Picture } from "./timeline.ts";
import { trackLike } from "../testing/tracks.ts";

const VALUES: TrackValue[] = ["running on CPU 1", "blocked"].map((label, number) => ({ number: valueNumber(number), label, kind: "doing", colour: number }));
const frame = { view: { begin: nanos(1_000), span: nanos(256) }, width: px(256), origin: nanos(1_000) };
const EXACT: readonly Span[] = [{ begin: 0, end: 256, quality: "exact" }];

function trackOf(kind: TrackKind): Track {
  return trackLike(0, { id: "a", kind, name: "a" });
}

function pieceOf(items: Items, spans = EXACT): Piece {
  const tile = { level: level(0), index: tileIndex(0), track: trackNumber(0), carry: NONE, items, spans };
  return { tile, begin: 0, end: 256, standIn: false };
}

function drawn(kind: TrackKind, pieces: readonly Piece[], more: Partial<Picture> = {}, unit: string | null = null): RecordingPen {
  const pen = new RecordingPen();
  const rows = rowsOf({ ...EMPTY_CATALOGUE, tracks: [{ ...trackOf(kind), unit }] }, PLAIN_LAYOUT);
  const picture: Picture = {
    frame,
    rows: rows.map((row) => ({ row, pieces: row.track === null ? [] : pieces })),
    scroll: 0,
    height: 100,
    ratio: 1,
    looks: new Looks("light", VALUES),
    ticks: [],
    selection: null,
    selectedRows: null,
    picked: null,
    mark: null,
    isGrowing: false,
    arrows: NO_ARROWS,
    losses: [],
    pickedArrow: null,
    ...more,
  };
  drawTimeline(pen, recordingTools(pen), new StripSheet(), picture);
  return pen;
}

test("a track is a lane with its strip on it, below the head of its group", () => {
  const { calls } = drawn("states", [pieceOf(runs([0, 20, 0, 0]))]);
  const { background, lane } = SURFACES.light;
  expect(calls).toEqual(["seal", `rect 0 0 256 100 ${css(background)}`, `rect 0 24 256 18 ${css(lane)}`, "blit 0 16 to 0 24 256 18"]);
});

test("where events were lost there is a band across all rows, stronger at its top", () => {
  const losses = [{ begin: nanos(1_010), end: nanos(1_030) }, { begin: nanos(1_100), end: nanos(1_100) }, { begin: nanos(9_000), end: nanos(9_100) }];
  const red = css(MISSING.light);
  const bands = drawn("states", [pieceOf(runs([0, 20, 0, 0]))], { losses }).of("rect").filter((call) => call.includes(red)).map((call) => call.split(" ").slice(1, 5).join(" "));
  expect(bands).toEqual(["10 0 20 100", "10 0 20 3", "100 0 1 100", "100 0 1 3"]);
});

test("bars with room have their name, cut where there is less", () => {
  expect(drawn("states", [pieceOf(runs([0, 200, 0, 0]))]).of("text")).toEqual(["text running on CPU 1 4 34 rgb(0,0,0)"]);
  expect(drawn("states", [pieceOf(runs([10, 70, 0, 0]))]).of("text")).toEqual(["text running… 14 34 rgb(0,0,0)"]);
  // On the low bar of somebody who waits there is no room for a name.
  expect(drawn("states", [pieceOf(runs([0, 200, 1, 0]))]).of("text")).toEqual([]);
});

test("a name stands once on a bar that reaches over tiles", () => {
  const halves = [
    { ...pieceOf(states()), end: 128 },
    { ...pieceOf(states()), begin: 128 },
  ].map((piece) => ({ ...piece, tile: { ...piece.tile, carry: 0 } }));
  expect(drawn("states", halves).of("text")).toEqual(["text running on CPU 1 4 34 rgb(0,0,0)"]);
  expect(joined([{ from: 0, to: 4, value: 1 }, { from: 4, to: 9, value: 1 }, { from: 9, to: 12, value: 2 }])).toEqual([
    { from: 0, to: 9, value: 1 },
    { from: 9, to: 12, value: 2 },
  ]);
});

test("what is not known is hatched, as far as that goes", () => {
  const spans: Span[] = [
    { begin: 0, end: 100, quality: "exact" },
    { begin: 100, end: 150, quality: "building" },
    { begin: 150, end: 156, quality: "estimated" },
    { begin: 156, end: 256, quality: "unknown" },
  ];
  const hatched = drawn("states", [pieceOf(runs(), spans)]).calls.filter((call) => /building|unknown/.test(call));
  expect(hatched).toEqual(["rect 100 24 50 18 building", "rect 150 24 6 18 building", "rect 156 24 100 18 unknown"]);
});

test("where traces grow a lane ends where they do; what is missing before that is hatched", () => {
  const spans: Span[] = [
    { begin: 0, end: 100, quality: "exact" },
    { begin: 100, end: 120, quality: "unknown" },
    { begin: 120, end: 199, quality: "exact" },
    // More may come in the bucket in which they end.
    { begin: 199, end: 200, quality: "building" },
    { begin: 200, end: 256, quality: "unknown" },
  ];
  const { background, line } = SURFACES.light;
  const calls = drawn("states", [pieceOf(runs(), spans)], { isGrowing: true }).calls;
  expect(calls.slice(-3)).toEqual(["rect 100 24 20 18 unknown", `rect 200 24 56 18 ${css(background)}`, `rect 200 24 1 18 ${css(line)}`]);
  const hatched = (isGrowing: boolean, ...some: Span[]): string[] => drawn("states", [pieceOf(runs(), some)], { isGrowing }).calls.filter((call) => call.endsWith("building"));
  expect(hatched(true, { begin: 0, end: 255, quality: "exact" }, { begin: 255, end: 256, quality: "building" })).toEqual([]);
  expect(hatched(false, { begin: 0, end: 255, quality: "exact" }, { begin: 255, end: 256, quality: "building" }).length).toBe(1);
  expect(hatched(true, { begin: 0, end: 254, quality: "exact" }, { begin: 254, end: 256, quality: "building" }).length).toBe(1);
  // Where no tile is yet behind the last one, nothing is known either.
  const short = { ...pieceOf(runs()), end: 192 };
  expect(drawn("states", [short], { isGrowing: true }).calls.at(-1)).toBe(`rect 192 24 64 18 ${css(background)}`);
  // Of a tile that is all to come, the tile before it has the line.
  const later = drawn("states", [pieceOf(runs(), [{ begin: 0, end: 256, quality: "unknown" }])], { isGrowing: true }).calls;
  expect(later.at(-1)).toBe(`rect 0 24 256 18 ${css(background)}`);
});

test("a counter is a line with steps, and an envelope where it changes within a bucket", () => {
  const pen = drawn("counter", [pieceOf(counter([0, 1, 0, 0, 0, 0], [10, 5, 0, 10, 10, 4], [200, 1, 5, 5, 5, 5]))]);
  const path = pen.calls.slice(pen.calls.indexOf("path"), pen.calls.findIndex((call) => call.startsWith("stroke ")) + 1);
  expect(path).toEqual([
    "path",
    "move 1 65",
    "line 11 65",
    "line 11 25",
    "line 201 25",
    "line 201 45",
    "line 256 45",
    `stroke ${css(SURFACES.light.accent)}`,
  ]);
  expect(pen.of("rect").filter((call) => call.startsWith("rect 10 "))).toEqual(["rect 10 25 1 40 rgb(146,184,211)"]);
});

test("a counter's row says what its top and its bottom are", () => {
  const items = counter([0, 1, 0, 0, 0, 0], [10, 5, 0, 65_536, 10, 4]);
  expect(drawn("counter", [pieceOf(items)], {}, "bytes").of("text")).toEqual([`text 64 KiB 218 25 ${css(SURFACES.light.faint)}`, `text 0 B 236 55 ${css(SURFACES.light.faint)}`]);
  expect(drawn("counter", [pieceOf(counter([0, 1, 7, 7, 7, 7]))]).of("text")).toEqual([`text 7 248 33 ${css(SURFACES.light.faint)}`]);
  expect(drawn("counter", [pieceOf(counter())]).of("text")).toEqual([]);
});

test("a counter that never changes has a line in the middle", () => {
  const pen = drawn("counter", [pieceOf(counter([0, 1, 7, 7, 7, 7]))]);
  expect(pen.of("line")).toEqual(["line 256 45"]);
});

test("a counter is what it was before its first change", () => {
  expect(drawn("counter", [pieceOf(heldCounter(5))]).of("line")).toEqual(["line 256 45"]);
  const pen = drawn("counter", [pieceOf(heldCounter(0, [200, 1, 0, 10, 10, 5]))]);
  expect([...pen.of("move"), ...pen.of("line")]).toEqual(["move 0 65", "line 201 65", "line 201 25", "line 256 25"]);
});

test("a counter holds from tile to tile", () => {
  const halves = [
    { ...pieceOf(counter([0, 1, 7, 7, 7, 7])), end: 128 },
    { ...pieceOf(counter()), begin: 128 },
  ];
  expect(drawn("counter", halves).of("line")).toEqual(["line 128 45", "line 256 45"]);
});

test("a state is not drawn on where nobody has read what comes next", () => {
  const spans: Span[] = [
    { begin: 0, end: 100, quality: "exact" },
    { begin: 100, end: 256, quality: "estimated" },
  ];
  const piece = pieceOf(states(), spans);
  expect(drawn("states", [{ ...piece, tile: { ...piece.tile, carry: 0 } }]).of("text")).toEqual(["text running on CPU… 4 34 rgb(0,0,0)"]);
});

test("the selection lies over everything", () => {
  const pen = drawn("states", [], { selection: { begin: nanos(1_010), span: nanos(20) } });
  const accent = css(SURFACES.light.accent);
  expect(pen.calls.slice(-3)).toEqual([`rect 10 0 20 100 ${accent} 0.15`, `rect 10 0 1 100 ${accent}`, `rect 29 0 1 100 ${accent}`]);
});

test("what is picked has a frame, also if it is shorter than a pixel", () => {
  const [paper, ink] = [css(SURFACES.light.background), css(SURFACES.light.ink)];
  const pen = drawn("states", [], { picked: { track: "a", extent: { begin: nanos(1_010), end: nanos(1_030) } } });
  const frames = (of: RecordingPen): string[] => of.calls.slice(of.calls.findIndex((call) => call.startsWith("blit")) + 1);
  // Two pixels around the bar on each side, and two more that are light.
  expect(frames(pen)).toEqual([
    ...["6 22 28 2", "6 42 28 2", "6 22 2 22", "32 22 2 22"].map((place) => `rect ${place} ${paper}`),
    ...["8 24 24 2", "8 40 24 2", "8 24 2 18", "30 24 2 18"].map((place) => `rect ${place} ${ink}`),
  ]);
  const instant = drawn("states", [], { picked: { track: "a", extent: { begin: nanos(1_010), end: nanos(1_010) } } });
  expect(frames(instant).at(-4)).toBe(`rect 8 24 5 2 ${ink}`);
  // What is elsewhere has none, and what is far longer than the screen does not need larger numbers.
  expect(frames(drawn("states", [], { picked: { track: "b", extent: { begin: nanos(1_010), end: nanos(1_010) } } }))).toEqual([]);
  expect(frames(drawn("states", [], { picked: { track: "a", extent: { begin: nanos(2_000), end: nanos(2_010) } } }))).toEqual([]);
  expect(frames(drawn("states", [], { picked: { track: "a", extent: { begin: nanos(0), end: nanos(9_000_000_000) } } })).at(-4)).toBe(`rect -8 24 272 2 ${ink}`);
});

test("rows move up when they are scrolled, and are sharp on every screen", () => {
  const pen = drawn("states", [], { scroll: 10, ratio: 2 });
  expect(pen.of("blit")).toEqual(["blit 0 16 to 0 28 256 36"]);
});

test("a selection is a band over all rows; those that are selected have a frame in it", () => {
  const selection = { begin: nanos(1_010), span: nanos(20) };
  const rects = (more: Parameters<typeof drawn>[2]): string[] => drawn("states", [], { selection, ...more }).of("rect").slice(2).map((call) => call.split(" ").filter((part) => !part.startsWith("rgb")).slice(1).join(" "));
  expect(rects({})).toEqual(["10 0 20 100 0.15", "10 0 1 100", "29 0 1 100"]);
  expect(rects({ selectedRows: { top: 40, bottom: 60 }, scroll: 10 }).slice(3)).toEqual(["10 30 20 20 0.15", "10 30 20 2", "10 48 20 2"]);
});

test("the mark is a line that is wider at the top; outside of the window nothing of it is seen", () => {
  const marked = (mark: number): string[] => drawn("states", [], { mark: nanos(mark) }).of("rect").slice(2).map((call) => call.split(" ").slice(1, 5).join(" "));
  expect(marked(1_020)).toEqual(["20 0 1 100", "16 0 9 1", "17 1 7 1", "18 2 5 1", "19 3 3 1"]);
  expect(marked(5_000)).toEqual([]);
  expect(marked(1_256)).toEqual([]);
});

test("sixty rows of a wide screen are few calls", () => {
  const pen = new RecordingPen();
  const tracks = Array.from({ length: 60 }, (_, number) => ({ ...trackOf("states"), number: trackNumber(number), id: `t${number}` }));
  const rows = rowsOf({ ...EMPTY_CATALOGUE, tracks }, PLAIN_LAYOUT);
  const busy = pieceOf(states(...Array.from({ length: 256 }, (_, bucket) => [bucket, bucket % 2, NONE, bucket % 2, 9, 65_535, 0])));
  drawTimeline(pen, recordingTools(pen), new StripSheet(), {
    frame,
    rows: rows.map((row) => ({ row, pieces: row.track === null ? [] : [busy] })),
    scroll: 0,
    height: 1_200,
    ratio: 1,
    looks: new Looks("light", VALUES),
    ticks: [],
    selection: null,
    selectedRows: null,
    picked: null,
    mark: null,
    isGrowing: false,
    arrows: NO_ARROWS,
    losses: [],
    pickedArrow: null,
  });
  expect(pen.calls.length).toBeLessThan(4 * 60);
});

test("texts are cut to what fits, or left out", () => {
  const pen = new RecordingPen();
  expect(fitted(pen, "abcdefgh", 48)).toBe("abcdefgh");
  expect(fitted(pen, "abcdefgh", 47)).toBe("abcdef…");
  expect(fitted(pen, "abcdefgh", 24)).toBe("abc…");
  expect(fitted(pen, "abcdefgh", 23)).toBe("");
});

test("the ruler has lines for all marks, and names where they fit", () => {
  const pen = new RecordingPen();
  const clock = { origin: nanos(1_000), unix: false, zone: "UTC", style: "relative" } as const;
  drawRuler(pen, { ticks: ticks(frame.view, frame.width, px(100), clock), width: 256, height: 26, ratio: 1, theme: "light" });
  expect(pen.of("text").map((call) => call.replaceAll("\u202f", "").split(" ").slice(1, 3).join(" "))).toEqual(["0.0000000 s", "0.0000001 s"]);
  expect(pen.of("rect").length).toBe(1 + 13);
});

test("the overview sums up events, says what is estimated, and frames the window", () => {
  const pen = new RecordingPen();
  const spans: Span[] = [
    { begin: 0, end: 128, quality: "exact" },
    { begin: 128, end: 256, quality: "estimated" },
  ];
  const all = { ...frame, width: px(8) };
  const density = densityOf(all, [[pieceOf(counts([0, 0, 5, 5], [200, 0, 1, 1]), spans)], [pieceOf(counts([1, 0, 4, 4]), spans)], []]);
  expect([...density.count]).toEqual([9, 0, 0, 0, 0, 0, 1, 0]);
  expect(density.quality).toEqual(["exact", "exact", "exact", "exact", "estimated", "estimated", "estimated", "estimated"]);
  const sheet = new StripSheet();
  drawOverview(pen, recordingTools(pen), sheet, {
    frame: all,
    height: 22,
    ratio: 1,
    theme: "light",
    density,
    losses: [],
    view: { begin: nanos(1_064), span: nanos(64) },
    selection: null,
    mark: nanos(1_200),
    isGrowing: false,
  });
  // Bars stand on the lower edge; what is estimated has another colour.
  const rowsAt = (x: number): number[] => Array.from({ length: 22 }, (_, row) => row).filter((row) => sheet.pixels[row * 8 + x] !== 0);
  expect(Array.from({ length: 8 }, (_, x) => [rowsAt(x)[0], rowsAt(x).length])).toEqual([[2, 20], [undefined, 0], [undefined, 0], [undefined, 0], [undefined, 0], [undefined, 0], [16, 6], [undefined, 0]]);
  expect(sheet.pixels[21 * 8]).not.toBe(sheet.pixels[21 * 8 + 6]);
  expect(pen.calls).toContain("rect 4 0 4 22 building");
  expect(pen.of("rect").slice(-5).map((call) => call.split(" ").slice(1, 5).join(" "))).toEqual(["2 0 1 22", "3 0 1 22", "2 0 2 1", "2 21 2 1", "6 0 1 22"]);
});

test("a window of everything does not hide the first and the last event of the overview", () => {
  const all = { ...frame, width: px(8) };
  const framed = (view: typeof frame.view): string[] => {
    const pen = new RecordingPen();
    drawOverview(pen, recordingTools(pen), new StripSheet(), { frame: all, height: 22, ratio: 1, theme: "light", density: densityOf(all, [[]]), losses: [], view, selection: null, mark: null, isGrowing: false });
    return pen.of("rect").map((call) => call.split(" ").slice(1, 5).join(" ")).filter((rect) => rect.includes(" 0 1 22"));
  };
  expect(framed(all.view)).toEqual([]);
  expect(framed({ begin: nanos(all.view.begin + 64n), span: nanos(all.view.span - 64n) })).toEqual(["2 0 1 22"]);
});

test("where nobody knows how many events there are, the overview says so", () => {
  expect(densityOf({ ...frame, width: px(3) }, [[]]).quality).toEqual(["unknown", "unknown", "unknown"]);
});
