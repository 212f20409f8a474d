// Asks for the events at the begin and at the end of a run.

import type { Track } from "../model/catalogue.ts";
import { endAmong, endTracks, type End, type Side } from "../model/ends.ts";
import type { RunItem } from "../model/items.ts";
import { nanos } from "../units/time.ts";
import type { Client } from "./client.ts";
import { askItems } from "./items.ts";

export async function askEnd(client: Client, run: RunItem, side: Side, track: Track, tracks: readonly Track[], signal: AbortSignal): Promise<End> {
  const time = side === "begin" ? run.begin : run.end;
  for (const { number, id } of endTracks(track, tracks)) {
    const { items } = await askItems(client, number, { begin: time, end: nanos(time + 1n) }, signal);
    const found = endAmong(items, run, side, id);
    if (found.kind === "event" || found.count > 0) {
      return found;
    }
  }
  return { kind: "unknown", count: 0 };
}
