import { expect, test } from "vitest";
import type { Status, Track } from "../model/catalogue.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { NO_ANALYSES, shownSpan, trackOfThread, withAsked, withLens } from "./analyses.ts";
import { FIRST_STATE, resized, wentBack, withCatalogue, withStatus, type State } from "./viewer.ts";
import { trackLike } from "../testing/tracks.ts";

const STATUS: Status = {
  extent: { begin: nanos(0), end: nanos(1_000_000) },
  unix: true,
  levels: { min: level(0), max: level(62) },
  version: 1,
  doneBytes: 1,
  totalBytes: 1,
  etaMs: null,
  state: "complete",
  failure: null,
  events: null,
  lost: 0n,
};

function trackOf(number: number, kind: Track["kind"], tid: number | null): Track {
  return trackLike(number, { kind, tid });
}

const tracks = [trackOf(0, "instants", 7), trackOf(1, "states", 7), trackOf(2, "instants", 8), ...Array.from({ length: 20 }, (_, index) => trackOf(3 + index, "states", 100 + index))];
const sized = resized(withStatus(FIRST_STATE, STATUS), { width: cssPx(1_000), height: cssPx(100), ratio: 1 });
const ready: State = withCatalogue(sized, { tracks, values: [] });
const span = (begin: number, end: number): Parameters<typeof shownSpan>[1] => ({ begin: nanos(begin), end: nanos(end) });

test("what becomes of questions is kept, and forgotten", () => {
  const asked = withAsked(NO_ANALYSES, "a", { state: "waiting" });
  expect([...asked.asked]).toEqual([["a", { state: "waiting" }]]);
  expect(withAsked(asked, "a", null).asked.size).toBe(0);
});

test("a span is shown with as much around it, selected and marked, and one can go back", () => {
  const there = shownSpan(ready, span(500_000, 510_000));
  expect([there.view, there.selection, there.mark]).toEqual([{ begin: 495_000n, span: 20_000n }, { begin: 500_000n, span: 10_000n }, 500_000n]);
  expect(wentBack(there).view).toEqual(ready.view);
  expect(shownSpan(ready, span(500_000, 500_010)).view).toEqual({ begin: 499_504n, span: 1_002n });
});

test("an instant is shown in the middle, near enough to be seen", () => {
  const there = shownSpan(ready, span(500_000, 500_000));
  expect([there.view, there.selection, there.mark]).toEqual([{ begin: 490_000n, span: 20_000n }, null, 500_000n]);
  expect(shownSpan(there, span(600_000, 600_000)).view).toEqual({ begin: 590_000n, span: 20_000n });
});

test("what is asked of the window or of the selection stays as it is", () => {
  const inWindow = shownSpan(withLens(ready, { scope: "window" }), span(500_000, 510_000));
  expect([inWindow.view, inWindow.selection]).toEqual([ready.view, { begin: 500_000n, span: 10_000n }]);
  const selected = withLens({ ...ready, selection: { begin: nanos(400_000), span: nanos(200_000) } }, { scope: "selection" });
  const inSelection = shownSpan(selected, span(500_000, 510_000));
  expect([inSelection.view, inSelection.selection]).toEqual([{ begin: 495_000n, span: 20_000n }, selected.selection]);
});

test("a thread is its states, else what there is of it", () => {
  expect([7, 8, 9, null].map((tid) => trackOfThread(ready, tid)?.id ?? null)).toEqual(["t1", "t2", null, null]);
});
