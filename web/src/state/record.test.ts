import { expect, test } from "vitest";
import type { Recording } from "../model/recording.ts";
import { FIRST_RECORD, answered, asking, refused, switchingTo, withRecording } from "./record.ts";
import { FIRST_STATE } from "./viewer.ts";

const SESSION: Recording = { session: "a", output: "/a", state: "recording", mode: "write", isOn: true, triggers: [], rules: [], command: null, milliseconds: 500, events: 10, bytes: 0, programs: 1, lost: { full: 0, noLane: 0, unwritten: 0, undefined: 0 }, latePrograms: 0, lateFolders: [], hasGap: false, filtered: 0, problems: [], snapshots: null, classes: [], moreClasses: 0, problem: null };

test("a session is known from when the recorder tells of it, and has ended when it does not any more", () => {
  expect(withRecording(FIRST_STATE, null)).toBe(FIRST_STATE);
  const one = withRecording(FIRST_STATE, SESSION);
  const two = withRecording(one, { ...SESSION, milliseconds: 1_000, events: 30 });
  expect(two.rates).toEqual([{ milliseconds: 500, events: 10 }, { milliseconds: 1_000, events: 30 }]);
  expect(withRecording(two, null).recording).toEqual({ ...SESSION, milliseconds: 1_000, events: 30, state: "ended" });
  expect(withRecording(two, { ...SESSION, session: "b", milliseconds: 9_000, events: 90 }).rates).toEqual([{ milliseconds: 9_000, events: 90 }]);
});

test("what was refused is said where it was asked for, until that is asked again", () => {
  const asked = asking({ ...FIRST_RECORD, isStopping: true }, "box");
  const no = refused(asked, "box", "traces", "in the filter at byte 8: found the end, expected a number");
  expect(no).toMatchObject({ busy: null, isStopping: false, refusal: { place: "box", why: "In the filter at byte 8: found the end, expected a number.", todo: "Nothing was changed: correct it, and try again." } });
  expect(asking(no, "classes").refusal).toBe(no.refusal);
  expect(asking(no, "box").refusal).toBeNull();
  expect(refused(asked, "session", "unreachable", "the server does not answer").refusal?.todo).toMatch(/^Is `kymo view` still running/);
  expect(refused(asked, "classes", "refused", "What?").refusal?.why).toBe("What?");
});

test("classes are what they are being switched to until the recorder has said so", () => {
  const one = switchingTo(switchingTo(FIRST_RECORD, "a", true), "b", false);
  expect([...one.switching]).toEqual([["a", true], ["b", false]]);
  expect([...switchingTo(one, "a", null).switching]).toEqual([["b", false]]);
  expect([...FIRST_RECORD.switching]).toEqual([]);
  const done = answered(asking(one, "box"), { switched: { act: "enable", matched: { sentence: null, events: 1, programs: 1, allPrograms: 1, unmatched: [], notes: [] } } });
  expect([done.busy, done.switched?.matched.events, asking(done, "box").switched]).toEqual([null, 1, null]);
});
