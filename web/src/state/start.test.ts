// How the choice of traces goes on.

import { expect, test } from "vitest";
import type { StartInfo } from "../model/start.ts";
import { begun, ended, FIRST_START, isChoosing, isWaiting, sent, withInfo } from "./start.ts";

const info = (state: StartInfo["state"]): StartInfo => ({ state, waiting: null, recent: [], problem: null, record: [], sample: true, uploadBytesMax: 1, failure: null });

test("somebody has to choose from when the server says so until traces are open", () => {
  expect(isChoosing(FIRST_START)).toBe(false);
  const choosing = withInfo(FIRST_START, info("choosing"));
  expect(isChoosing(choosing)).toBe(true);
  expect(isChoosing(withInfo(choosing, info("open")))).toBe(false);
  expect(isChoosing(withInfo(FIRST_START, info("open")))).toBe(false);
});

test("traces without events are waited for, which nobody has to choose", () => {
  const waiting = withInfo(FIRST_START, info("waiting"));
  expect([isChoosing(waiting), isWaiting(waiting), waiting.isOpen]).toEqual([false, true, false]);
  const open = withInfo(waiting, info("open"));
  expect([isWaiting(open), open.isOpen, isWaiting(FIRST_START)]).toEqual([false, true, false]);
});

test("what another page opens is seen here, until it has failed there", () => {
  const opening = withInfo(withInfo(FIRST_START, info("choosing")), info("opening"));
  expect(opening.busy?.kind).toBe("opening");
  expect(withInfo(opening, info("choosing")).busy).toBeNull();
});

test("what is begun takes away what was wrong before, and its end says what is wrong now", () => {
  const fault = { why: "No.", todo: "Other." };
  const sending = begun(ended(withInfo(FIRST_START, info("choosing")), fault), { kind: "sending", name: "", files: 1, done: 0, total: 10 });
  expect(sending.fault).toBeNull();
  expect(sent(sending, 7, "a").busy).toEqual({ kind: "sending", name: "a", files: 1, done: 7, total: 10 });
  const over = ended(sending, fault);
  expect([over.busy, over.fault]).toEqual([null, fault]);
  expect(sent(over, 9, "b")).toBe(over);
});
