// The tab of filters: how filtered-out rows are shown, an expression, and lists to choose of.

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { allBut, isChosen, only, withItem, type Choice } from "../../model/choice.ts";
import { applicationsOf, cpusOf, eventNames, eventsOf, hasIdle, isNamed, namingOf, peopleOf, processEntries, shareOf, subsystemsOf, threadsOf, withSubsystem, type Entry, type Subsystem } from "../../model/facets.ts";
import type { Whose } from "../../model/counts.ts";
import { FILTER_MODES, choosesEvents, isActive, type Facet, type FieldNames, type FilterMode } from "../../model/filter.ts";
import { knowsRuns } from "../../model/filter-threads.ts";
import { adviceFor } from "../../model/jobs.ts";
import { isRecording } from "../../model/live.ts";
import { ownersOf } from "../../model/owners.ts";
import { refiltered, unfiltered } from "../../state/filter.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { countingOf } from "./counting.ts";
import { Expression } from "./expression.tsx";
import { FacetList } from "./facet.tsx";
import "./rail.css";
import { counted } from "../../units/counted.ts";

const MODES: Readonly<Record<FilterMode, string>> = {
  dim: "Rows of other items are paler; lists omit them",
  hide: "Rows of other items are hidden; lists omit them",
  exclude: "Rows of other items are hidden; lists and analyses omit them",
};

