import { expect, test } from "vitest";
import { emptyChoice, emptyList, emptyTable } from "./emptiness.ts";
import { ALL_EVENTS } from "./events.ts";

const whole = { lost: 0n, lostMore: false, lostPackets: 0n, complete: true };

test("a table is said to be empty only where all events were read", () => {
  expect(emptyTable(whole, "Slowest calls", "all", false)).toEqual({ why: "Slowest calls: there is none in these traces.", todo: "All events were read; perhaps events of this kind were not recorded." });
  expect(emptyTable(whole, "Slowest calls", "selection", false)).toEqual({ why: "Slowest calls: there is none in the selection.", todo: "All events of that time were read. All of the traces may have some." });
});

test("what was not looked at is named", () => {
  const { why, todo } = emptyTable({ lost: 1_234n, lostMore: true, lostPackets: 2n, complete: false }, "Calls", "window", true);
  expect(why).toBe("Calls: none was found in the window.");
  expect(todo).toBe("There may be some: the filter excludes events, at least 1\u202f234 events were lost, 2 packets were lost, a part of the traces could not be read. All of the traces may have some.");
  expect(emptyTable({ ...whole, lost: 1n }, "Calls", "all", false).todo).toBe("There may be some: 1 event was lost.");
});

test("where a choice leaves no row, the advice is about that choice, and rows that are not loaded are named", () => {
  expect(emptyChoice("foo", 0)).toEqual({ why: "No row has this.", todo: "Type less, or choose another column." });
  expect(emptyChoice(" ", 7_000)).toEqual({ why: "No row is in the chosen range and group.", todo: "Choose a longer range, or all groups. 7\u202f000 more rows are not loaded: choose more rows." });
});

test("an empty list names the names and the filter that it has, losses, and a recording that goes on", () => {
  const plain = { question: ALL_EVENTS, lost: 0n, isRecording: false };
  expect(emptyList(plain).why).toBe("There are no events in these traces.");
  expect(emptyList({ ...plain, lost: 3n }).todo).toBe("`kymo TRACE` summarizes them. 3 events were lost, which no list can have.");
  expect(emptyList({ ...plain, isRecording: true })).toEqual({ why: "There are no events in these traces so far.", todo: "They appear as they are recorded." });
  expect(emptyList({ ...plain, question: { filter: "id > 1", names: [] }, lost: null })).toEqual({ why: "No event of these traces passes the filter.", todo: "Change the filter. Some events were lost, which no list can have." });
  expect(emptyList({ ...plain, question: { filter: "id > 1", names: ["a"] } }).why).toBe("No event of these traces has one of these names and passes the filter.");
  // A choice of threads is a filter without an expression.
  expect(emptyList({ ...plain, question: { ...ALL_EVENTS, threads: "7,100-2150" } })).toEqual({ why: "No event of these traces passes the filter.", todo: "Change the filter." });
});
