import { expect, test } from "vitest";
import { nanos } from "../units/time.ts";
import { NO_FINDINGS, healthOf, isLost, lossMarks, readFindings, whyOf } from "./findings.ts";
import { Shape, parseJson } from "./json.ts";

const TOLD = `{"findings":[{"severity":"warning","rule":"events-discarded","assumption":false,"place":"/t/channel1_2","message":"859 events were discarded before its end","help":"use larger buffers","times":562},
  {"severity":"error","rule":"odd","assumption":false,"place":"/t/metadata","message":"odd","help":null,"times":1}],
  "losses":[{"begin_ns":1376592664833861357,"end_ns":1376592664851599526}],"losses_omitted":3}`;

test("what the server finds is read, to the last digit of its times", () => {
  const found = readFindings(new Shape(parseJson(TOLD), "findings"));
  expect(found.findings.map(({ severity, rule, help, times }) => [severity, rule, help, times])).toEqual([["warning", "events-discarded", "use larger buffers", 562], ["error", "odd", null, 1]]);
  expect(found.losses).toEqual([{ begin: 1376592664833861357n, end: 1376592664851599526n }]);
  expect(found.omitted).toBe(3);
  expect(found.findings.map(whyOf)).toEqual([expect.stringContaining("not seen"), ""]);
  expect([isLost(found, nanos(1376592664833861356n)), isLost(found, nanos(1376592664833861357n))]).toEqual([false, true]);
});

test("what cannot be read is bad, what was lost doubtful", () => {
  const found = readFindings(new Shape(parseJson(TOLD), "findings"));
  expect(healthOf(found, 0n)).toBe("bad");
  expect(healthOf({ ...found, findings: found.findings.slice(0, 1) }, 0n)).toBe("doubtful");
  expect([healthOf(NO_FINDINGS, 0n), healthOf(NO_FINDINGS, 1n), healthOf(NO_FINDINGS, null)]).toEqual(["good", "doubtful", "doubtful"]);
});

test("losses are marks that can be seen however short they are, and few however many they are", () => {
  const pixelOf = (time: bigint): number => Number(time) / 10;
  const loss = (begin: number, end: number): { begin: ReturnType<typeof nanos>; end: ReturnType<typeof nanos> } => ({ begin: nanos(begin), end: nanos(end) });
  expect(lossMarks([loss(-50, -40), loss(-20, 5), loss(100, 101), loss(115, 300), loss(5_000, 6_000)], pixelOf, 100, 2)).toEqual([[0, 1], [10, 30]]);
  expect(lossMarks(Array.from({ length: 5_000 }, (_, index) => loss(index, index)), pixelOf, 1_000, 1).length).toBe(1);
});
