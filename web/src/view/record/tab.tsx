// The tab of the session that records the shown traces: how it is, which events, under which filters, snapshots, its end.

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { lossTexts, ratesOf, sentenceOf, sparkline, type Recording, type Sample } from "../../model/recording.ts";
import { secondsText } from "../../model/live.ts";
import { shortQuantity } from "../../model/quantity.ts";
import { usePick } from "../hooks.ts";
import { copyText } from "../leaving.ts";
import type { Page } from "../page.ts";
import { ClassList } from "./classes.tsx";
import { recordOf, type RecordDesk } from "./desk.ts";
import { SwitchForm } from "./form.tsx";
import { Refused } from "./refused.tsx";
import { Rules } from "./rules.tsx";
import { Triggers } from "./triggers.tsx";
import { counted } from "../../units/counted.ts";
import "../rail/rail.css";
import "./record.css";

const SPARK = { width: 84, height: 18 };

export function Record({ page }: { readonly page: Page }): JSX.Element {
  const [recording, rates] = usePick(page.store, (state) => [state.recording, state.rates] as const);
  const [draft, setDraft] = useState({ patterns: "", filter: "" });
  if (recording === null) {
    return <p class="hint">Nobody records these traces.</p>;
  }
  const isOver = recording.state === "ended";
  return (
    <div class="rail-tab record">
      <Session page={page} recording={recording} rates={rates} />
      <Acts desk={recordOf(page)} recording={recording} />
      {isOver ? null : <Triggers desk={recordOf(page)} recording={recording} />}
      {isOver ? null : <Rules desk={recordOf(page)} recording={recording} />}
      {isOver ? null : (
        <>
          <SwitchForm page={page} recording={recording} draft={draft} change={setDraft} />
          <ClassList page={page} recording={recording} edit={setDraft} />
        </>
      )}
    </div>
  );
}

interface SessionOptions {
  readonly page: Page;
  readonly recording: Recording;
  readonly rates: readonly Sample[];
}

