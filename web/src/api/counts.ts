// How many events there are of each name and on each CPU: a job of the server, which is waited for, and forgotten there when it is here.

import type { Counts } from "../model/facets.ts";
import type { Shape } from "../model/json.ts";
import type { Viewport } from "../model/viewport.ts";
import { endOf } from "../model/viewport.ts";
import { pause } from "./changes.ts";
import { ApiFault, type Client } from "./client.ts";

/** How long to wait before the job is asked for again: short at first, as most traces are counted at once. */
const POLLS_MS = [50, 100, 200, 400, 800] as const;

/** Hears how far counting is, of 1. */
export type Progress = (part: number) => void;

/** Counts the events of a window, or of all of the traces. */
export async function countByName(client: Client, window: Viewport | null, progress: Progress, signal: AbortSignal): Promise<Counts> {
  // Whoever does not wait for what the server calls it cannot have it forgotten: it would be computed for nobody.
  const id = (await client.post("jobs", bodyFor(window))).get("id").text();
  try {
    for (let polls = 0; ; polls++) {
      signal.throwIfAborted();
      await pause(POLLS_MS[Math.min(polls, POLLS_MS.length - 1)] ?? 0, signal);
      const job = await client.json(`jobs/${id}`, signal);
      const state = job.get("state").text();
      if (state === "done") {
        return readCounts(await client.json(`jobs/${id}/result`, signal));
      }
      if (state === "failed") {
        throw new ApiFault("refused", job.get("failure").get("message").text());
      }
      const total = job.get("total").number();
      progress(total === 0 ? 0 : job.get("done").number() / total);
    }
  } finally {
    // What cannot be forgotten now is forgotten by the server when there are too many.
    client.remove(`jobs/${id}`).catch(() => undefined);
  }
}

function bodyFor(window: Viewport | null): string {
  // Times are whole numbers of any size, which `JSON.stringify` does not write.
  return window === null ? '{"kind":"count","options":{}}' : `{"kind":"count","options":{"begin_ns":${window.begin},"end_ns":${endOf(window)}}}`;
}

/** Throws a `ShapeFault`. */
export function readCounts(shape: Shape): Counts {
  const byName = new Map<string, bigint>();
  const byCpu = new Map<number, bigint>();
  let isWhole = true;
  const add = <K>(map: Map<K, bigint>, key: K, count: bigint): void => void map.set(key, (map.get(key) ?? 0n) + count);
  for (const [name, count] of cellsOf(shape, "per-class", ["name", "count"])) {
    add(byName, name?.text() ?? "", count?.whole() ?? 0n);
  }
  for (const [cpu, count] of cellsOf(shape, "per-stream", ["cpu", "count"])) {
    const events = count?.whole() ?? 0n;
    if (cpu?.given === true) {
      add(byCpu, cpu.number(), events);
    } else {
      isWhole &&= events === 0n;
    }
  }
  // Where a stream does not say its CPU, its events may be of any.
  return { byName, byCpu: isWhole ? byCpu : null };
}

/** Some columns of a table's rows. */
function cellsOf(answer: Shape, of: string, columns: readonly string[]): Shape[][] {
  const table = answer.get("tables").list().find((one) => one.get("class").text() === of);
  if (table === undefined) {
    return [];
  }
  const names = table.get("columns").list().map((column) => column.get("name").text());
  const places = columns.map((name) => names.indexOf(name));
  return table.get("rows").list().map((row) => {
    const cells = row.list();
    return places.flatMap((place) => cells[place] ?? []);
  });
}
