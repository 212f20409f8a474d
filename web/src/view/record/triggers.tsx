// Triggers of the session that records: events that start and stop it, and what they have done.

import type { JSX } from "preact";
import { triggerState, type Recording, type Trigger } from "../../model/recording.ts";
import { usePick } from "../hooks.ts";
import type { RecordDesk } from "./desk.ts";
import { Refused } from "./refused.tsx";

const EFFECTS = { start: "Start", stop: "Stop", snapshot: "Snapshot" } as const;

export function Triggers({ desk, recording }: { readonly desk: RecordDesk; readonly recording: Recording }): JSX.Element | null {
  const [busy, refusal] = usePick(desk.store, (state) => [state.busy === "triggers", state.refusal] as const);
  const { triggers, isOn } = recording;
  if (triggers.length === 0 && isOn) {
    return null;
  }
  return (
    <section aria-label="Triggers">
      <ul class="record-triggers">
        {triggers.map((trigger) => (
          <Row key={trigger.name} desk={desk} trigger={trigger} isBusy={busy} />
        ))}
      </ul>
      <div class="rail-bar">
        <button type="button" class="button small" disabled={busy} title={isOn ? "Records no more; the session stays" : "Records from now on"} onClick={() => void desk.turn({ act: "turn", on: !isOn })}>
          {isOn ? "Pause now" : "Start now"}
        </button>
      </div>
      <Refused refusal={refusal} place="triggers" />
    </section>
  );
}

function Row({ desk, trigger, isBusy }: { readonly desk: RecordDesk; readonly trigger: Trigger; readonly isBusy: boolean }): JSX.Element {
  const { name, effect, events, filter, repeats, isArmed, last, watched, why } = trigger;
  return (
    <li>
      <div>
        {EFFECTS[effect]} at <code>{events.join(" ")}</code>
        {filter === null ? null : (
          <>
            {" "}
            if <code>{filter}</code>
          </>
        )}
        {repeats ? ", each time" : ""}
      </div>
      <div class="faint">
        {triggerState(trigger)}
        {last === null ? "" : `, last by ${last}`}
      </div>
      {watched === 0 ? null : (
        <div class="faint" title={why ?? undefined}>
          The recorder watches {watched === 1 ? "a program that" : `${watched.toLocaleString("en")} programs that`} cannot act at the event.
        </div>
      )}
      <div class="rail-bar">
        {isArmed ? null : (
          <button type="button" class="button small" disabled={isBusy} aria-label={`Arm ${name}`} onClick={() => void desk.turn({ act: "arm", trigger: name })}>
            Arm
          </button>
        )}
        <button type="button" class="button small" disabled={isBusy} aria-label={`Remove ${name}`} onClick={() => void desk.turn({ act: "remove", trigger: name })}>
          Remove
        </button>
      </div>
    </li>
  );
}
