// The things that tracks are about: a CPU or a thread has several tracks, and counts once.

import { counted } from "../units/counted.ts";
import type { Track } from "./catalogue.ts";
import { processesOf } from "./filter-tracks.ts";

/** The thing of a track; `null`: it tells of others in its group. */
function thingOf(track: Track, isOfCpus: boolean): string | null {
  if (track.tid !== null) {
    return `thread ${track.tid} ${track.host ?? ""}`;
  }
  if (track.cpu !== null) {
    return `cpu ${track.cpu} ${track.host ?? ""}`;
  }
  return isOfCpus || track.id === "all/events" ? null : track.parent !== null ? `track ${track.parent}` : `track ${track.number}`;
}

/** How many things the tracks of a group are about: CPUs, threads, streams, counters. */
export function thingsIn(group: string, tracks: readonly Track[]): number {
  const isOfCpus = tracks.some((track) => track.group === "CPUs" && track.cpu !== null) && group === "CPUs";
  const things = new Set(tracks.map((track) => thingOf(track, isOfCpus)).filter((thing) => thing !== null));
  return things.size > 0 ? things.size : tracks.length;
}

/** The same in words, with the processes of threads and the number of rows: "12 threads of 3 processes in 30 rows". */
export function thingsText(group: string, tracks: readonly Track[], all: readonly Track[]): string {
  const things = thingsIn(group, tracks);
  const rows = counted(tracks.length, "row");
  if (group === "CPUs" || group === "Threads") {
    const processOf = processesOf(all);
    const processes = group === "CPUs" ? 0 : new Set(tracks.map((track) => `${processOf(track)} ${track.host ?? ""}`).filter((process) => !process.startsWith("null "))).size;
    const of = processes === 0 ? "" : ` of ${counted(processes, "process", "processes")}`;
    return `${counted(things, group === "CPUs" ? "CPU" : "thread")}${of} in ${rows}`;
  }
  return things === tracks.length ? rows : `${things.toLocaleString("en")} in ${rows}`;
}
