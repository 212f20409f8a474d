import { expect, test } from "vitest";
import type { TrackValue } from "../model/catalogue.ts";
import { placeOf } from "../model/geometry.ts";
import { packed } from "../model/palette.ts";
import type { States } from "../model/tile.ts";
import { states } from "../testing/tiles.ts";
import { trackLike } from "../testing/tracks.ts";
import { px } from "../units/screen.ts";
import { level, tileIndex, valueNumber, type TrackNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { Looks } from "./looks.ts";
import { StatePainter } from "./states.ts";
import { STRIP_ROWS, StripSheet } from "./strip.ts";

const MAKE = { process: "7", application: "make", colour: 70 };
const VALUES: TrackValue[] = [
  { label: "idle", colour: 0 },
  { label: "make (7)", colour: 23, owner: MAKE },
  { label: "cc1 (9)", colour: 26, owner: MAKE },
  { label: "make (12)", colour: 29, owner: { ...MAKE, process: "12" } },
  { label: "bash (5)", colour: 32, owner: { process: "5", application: "bash", colour: 71 } },
  { label: "thread 8", colour: 35 },
  { label: "thread 6", colour: 38, owner: { process: "6", application: null, colour: null } },
].map((value, number) => ({ kind: "thread", number: valueNumber(number), ...value }));

test.each(["light", "dark"] as const)("threads of processes of one name look alike by application in the %s, and only then", (theme) => {
  const [own, shared] = [new Looks(theme, VALUES), new Looks(theme, VALUES, "application")];
  const colours = (looks: Looks): number[] => [...looks.packed];
  expect(new Set(colours(own)).size).toBe(VALUES.length);
  const [idle, make, cc1, other, bash, unknown, nameless] = colours(shared);
  expect([cc1, other]).toEqual([make, make]);
  expect(new Set([idle, make, bash, unknown, nameless]).size).toBe(5);
  // Of what nobody knows the application, a thread has its own colour.
  expect([idle, unknown, nameless]).toEqual([0, 5, 6].map((value) => own.of(value).packed));
  expect([shared.of(2).label, shared.rows[0]]).toEqual(["cc1 (9)", own.rows[0]]);
});

test("two threads of an application that share a bucket are one colour from the top to the bottom", () => {
  const sheet = new StripSheet();
  const looks = new Looks("light", VALUES, "application");
  const mark = packed([1, 2, 3]);
  const columnOf = (second: number): Set<number> => {
    sheet.begin(1, STRIP_ROWS);
    const { strip } = sheet.next(STRIP_ROWS);
    const items = states([0, 1, second, 1, 1, 34_000, 31_000]) as States;
    const frame = { view: { begin: nanos(0), span: nanos(1) }, width: px(1), origin: nanos(0) };
    const painter = new StatePainter(strip, looks, { mark, barMin: 8, isLoad: true });
    painter.states(placeOf(frame, level(0), tileIndex(0), 0, 1), items, 0);
    painter.finish();
    return new Set(Array.from({ length: strip.rows }, (_, row) => strip.at(0, row)));
  };
  expect(columnOf(2)).toEqual(new Set([looks.of(1).packed]));
  expect(columnOf(4)).toEqual(new Set([looks.of(1).packed, looks.of(4).packed]));
});

test("threads of a process differ where their tracks are known, whatever their hashes", () => {
  const tracks = [7, 9, 12].map((tid, number) => trackLike(number, { tid, process: "7" }));
  const values = tracks.map(({ number, tid }) => ({ number: valueNumber(number), label: `make (${tid})`, kind: "thread", colour: 23, track: number as TrackNumber, owner: MAKE }));
  expect(new Set(new Looks("dark", values, "thread").packed).size).toBe(1);
  expect(new Set(new Looks("dark", values, "thread", tracks).packed).size).toBe(3);
  expect(new Set(new Looks("dark", values, "application", tracks).packed).size).toBe(1);
});
