import { expect, test } from "vitest";
import { counted } from "../units/counted.ts";
import { trackLike } from "../testing/tracks.ts";
import { PLAIN_LAYOUT, rowsOf } from "./rows.ts";
import { thingsIn, thingsText } from "./things.ts";

const CPUS = [0, 1].flatMap((cpu) => {
  const number = cpu * 3;
  return [
    trackLike(number, { id: `cpu/0/${cpu}/thread`, group: "CPUs", cpu }),
    trackLike(number + 1, { id: `cpu/0/${cpu}/irq`, group: "CPUs", cpu, parent: trackLike(number).number }),
    trackLike(number + 2, { id: `cpu/0/${cpu}/softirq`, group: "CPUs", cpu, parent: trackLike(number).number }),
  ];
});
const CROWDS = [6, 7].map((number) => trackLike(number, { id: `threads/0/${number}`, group: "CPUs", kind: "counter" }));
const thread = (number: number, tid: number, process: string | null, host: string | null = null): ReturnType<typeof trackLike> =>
  trackLike(number, { id: `thread/${host ?? 0}/${tid}/${number}`, group: "Threads", tid, process, host });

test("a CPU counts once, however many rows it has, and counters of a machine's threads are no CPUs", () => {
  const tracks = [...CPUS, ...CROWDS];
  expect([thingsIn("CPUs", tracks), thingsText("CPUs", tracks, tracks)]).toEqual([2, "2 CPUs in 8 rows"]);
  expect(thingsText("CPUs", CPUS.slice(0, 1), tracks)).toBe("1 CPU in 1 row");
  const [head] = rowsOf({ tracks, values: [] }, PLAIN_LAYOUT);
  expect([head?.group, head?.count, head?.counted]).toEqual(["CPUs", 2, "2 CPUs in 8 rows"]);
});

test("threads count once on each machine, with their processes", () => {
  const tracks = [thread(1, 7, "7"), thread(2, 7, null), thread(3, 8, "7"), thread(4, 7, "7", "other")];
  expect([thingsIn("Threads", tracks), thingsText("Threads", tracks, tracks)]).toEqual([3, "3 threads of 2 processes in 4 rows"]);
  const unknown = [thread(1, 9, null)];
  expect(thingsText("Threads", unknown, unknown)).toBe("1 thread in 1 row");
});

test("streams, counters and components are as many as there are, without those of all together and without details", () => {
  const events = (number: number, cpu: number | null): ReturnType<typeof trackLike> => trackLike(number, { id: `events/0/${number}`, group: "Events", kind: "instants", cpu });
  const all = trackLike(9, { id: "all/events", group: "Events", kind: "instants" });
  const slices = trackLike(5, { id: "events/0/2/slices/0", group: "Events", parent: events(2, null).number });
  const tracks = [all, events(1, 0), events(2, null), slices];
  expect([thingsIn("Events", tracks), thingsText("Events", tracks, tracks)]).toEqual([2, "2 in 4 rows"]);
  expect([thingsIn("Events", [all]), thingsText("Events", [all], tracks)]).toEqual([1, "1 row"]);
  const counters = [1, 2, 3].map((number) => trackLike(number, { group: "Counters", kind: "counter", process: "4" }));
  expect([thingsIn("Counters", counters), thingsText("Counters", counters, counters)]).toEqual([3, "3 rows"]);
  const latencies = [1, 2].map((number) => trackLike(number, { group: "Latencies", kind: "heat" }));
  expect(thingsIn("Latencies", latencies)).toBe(2);
  // The user's own group of pinned rows.
  expect(thingsIn("Pinned", [...CPUS, ...CROWDS])).toBe(4);
});

test("one thing is one", () => {
  expect([counted(1, "event"), counted(1n, "event"), counted(0, "event"), counted(1200n, "event"), counted(2, "process", "processes")]).toEqual(["1 event", "1 event", "0 events", "1,200 events", "2 processes"]);
});
