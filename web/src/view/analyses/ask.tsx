// The common parts of components that ask analyses: the answer to a question, how far it is, and its failure.

import type { JSX } from "preact";
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { timeText } from "../../model/clock.ts";
import { adviceFor, bodyOf, progressText, type Asked, type Failure, type Options, type Question } from "../../model/jobs.ts";
import { SCOPES, timesOf, type Scope } from "../../model/lens.ts";
import { isRecording } from "../../model/live.ts";
import type { Answer } from "../../model/tables.ts";
import { withLens } from "../../state/analyses.ts";
import { clockOf, wentTo } from "../../state/viewer.ts";
import { nanos } from "../../units/time.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";

/** A window that moves is asked for once it rests for so long; one that goes along with a recording, that often. */
const REST_MS = 400;
const FOLLOW_MS = 5_000;

/** The state of a question, and the last answer to one of its kind: that is shown until there is a newer one. */
export interface Answered {
  readonly question: Question | null;
  readonly asked: Asked | null;
  readonly answer: Answer | null;
  /** The answer is that to an earlier question. */
  readonly isOld: boolean;
}

/** Asks as long as the component is there; `null` asks nothing. */
export function useAnswer(page: Page, question: Question | null): Answered {
  const { desk } = page;
  const key = question === null ? null : bodyOf(question);
  useEffect(() => (question === null ? undefined : desk.jobs.want(question)), [desk, key]);
  const [asked] = usePick(desk.store, (state) => [key === null ? null : (state.asked.get(key) ?? null)] as const);
  const last = useRef<{ readonly kind: string; readonly answer: Answer } | null>(null);
  if (question !== null && asked?.state === "done") {
    last.current = { kind: question.kind, answer: asked.answer };
  }
  const answer = question !== null && last.current?.kind === question.kind ? last.current.answer : null;
  return { question, asked, answer, isOld: answer !== null && asked?.state !== "done" };
}

/** The times that are asked for, as soon as they rest; `null`: nothing is selected. Of traces that grow, a window that goes along is asked for every few
 * seconds, and all of them as far as they went when the user asked for that: `again` wants it anew. */
export function useTimes(page: Page, scope: Scope): { readonly times: Options | null; readonly again: () => void } {
  const [isLive, follows] = usePick(page.store, (state) => [isRecording(state.status), scope === "window" && state.follow.isOn] as const);
  const [view, selection] = usePick(page.store, (state) => [scope === "window" && !follows ? state.view : null, scope === "selection" ? state.selection : null] as const);
  const [count, again] = useReducer((before: number) => before + 1, 0);
  const all = useMemo(() => (isLive && scope === "all" ? soFar(page) : {}), [page, isLive, scope, count]);
  const along = useAlong(page, follows);
  const now = scope === "all" ? all : follows ? along : timesOf(scope, view, selection);
  const text = now === null ? null : bodyOf({ kind: "", options: now });
  const [rested, rest] = useState({ scope, now, text });
  useEffect(() => {
    if (text === rested.text && scope === rested.scope) {
      return undefined;
    }
    // Another scope is asked for at once: the user has chosen it.
    const timer = setTimeout(() => rest({ scope, now, text }), scope === rested.scope && rested.now !== null ? REST_MS : 0);
    return () => clearTimeout(timer);
  }, [scope, text, rested]);
  return { times: rested.scope === scope ? rested.now : null, again: () => again(0) };
}

/** All that there is of traces that grow. */
function soFar({ store }: Page): Options {
  const { status } = store.state;
  const live = status?.live ?? null;
  return status === null || live === null ? {} : { begin_ns: status.extent.begin, end_ns: live.watermark };
}

/** The window that goes along, as it was at the latest look: not while an answer is under way, as no answer would ever be seen. */
function useAlong({ store, desk }: Page, follows: boolean): Options | null {
  const [times, look] = useState<Options | null>(null);
  useEffect(() => {
    if (!follows) {
      return undefined;
    }
    const isAsked = (): boolean => [...desk.store.state.asked.values()].some(({ state }) => state === "asking" || state === "waiting" || state === "running");
    look(timesOf("window", store.state.view, null));
    const timer = setInterval(() => (isAsked() ? undefined : look(timesOf("window", store.state.view, null))), FOLLOW_MS);
    return () => {
      clearInterval(timer);
      look(null);
    };
  }, [store, desk, follows]);
  return times;
}