/** How the session is. */
function Session({ recording, rates }: SessionOptions): JSX.Element {
  const { session, state, isOn, mode, command, output, milliseconds, events, bytes, programs, lost, filtered, snapshots, problems, problem } = recording;
  const missing = lossTexts(lost);
  return (
    <section class="record-session" aria-label="Session">
      <h2>
        {session} <span class={`badge ${state === "recording" && isOn ? "busy" : ""}`}>{state === "recording" && !isOn ? "not recording" : state}</span>
      </h2>
      {mode === "overwrite" ? <p class="hint">What is newest is kept in memory. Nothing is written before a snapshot.</p> : null}
      <dl class="record-facts">
        {command === null ? null : <Fact name="Command"><code>{command}</code></Fact>}
        <Fact name="Output">
          <code title={output}>{output}</code> <Copy text={output} what="the output's path" />
        </Fact>
        <Fact name="For">{secondsText(milliseconds / 1_000)}</Fact>
        <Fact name="Events">
          {events.toLocaleString("en")} <span class="faint">{shortQuantity(bytes, "bytes")}</span>
        </Fact>
        <Fact name="Rate">
          <Rate samples={rates} />
        </Fact>
        <Fact name="Programs">{programs === 0 ? "none runs" : `${programs.toLocaleString("en")} running`}</Fact>
        {filtered === 0 ? null : <Fact name="Filtered">{filtered.toLocaleString("en")} left out</Fact>}
        {snapshots === null ? null : <Fact name="Snapshots">{snapshots.toLocaleString("en")}</Fact>}
        <Fact name="Lost">{missing.length === 0 ? "none" : missing.map((text) => <div key={text} class="bad-text">{text}</div>)}</Fact>
      </dl>
      {problem === null ? null : (
        <p class="record-refusal" role="alert">
          <strong class="bad-text">{sentenceOf(problem)}</strong> What stands here is what was known before.
        </p>
      )}
      {problems.length === 0 ? null : (
        <ul class="record-problems" aria-label="Problems">
          {problems.map((problem) => (
            <li key={problem} class="bad-text">
              {problem}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Events a second: now, and over the last minute as a line. */
function Rate({ samples }: { readonly samples: readonly Sample[] }): JSX.Element {
  const rates = ratesOf(samples);
  const now = rates.at(-1);
  if (now === undefined) {
    return <span class="faint">…</span>;
  }
  const text = `${shortQuantity(Math.round(now), "events/s")}`;
  const most = shortQuantity(Math.round(Math.max(...rates)), "events/s");
  return (
    <span class="record-rate">
      {text}
      <svg class="spark" role="img" aria-label={`Events a second over the last minute: ${most} at most`} viewBox={`0 -1 ${SPARK.width} ${SPARK.height + 2}`} width={SPARK.width} height={SPARK.height}>
        <title>{most} at most</title>
        <line x1={0} y1={SPARK.height} x2={SPARK.width} y2={SPARK.height} />
        <polyline points={sparkline(rates, SPARK.width, SPARK.height)} />
      </svg>
    </span>
  );
}

function Copy({ text, what }: { readonly text: string; readonly what: string }): JSX.Element {
  const [isDone, setDone] = useState<boolean | null>(null);
  return (
    <button type="button" class="button small" aria-label={`Copy ${what}`} onClick={() => void copyText(text).then(setDone)}>
      {isDone === null ? "Copy" : isDone ? "Copied" : "No clipboard"}
    </button>
  );
}

/** The acts on the session as a whole. To stop it is asked once more, where the button was. */
function Acts({ desk, recording }: { readonly desk: RecordDesk; readonly recording: Recording }): JSX.Element | null {
  const [busy, snapshot, refusal, isStopping] = usePick(desk.store, (state) => [state.busy === "session", state.snapshot, state.refusal, state.isStopping] as const);
  const isOver = recording.state === "ended";
  return (
    <section aria-label="Snapshot and end">
      <div class="rail-bar">
        {recording.mode === "overwrite" ? (
          <button type="button" class="button small" disabled={busy || isOver} title="Writes what is in memory, and goes on" onClick={() => void desk.snapshot()}>
            Snapshot
          </button>
        ) : null}
        {isOver ? <span class="faint">The session has ended.</span> : <Stop desk={desk} isStopping={isStopping} isBusy={busy} />}
      </div>
      <div role="status">
        {snapshot === null ? null : (
          <p class="hint">
            {counted(snapshot.events, "event")} written to <code>{snapshot.output}</code> <Copy text={snapshot.output} what="the snapshot's path" />
          </p>
        )}
        {snapshot?.problems.map((problem) => (
          <p key={problem} class="bad-text record-note">
            {problem}
          </p>
        ))}
      </div>
      <Refused refusal={refusal} place="session" />
    </section>
  );
}

function Stop({ desk, isStopping, isBusy }: { readonly desk: RecordDesk; readonly isStopping: boolean; readonly isBusy: boolean }): JSX.Element {
  const group = useRef<HTMLSpanElement>(null);
  const plain = useRef<HTMLButtonElement>(null);
  const wasStopping = useRef(false);
  useLayoutEffect(() => {
    // Where the button was that had the focus, there is another one.
    if (isStopping !== wasStopping.current) {
      (isStopping ? group.current?.querySelector("button") : plain.current)?.focus();
      wasStopping.current = isStopping;
    }
  }, [isStopping]);
  if (!isStopping) {
    return (
      <button type="button" class="button small" ref={plain} disabled={isBusy} onClick={() => desk.mayStop(true)}>
        Stop recording
      </button>
    );
  }
  return (
    <span
      class="record-stop"
      role="group"
      aria-label="Stop recording?"
      ref={group}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.preventDefault();
          event.stopPropagation();
          desk.mayStop(false);
        }
      }}
    >
      Stop recording?{" "}
      <button type="button" class="button small danger" disabled={isBusy} onClick={() => void desk.stop()}>
        Stop
      </button>{" "}
      <button type="button" class="button small" disabled={isBusy} onClick={() => desk.mayStop(false)}>
        Go on
      </button>
    </span>
  );
}
