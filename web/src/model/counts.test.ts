import { expect, test } from "vitest";
import { readNames, readWhose } from "./counts.ts";
import { Shape } from "./json.ts";
import { readAnswer, type Answer } from "./tables.ts";

interface TableOf {
  readonly columns: readonly (readonly [string, string])[];
  readonly rows: readonly unknown[][];
  readonly omitted?: number;
}

function answerOf(tables: Readonly<Record<string, TableOf>>): Answer {
  const all = Object.entries(tables).map(([of, { columns, rows, omitted = 0 }]) => ({
    class: of,
    title: of,
    span: null,
    omitted,
    columns: columns.map(([name, kind]) => ({ name, title: name, class: kind, unit: null })),
    rows,
  }));
  return readAnswer(new Shape({ tables: all, events_discarded: 0, events_discarded_is_lower_bound: false, packets_lost: 0, complete: true }, "result"));
}

const person = (name: string | null, pid: number | null, tid: number | null): object => ({ name, pid, tid });

test("events are counted by name, of whatever trace", () => {
  const names = readNames(answerOf({ "per-class": { columns: [["name", "string"], ["count", "number"]], rows: [["a", 5], ["b", { value: 7, low: 7, high: null }], ["a", 1]] } }));
  expect([...names]).toEqual([["a", 6n], ["b", 7n]]);
});

test("whose events there are; lives of one number are one, idleness and what nobody knows are apart", () => {
  const found = readWhose(
    answerOf({
      "per-thread": {
        omitted: 3,
        columns: [["thread", "process"], ["incarnation", "number"], ["count", "number"]],
        rows: [[person("new", 5, 7), 1, 30], [person("old", null, 7), 0, { value: 4, low: 2, high: 9 }], [person("app", 5, 5), 0, 3], [person("idle", 0, 0), 0, 8], [{ unknown: true }, null, 2]],
      },
      "per-process": { columns: [["process", "process"], ["threads", "number"], ["count", "number"]], rows: [[person("app", 5, null), 2, 33], [person("idle", 0, null), 0, 8], [{ unknown: true }, 1, 6]] },
      "per-application": {
        columns: [["application", "string"], ["processes", "number"], ["threads", "number"], ["count", "number"]],
        rows: [["app", 1, 2, 33], ["old", 0, 1, 4], ["idle", 0, 0, 8], [{ unknown: true }, 0, 0, 2]],
      },
      "per-cpu": { columns: [["cpu", "cpu"], ["count", "number"]], rows: [[0, 40], [1, 6], [0, 1], [null, 2]] },
      total: { columns: [["count", "number"], ["idle", "number"], ["unknown", "number"], ["lost", "number"]], rows: [[47, { value: 8, low: 8, high: null }, 2, 0]] },
    }),
  );
  expect([...found.byThread]).toEqual([[7, { count: 34n, name: "new", pid: 5 }], [5, { count: 3n, name: "app", pid: 5 }]]);
  expect([...found.byProcess]).toEqual([["5", { count: 33n, name: "app" }]]);
  expect([...found.byApplication]).toEqual([["app", 33n], ["old", 4n]]);
  expect([...found.byCpu]).toEqual([[0, 41n], [1, 6n]]);
  expect([found.idle, found.unknown, found.omitted]).toEqual([8n, 2n, 3]);
});
