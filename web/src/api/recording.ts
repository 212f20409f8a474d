// Asks the recorder of the shown traces, by way of the server: for the state of its session, and to change it.

import { ShapeFault, type Shape } from "../model/json.ts";
import { readMatched, readRecording, readSnapshot, type LimitChange, type Matched, type Recording, type Snapshot, type Switching, type TriggerEffect, type TriggerTurn } from "../model/recording.ts";
import { ApiFault, type Client } from "./client.ts";

/** The session that records the shown traces; `null`: there is none, or the server is older than that. Throws an `ApiFault`, as all of these do. */
export async function askRecording(client: Client): Promise<Recording | null> {
  try {
    return await understood(client.json("recording"), readRecording);
  } catch (error) {
    if (error instanceof ApiFault && error.kind === "absent") {
      return null;
    }
    throw error;
  }
}

/** Switches events on or off, or puts another filter on those that are on. */
export async function switchEvents(client: Client, act: Switching, events: readonly string[], filter: string | null): Promise<{ readonly matched: Matched; readonly recording: Recording | null }> {
  const body = act === "disable" ? { act, events } : { act, events, filter };
  return understood(client.post("recording", JSON.stringify(body)), (shape) => ({ matched: readMatched(shape.get("matched")), recording: readRecording(shape) }));
}

/** Has a flight recorder write its memory. */
export async function takeSnapshot(client: Client): Promise<{ readonly snapshot: Snapshot; readonly recording: Recording | null }> {
  return understood(client.post("recording", JSON.stringify({ act: "snapshot" })), (shape) => ({ snapshot: readSnapshot(shape.get("snapshot")), recording: readRecording(shape) }));
}

/** Starts, stops or snapshots the session at such events. */
export async function addTrigger(client: Client, effect: TriggerEffect, events: readonly string[], filter: string | null, repeat: boolean): Promise<{ readonly matched: Matched; readonly recording: Recording | null }> {
  const body = { act: "trigger", events, filter, effect, repeat };
  return understood(client.post("recording", JSON.stringify(body)), (shape) => ({ matched: readMatched(shape.get("matched")), recording: readRecording(shape) }));
}

/** Arms a trigger anew or removes it; or starts and stops the session now. */
export async function turnTrigger(client: Client, body: TriggerTurn): Promise<Recording | null> {
  return understood(client.post("recording", JSON.stringify(body)), readRecording);
}

export async function setLimit(client: Client, rule: string, limit: string | null): Promise<Recording | null> {
  const body: LimitChange = { act: "limit", rule, limit };
  return understood(client.post("recording", JSON.stringify(body)), readRecording);
}

export async function stopRecording(client: Client): Promise<Recording | null> {
  return understood(client.post("recording", JSON.stringify({ act: "stop" })), readRecording);
}

async function understood<T>(answer: Promise<Shape>, read: (shape: Shape) => T): Promise<T> {
  const shape = await answer;
  try {
    return read(shape);
  } catch (error) {
    throw error instanceof ShapeFault ? new ApiFault("nonsense", error.message) : error;
  }
}
