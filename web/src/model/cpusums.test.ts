import { expect, test } from "vitest";
import { trackLike } from "../testing/tracks.ts";
import { nanos } from "../units/time.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Clock } from "./clock.ts";
import { cpuQuestion, withExact } from "./cpusums.ts";
import { Shape, parseJson } from "./json.ts";
import type { Sums, TrackSum } from "./sums.ts";
import { readAnswer } from "./tables.ts";

const clock: Clock = { origin: nanos(0), unix: true, zone: "UTC", style: "relative" };
const cpu = (number: number, host: string | null = null): Catalogue["tracks"][number] => trackLike(number, { id: `cpu/0/${number}/thread`, cpu: number, host });
const interrupts = trackLike(9, { id: "cpu/0/0/irq", cpu: 0 });
const catalogue: Catalogue = { tracks: [cpu(0), cpu(1), interrupts], values: [] };

function sums(...exact: readonly boolean[]): Sums {
  const tracks = exact.map((isExact, number): TrackSum => ({ track: number, form: "states", values: new Map(), count: 0, number: null, bins: null, untold: 0, isExact }));
  return { tracks, isRead: true };
}

test("an analysis is asked where running times are rounded: of all CPUs with threads and processes, of some by CPU", () => {
  const [one, other] = [cpu(0), cpu(1)];
  expect(cpuQuestion(catalogue, [one, other, interrupts], sums(true, false), { begin_ns: 5n })).toEqual({ kind: "cpu", options: { begin_ns: 5n, by: ["cpu", "process", "thread"], top: 1_000 } });
  expect(cpuQuestion(catalogue, [other], sums(true, false), {})).toEqual({ kind: "cpu", options: { by: ["cpu"], cpus: [1], top: 1_000 } });
  expect(cpuQuestion(catalogue, [one, other], sums(true, true), {})).toBe(null);
  expect(cpuQuestion(catalogue, [interrupts], sums(false, false), {})).toBe(null);
  expect(cpuQuestion(catalogue, [one], { ...sums(false, false), isRead: false }, {})).toBe(null);
  // CPUs of two machines have the same numbers.
  expect(cpuQuestion({ tracks: [cpu(0, "a"), cpu(1, "b")], values: [] }, [one], sums(false, false), {})).toBe(null);
});

const column = (name: string, of: string): string => `{"name":"${name}","title":"","class":"${of}","unit":null}`;
const table = (name: string, columns: readonly string[], rows: string, omitted = 0): string => `{"class":"${name}","title":"","span":null,"columns":[${columns.join()}],"rows":[${rows}],"omitted":${omitted}}`;
const times = (...names: readonly string[]): string[] => names.map((name) => column(name, "duration"));
const answer = readAnswer(
  new Shape(
    parseJson(
      `{"events_discarded":3,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true,"tables":[
      ${table("per-cpu", [column("cpu", "cpu"), ...times("busy", "idle", "unknown")], "[0,600000,400000,0],[1,{\"value\":250000,\"low\":200000,\"high\":null},650000,100000]")},
      ${table("per-thread", [column("thread", "process"), column("incarnation", "number"), ...times("run_time"), column("runs", "number")], '[{"name":"cc1","pid":10,"tid":12},0,500000,7],[{"name":"cc1","pid":10,"tid":12},1,350000,2]', 4)},
      ${table("per-process", [column("process", "process"), ...times("run_time"), column("runs", "number")], '[{"name":"make","pid":10,"tid":null},850000,9]')}]}`,
    ),
    "answer",
  ),
);

test("its answer takes the place of rounded tables, with idle CPUs, lives and bounds", () => {
  const rounded = ["Processes on CPUs", "Threads on CPUs", "CPUs", "Softirqs"].map((title) => ({ title, columns: [], rows: [["x", ["~1 ns"]]] as const, more: 0 }));
  const told = withExact(rounded, answer, nanos(1_000_000), clock).map(({ title, rows, more }) => [title, more, ...rows.map(([name, cells]) => `${name}: ${cells.join(", ")}`)]);
  expect(told).toEqual([
    ["Processes on CPUs", 0, "idle: 1.050 ms, 52.5 %", "unknown: 100.0 µs, 5.0 %", "make (10): 850.0 µs, 42.5 %, 9"],
    ["Threads on CPUs", 4, "idle: 1.050 ms, 52.5 %", "unknown: 100.0 µs, 5.0 %", "cc1 (12): 500.0 µs, 25.0 %, 7", "cc1 (12), life 1: 350.0 µs, 17.5 %, 2"],
    ["CPUs", 0, "CPU 0: 600.0 µs, 60.0 %, 400.0 µs, 0 ns", "CPU 1: 250.0 µs [200.0 µs..?], 25.0 %, 650.0 µs, 100.0 µs"],
    ["Softirqs", 0, "x: ~1 ns"],
  ]);
});
