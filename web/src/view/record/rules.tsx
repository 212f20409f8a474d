// Rules of the session that records: events that it keeps only if they took long, or some of many.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ruleState, type Recording, type Rule } from "../../model/recording.ts";
import { usePick } from "../hooks.ts";
import type { RecordDesk } from "./desk.ts";
import { Refused } from "./refused.tsx";

export function Rules({ desk, recording }: { readonly desk: RecordDesk; readonly recording: Recording }): JSX.Element | null {
  const [busy, refusal] = usePick(desk.store, (state) => [state.busy === "rules", state.refusal] as const);
  if (recording.rules.length === 0) {
    return null;
  }
  return (
    <section aria-label="Rules">
      <ul class="record-triggers">
        {recording.rules.map((rule) => (
          <Row key={rule.name} desk={desk} rule={rule} isBusy={busy} />
        ))}
      </ul>
      <Refused refusal={refusal} place="rules" />
    </section>
  );
}

function Row({ desk, rule, isBusy }: { readonly desk: RecordDesk; readonly rule: Rule; readonly isBusy: boolean }): JSX.Element {
  const { name, words, limit, isSet, problems, why } = rule;
  const [draft, setDraft] = useState("");
  return (
    <li>
      <div>
        {name}: only <code>{words}</code>
      </div>
      <div class="faint">
        {ruleState(rule)}
        {isSet ? `, limit ${limit}` : ""}
      </div>
      {problems.length === 0 ? null : (
        <ul class="record-problems">
          {problems.map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      )}
      {why === null ? null : <div class="faint">The recorder decides where a program cannot: {why}</div>}
      <form
        class="rail-bar"
        onSubmit={(event) => {
          event.preventDefault();
          void desk.limit(name, draft.trim()).then(() => setDraft(""));
        }}
      >
        <input class="field record-limit" type="text" aria-label={`Limit of ${name}`} placeholder={limit} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} />
        <button type="submit" class="button small" disabled={isBusy || draft.trim() === ""}>
          Set limit
        </button>
        {isSet ? (
          <button type="button" class="button small" disabled={isBusy} aria-label={`Reset ${name}`} onClick={() => void desk.limit(name, null)}>
            Reset
          </button>
        ) : null}
      </form>
    </li>
  );
}