export function Filters({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [filter] = usePick(store, (state) => [state.filter] as const);
  useEffect(() => countingOf(page).want(), [page]);
  return (
    <div class="rail-tab">
      <div class="rail-bar">
        <fieldset class="modes">
          <legend class="unseen">What is not chosen</legend>
          {FILTER_MODES.map((mode) => (
            <label key={mode} class={`mode${filter.mode === mode ? " chosen" : ""}`} title={MODES[mode]}>
              <input type="radio" name="filter-mode" checked={filter.mode === mode} onChange={() => store.update((state) => refiltered(state, { mode }))} />
              {mode}
            </label>
          ))}
        </fieldset>
        <button type="button" class="button small" disabled={!isActive(filter)} onClick={() => store.update(unfiltered)}>
          Clear all
        </button>
      </div>
      <Expression page={page} />
      {choosesEvents(filter) ? <p class="hint follow">Rows of events, heat maps, arrows, lists and the overview show only these events. States, durations in rows and counters are told by all of them.</p> : null}
      <Scope page={page} />
      <Facets page={page} />
    </div>
  );
}

/** Where events are counted, and how far that is. */
function Scope({ page }: { readonly page: Page }): JSX.Element {
  const counting = countingOf(page);
  const [isLive] = usePick(page.store, (state) => [isRecording(state.status)] as const);
  const [inWindow, busy, failure] = usePick(counting.store, (state) => [state.inWindow, state.counting, state.failure] as const);
  return (
    <div class="rail-bar faint">
      <label>
        Counts of{" "}
        <select class="field" value={inWindow ? "window" : "all"} onChange={(event) => counting.scope(event.currentTarget.value === "window")}>
          <option value="all">all of the traces</option>
          <option value="window">the window</option>
        </select>
      </label>
      {busy === null ? null : (
        <span role="status">
          <progress value={busy.part} max={1} aria-label="Counted" />
        </span>
      )}
      {isLive && !inWindow && busy === null ? (
        <button type="button" class="plain link" title="Count the events recorded since then, too" onClick={() => counting.recount()}>
          up to now
        </button>
      ) : null}
      {failure === null ? null : (
        <span class="bad-text" role="alert">
          {failure.message}. {adviceFor(failure.code)}{" "}
          <button type="button" class="plain link" onClick={() => counting.again()}>
            Count again
          </button>
        </span>
      )}
    </div>
  );
}

function Facets({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [filter, tracks, catalogue] = usePick(store, (state) => [state.filter, state.catalogue.tracks, state.catalogue] as const);
  const [counts, all] = usePick(countingOf(page).store, (state) => [state.counts, state.all] as const);
  const whose = counts?.whose ?? null;
  const cpus = useMemo(() => cpusOf(tracks, whose), [tracks, whose]);
  const [applications, processes, threads] = useMemo(() => {
    const people = peopleOf(tracks);
    return [applicationsOf(ownersOf(tracks, all?.whose ?? null), whose), processEntries(people, whose), threadsOf(people, whose)] as const;
  }, [tracks, whose, all]);
  const names = useMemo(() => eventNames(catalogue, all), [catalogue, all]);
  const events = useMemo(() => eventsOf(names, counts), [names, counts]);
  const subsystems = useMemo(() => subsystemsOf(names, counts), [names, counts]);
  const naming = useMemo(() => namingOf(names), [names]);
  const isTold = useMemo(() => knowsRuns(tracks), [tracks]);
  const change = <F extends Facet>(facet: F, choice: Choice<F extends "cpus" | "threads" ? number : string> | null): void =>
    store.update((state) => refiltered(state, { [facet]: choice }));
  const plain = <T extends string | number>(facet: "cpus" | "applications" | "processes" | "threads", choice: Choice<T> | null): Pick<ListActions<T>, "shareOf" | "toggle" | "focus" | "clear"> => ({
    shareOf: (entry) => (isChosen(choice, entry.key) ? "all" : "none"),
    toggle: (entry, isIn) => change(facet, withItem(choice, entry.key, isIn) as Choice<never> | null),
    focus: (entry, but) => change(facet, (but ? allBut([entry.key]) : only([entry.key])) as Choice<never> | null),
    clear: choice === null ? null : () => change(facet, null),
  });
  const clearEvents = filter.events === null ? null : () => change("events", null);
  const subsystemOf = (entry: Entry<string>): Subsystem | null => subsystems.find((one) => one.key === entry.key) ?? null;
  return (
    <>
      <FacetList title="CPUs" entries={cpus} {...plain("cpus", filter.cpus)} note={noteFor(cpus, "CPU", filter.names, "cpu")} />
      <FacetList title="Applications" entries={applications} {...plain("applications", filter.applications)} note={applicationNote(applications, filter.names, isTold)} />
      <FacetList title="Processes" entries={processes} {...plain("processes", filter.processes)} note={noteFor(processes, "process", filter.names, "process", isTold)} />
      <FacetList title="Threads" entries={threads} {...plain("threads", filter.threads)} note={[noteFor(threads, "thread", filter.names, "thread", isTold), othersNote(whose, hasIdle(threads))].filter((note) => note !== null).join(" ") || null} />
      <FacetList
        title="Subsystems"
        entries={subsystems}
        shareOf={(entry) => shareOf(filter.events, entry as Subsystem)}
        toggle={(entry, isIn) => {
          const subsystem = subsystemOf(entry);
          if (subsystem !== null) {
            change("events", withSubsystem(filter.events, subsystem, isIn, names));
          }
        }}
        focus={(entry, but) => {
          const own = subsystemOf(entry)?.names ?? [];
          change("events", but ? allBut(own) : only(own));
        }}
        clear={clearEvents}
        note={names.length === 0 ? "No event is known yet." : null}
      />
      <FacetList
        title="Events"
        entries={events}
        shareOf={(entry) => (isChosen(filter.events, entry.key, isNamed) ? "all" : "none")}
        toggle={(entry, isIn) => change("events", withItem(filter.events, entry.key, isIn, naming))}
        focus={(entry, but) => change("events", but ? allBut([entry.key]) : only([entry.key]))}
        clear={clearEvents}
        note={names.length === 0 ? "No event is known yet." : null}
      />
    </>
  );
}

type ListActions<T extends string | number> = Parameters<typeof FacetList<T>>[0];

/** Events that are in no line of the threads. */
function othersNote(whose: Whose | null, isIdleListed: boolean): string | null {
  if (whose === null) {
    return null;
  }
  const { omitted } = whose;
  const parts = [...(omitted === 0 ? [] : [`${counted(omitted, "thread")} with fewer events ${omitted === 1 ? "is" : "are"} not in these numbers`]), ...(whose.idle === 0n || isIdleListed ? [] : [`${counted(whose.idle, "event is", "events are")} of idle CPUs`]), ...(whose.unknown === 0n ? [] : [`of ${whose.unknown.toLocaleString("en")} nobody knows the thread`])];
  return parts.length === 0 ? null : `${parts.join(", ")}.`;
}

function applicationNote(entries: readonly unknown[], names: FieldNames | null, isTold: boolean): string | null {
  if (entries.length === 0) {
    return "These traces do not contain thread names.";
  }
  const lacks = names !== null && [names.thread, names.process, names.processName].every((fields) => fields.length === 0);
  return lacks ? `Events of these traces do not name their threads: ${reachText(isTold)}` : null;
}

/** How far a choice reaches that no field of an event expresses. `isTold`: CPUs tell which threads they ran. */
function reachText(isTold: boolean): string {
  return isTold ? "lists and statistics go by the thread that the CPU ran; rows of events and the overview count all threads." : "this choice applies to rows, but not to lists and statistics.";
}

/** The message for a list that is empty, or that events cannot follow. */
function noteFor(entries: readonly unknown[], what: string, names: FieldNames | null, kind: "cpu" | "process" | "thread", isTold = false): string | null {
  if (entries.length === 0) {
    return `No track of these traces names its ${what}.`;
  }
  const lacks = names !== null && names[kind].length === 0;
  return lacks ? `Events of these traces do not name their ${what}: ${reachText(isTold)}` : null;
}