/** Of which time of traces that grow an answer is, and how one gets that of all that there is now. */
export function OfWhen({ page, times, again }: { readonly page: Page; readonly times: Options | null; readonly again: () => void }): JSX.Element | null {
  const [isLive, scope] = usePick(page.store, (state) => [isRecording(state.status), state.lens.scope, state.timeStyle] as const);
  const [begin, end] = [times?.["begin_ns"], times?.["end_ns"]];
  if (!isLive || typeof begin !== "bigint" || typeof end !== "bigint") {
    return null;
  }
  const clock = clockOf(page.store.state);
  const text = (time: bigint): string => timeText(clock, nanos(time), 3);
  return (
    <span class="of-when faint">
      from {text(begin)} to {text(end)}
      {scope === "all" ? (
        <button type="button" class="button" title="Asks again of all that was recorded meanwhile" onClick={again}>
          Up to now
        </button>
      ) : null}
    </span>
  );
}

/** Chooses of which time. */
export function ScopeChoice({ page }: { readonly page: Page }): JSX.Element {
  const [scope] = usePick(page.store, (state) => [state.lens.scope] as const);
  return (
    <span class="scopes" role="radiogroup" aria-label="Of which time">
      {SCOPES.map(([name, title]) => (
        <button
          key={name}
          type="button"
          role="radio"
          class="scope"
          aria-checked={scope === name}
          onClick={() => page.store.update((state) => withLens(state, { scope: name }))}
        >
          {title}
        </button>
      ))}
    </span>
  );
}

/** Offers to show the selection. */
export function ShowSelection({ page }: { readonly page: Page }): JSX.Element | null {
  const [selection, view] = usePick(page.store, (state) => [state.selection, state.view] as const);
  if (selection === null || (view !== null && view.begin === selection.begin && view.span === selection.span)) {
    return null;
  }
  return (
    <button type="button" class="button" title="Z" onClick={() => page.store.update((state) => wentTo(state, selection))}>
      Show the selection
    </button>
  );
}

/** How far a question is, why there is no answer, and the advice; nothing once there is one. */
export function Waiting({ page, answered, idle }: { readonly page: Page; readonly answered: Answered; readonly idle: string }): JSX.Element | null {
  const { question, asked } = answered;
  const { jobs } = page.desk;
  if (question === null) {
    return <Words why={idle} todo="" />;
  }
  switch (asked?.state) {
    case "done":
      return null;
    case "failed":
      return (
        <Failed failure={asked.failure}>
          <button type="button" class="button" onClick={() => jobs.again(question)}>
            Ask again
          </button>
        </Failed>
      );
    case "cancelled":
      return (
        <p class="job" role="status">
          <span>This was cancelled.</span>
          <button type="button" class="button" onClick={() => jobs.again(question)}>
            Ask again
          </button>
        </p>
      );
    default:
      return <Progress asked={asked ?? { state: "asking" }} cancel={() => jobs.cancel(question)} />;
  }
}

/** Why something is missing, and the advice. */
export function Failed({ failure, children }: { readonly failure: Failure; readonly children?: JSX.Element }): JSX.Element {
  return (
    <p class="job bad" role="alert">
      <strong>{sentence(failure.message)}</strong> <span>{adviceFor(failure.code)}</span>
      {children}
    </p>
  );
}

export function Words({ why, todo }: { readonly why: string; readonly todo: string }): JSX.Element {
  return (
    <p class="job" role="status">
      <strong>{why}</strong> <span>{todo}</span>
    </p>
  );
}

function Progress({ asked, cancel }: { readonly asked: Asked; readonly cancel: () => void }): JSX.Element {
  const part = asked.state === "running" && asked.total > 0 ? asked.done / asked.total : undefined;
  return (
    <p class="job" role="status">
      <progress aria-label="Read for this" max={1} {...(part === undefined ? {} : { value: part })} />
      <span>{progressText(asked)}</span>
      <button type="button" class="button" onClick={cancel}>
        Cancel
      </button>
    </p>
  );
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
