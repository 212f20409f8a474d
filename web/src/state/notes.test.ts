import { expect, test } from "vitest";
import { EMPTY_CATALOGUE, type Status } from "../model/catalogue.ts";
import type { Note } from "../model/notes.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { NO_NOTES, edited, heard, marked, noteShown, placeMeant, withNote, withoutNote, writing, written, type NotesState } from "./notes.ts";
import { FIRST_STATE, resized, wentTo, withCatalogue, withStatus, type State } from "./viewer.ts";
import { trackLike } from "../testing/tracks.ts";

const note = (id: string, begin: number, end: number | null = null, track: string | null = null): Note => ({
  id,
  begin: nanos(begin),
  end: end === null ? null : nanos(end),
  text: id,
  track,
  author: null,
  colour: null,
  rest: [],
});
const two: NotesState = heard(NO_NOTES, { file: "f", notes: [note("a", 10), note("c", 30)], problems: [] });
const ids = (state: NotesState): string[] => marked(state).map(({ id }) => id);

const STATUS: Status = {
  extent: { begin: nanos(0), end: nanos(10_000) },
  unix: true,
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
const TRACK = trackLike(0);
const small = resized(withCatalogue(withStatus(FIRST_STATE, STATUS), { ...EMPTY_CATALOGUE, tracks: [TRACK] }), { width: cssPx(100), height: cssPx(100), ratio: 1 });
const ready: State = wentTo(small, { begin: nanos(4_000), span: nanos(1_000) });

test("a note that is kept stands where it belongs, once", () => {
  expect(ids(withNote(two, note("b", 20)))).toEqual(["a", "b", "c"]);
  expect(ids(withNote(two, note("a", 40)))).toEqual(["c", "a"]);
  expect(withNote(NO_NOTES, note("a", 1))).toBe(NO_NOTES);
});

test("a note that is removed can be put back", () => {
  const gone = withoutNote({ ...two, chosen: "a" }, note("a", 10));
  expect([ids(gone), gone.removed?.id, gone.chosen]).toEqual([["c"], "a", null]);
  expect(withoutNote({ ...two, chosen: "c" }, note("a", 10)).chosen).toBe("c");
});

test("a note that is being made is marked, too, and only once when the server has it", () => {
  const made = edited(writing(two, note("b", 20), true), { text: "now" });
  expect(marked(made).map(({ id, text }) => [id, text])).toEqual([["a", "a"], ["b", "now"], ["c", "c"]]);
  expect(ids(withNote(made, note("b", 20)))).toEqual(["a", "b", "c"]);
  expect(ids(writing(two, note("a", 10), false))).toEqual(["a", "c"]);
});

test("only what somebody has changed is kept; all else is as the server last said it", () => {
  const old = writing(two, note("a", 10), false);
  expect(written(old)).toBeNull();
  expect(written(edited(old, { text: " \n" }))).toBeNull();
  const changed = heard(edited(old, { text: " more " }), { file: "f", notes: [{ ...note("a", 15), author: "Ada" }], problems: [] });
  expect(written(changed)).toMatchObject({ id: "a", begin: 15n, author: "Ada", text: "more" });
  expect(written(edited(writing(two, { ...note("n", 1), text: "" }, true), { text: "x" }))).toMatchObject({ id: "n", text: "x" });
  expect(edited(NO_NOTES, { text: "x" })).toBe(NO_NOTES);
});

test("who says a note and its colour change without its text, also where that is empty", () => {
  const old = writing(two, { ...note("a", 10), author: "Ada" }, false);
  expect(written(edited(old, { author: " Bob " }))).toMatchObject({ text: "a", author: "Bob", colour: null });
  expect(written(edited(old, { author: "", colour: "red" }))).toMatchObject({ author: null, colour: "red" });
  const mute = writing(two, { ...note("c", 30), text: "" }, false);
  expect([written(mute), written(edited(mute, { colour: "blue" }))?.colour, written(edited(old, { text: "", colour: "blue" }))]).toEqual([null, "blue", null]);
});

test("a note is about what is selected, else where the pointer, the mark or the middle is", () => {
  const row = ready.rows.find((one) => one.track !== null)?.key ?? "";
  const pointed: State = { ...ready, cursor: { time: nanos(4_321), row }, mark: nanos(9) };
  expect(placeMeant({ ...pointed, selection: { begin: nanos(5), span: nanos(7) } })).toEqual({ begin: 5n, end: 12n, track: null });
  expect(placeMeant(pointed)).toEqual({ begin: 4_321n, end: null, track: "t0" });
  expect(placeMeant({ ...pointed, cursor: null })).toEqual({ begin: 9n, end: null, track: null });
  expect(placeMeant(ready)).toEqual({ begin: 4_500n, end: null, track: null });
  expect(placeMeant(FIRST_STATE)).toBeNull();
});

test("what a note is about is marked or selected, and seen", () => {
  const moment = noteShown({ ...ready, selection: { begin: nanos(1), span: nanos(2) } }, note("a", 9_000));
  expect([moment.mark, moment.selection]).toEqual([9_000n, null]);
  expect(moment.view !== null && moment.view.begin <= 9_000n && moment.view.begin + moment.view.span > 9_000n).toBe(true);
  const seen = noteShown(ready, note("a", 4_100, 4_200));
  expect([seen.selection, seen.mark, seen.view]).toEqual([{ begin: 4_100n, span: 100n }, null, ready.view]);
  // It would be a few pixels: the window becomes smaller.
  expect(noteShown(ready, note("a", 4_110, 4_150)).view).toEqual({ begin: 4_100n, span: 60n });
  expect(noteShown(ready, note("a", 6_000, 7_000, "elsewhere")).view).toEqual({ begin: 5_750n, span: 1_500n });
});
