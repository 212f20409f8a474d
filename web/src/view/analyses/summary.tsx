// The content of a span of time, at a glance: how many events, how busy CPUs are, how long system calls take, each with those that make up most of it.

import type { ComponentChildren, JSX } from "preact";
import { exactDuration, grouped, numberText } from "../../model/cells.ts";
import { progressText, type Options } from "../../model/jobs.ts";
import { ofTable } from "../../model/lens.ts";
import { busyOf, callsOf, eventsOf, type Summed } from "../../model/summary.ts";
import type { Answer } from "../../model/tables.ts";
import { withLens } from "../../state/analyses.ts";
import type { Page } from "../page.ts";
import { useAnswer, type Answered } from "./ask.tsx";
import { followingOf, questionFor } from "./questions.ts";
import { useClock } from "./table.tsx";

/** More CPUs, system calls and classes of events than traces have. */
const ROWS = 4_096;

export function Summary({ page, times }: { readonly page: Page; readonly times: Options }): JSX.Element {
  const clock = useClock(page);
  const events = useAnswer(page, questionFor(page, "count", { ...times, top: ROWS }));
  const busy = useAnswer(page, questionFor(page, "cpu", { ...times, by: ["cpu", "thread"], top: ROWS }));
  const calls = useAnswer(page, questionFor(page, "syscalls", { ...times, by: ["syscall"], top: ROWS }));
  return (
    <div class="cards" role="group" aria-label="What is selected">
      <Card page={page} kind="count" title="Events" answered={events} sum={(answer) => eventsOf(answer, clock)} />
      <Card page={page} kind="cpu" title="CPUs" answered={busy} sum={(answer) => busyOf(answer, clock)} />
      <Card page={page} kind="syscalls" title="System calls" answered={calls} sum={(answer) => callsOf(answer, clock)} />
    </div>
  );
}

interface CardOptions {
  readonly page: Page;
  readonly kind: string;
  readonly title: string;
  readonly answered: Answered;
  readonly sum: (answer: Answer) => Summed;
}

function Card({ page, kind, title, answered, sum }: CardOptions): JSX.Element {
  const { asked, answer, isOld } = answered;
  const { ofAllThreads, ofAllEvents } = followingOf(page, kind);
  const ofAll = [...(ofAllThreads ? ["threads"] : []), ...(ofAllEvents ? ["events"] : [])].join(" and ");
  const wait = asked?.state === "failed" ? `– ${asked.failure.code === "traces" ? "these traces do not tell" : asked.failure.message}` : asked === null ? "…" : progressText(asked);
  return (
    <button type="button" class="card" title="Show the tables of this" onClick={() => page.store.update((state) => withLens(state, ofTable(kind, null)))}>
      <strong>{title}</strong> {answer === null || asked?.state === "failed" ? <span class="faint">{wait}</span> : <Sum sum={sum(answer)} isOld={isOld} />}
      {ofAll === "" || asked?.state === "failed" ? null : <span class="faint"> · of all {ofAll}</span>}
    </button>
  );
}

function Sum({ sum, isOld }: { readonly sum: Summed; readonly isOld: boolean }): ComponentChildren {
  const { count, unit, share, time, most } = sum;
  const parts = [count === null ? "" : `${grouped(count)} ${unit}`, time === null ? "" : exactDuration(time), share === null ? "" : numberText(share, "ratio")].filter((part) => part !== "");
  return (
    <>
      <span class={isOld ? "faint" : ""}>{parts.join(", ")}</span> <span class="faint">{most.join(" · ")}</span>
    </>
  );
}
