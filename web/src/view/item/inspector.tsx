// The panel that tells all known facts about the picked item.

import type { JSX } from "preact";
import { hasEnds } from "../../model/ends.ts";
import { factsOf, titleOf, type Fact, type Telling } from "../../model/facts.ts";
import { advice } from "../../model/fault.ts";
import { jsonOf, type TrackItem } from "../../model/items.ts";
import { colourOf, css } from "../../model/palette.ts";
import { slotOfValue } from "../../model/siblings.ts";
import { nameOf } from "../../model/rows.ts";
import { shown } from "../../state/item.ts";
import { clockOf } from "../../state/viewer.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { wordsAt } from "../words.ts";
import { Ends } from "./ends.tsx";
import { Copy, CopySign, EventFields } from "./fields.tsx";
import "./item.css";
import { sentence, type Picked } from "./picker.ts";
import { SelectionSums } from "./sums.tsx";

export function Inspector({ page }: { readonly page: Page }): JSX.Element {
  const picked = usePick(page.picker.picked, (state) => state);
  usePick(page.store, (state) => [state.timeStyle, state.status?.extent.begin, state.catalogue.tracks, state.theme, state.colouring, state.connection] as const);
  const [selection] = usePick(page.store, (state) => [state.selection] as const);
  const { item, note } = picked;
  return (
    <div class="inspected" aria-busy={picked.phase === "asking"}>
      {selection === null ? null : <SelectionSums page={page} selection={selection} />}
      {item === null ? null : <Steps page={page} />}
      <p class="note" role="status">
        {note}
      </p>
      {item === null && selection !== null ? null : <Content page={page} picked={picked} />}
    </div>
  );
}

/** The steps to other items from here. */
function Steps({ page }: { readonly page: Page }): JSX.Element {
  const { picker, store } = page;
  return (
    <div class="steps" role="group" aria-label="Go to">
      <Step sign="‹" name="Previous on this track" hint="," act={() => picker.step(-1)} />
      <Step sign="›" name="Next on this track" hint="." act={() => picker.step(1)} />
      <Step sign="⇤" name="Along an arrow to the cause" hint="[" act={() => picker.follow("cause")} />
      <Step sign="⇥" name="Along an arrow to the effect" hint="]" act={() => picker.follow("effect")} />
      <Step sign="⤢" name="Show it" hint="F" act={() => store.update(shown)} />
      <Step sign="×" name="Let go of it" hint="Esc" act={() => store.update((state) => ({ ...state, item: null, itemExtent: null }))} />
    </div>
  );
}

function Step({ sign, name, hint, act }: { readonly sign: string; readonly name: string; readonly hint: string; readonly act: () => void }): JSX.Element {
  return (
    <button type="button" class="button" aria-label={name} title={`${name} (${hint})`} onClick={act}>
      {sign}
    </button>
  );
}

function Content({ page, picked }: { readonly page: Page; readonly picked: Picked }): JSX.Element {
  const { item, track, phase, items, fault } = picked;
  const { state } = page.store;
  const { connection } = state;
  const telling: Telling = { clock: clockOf(state), tracks: state.catalogue.tracks };
  if (item === null) {
    return <Words why="Nothing is picked." todo="Click on something in the timeline, or press Enter on a row: here is then all that is known of it." />;
  }
  if (phase === "absent") {
    return <Words why={`There is no track “${item.track}” in these traces.`} todo="Perhaps the address is of other traces, or the track is not read yet." />;
  }
  if (phase === "failed" && fault !== null) {
    return <Words why={sentence(fault.message)} todo={advice(fault.kind)} isBad />;
  }
  if (phase === "apart" && track !== null) {
    return <Words why={wordsAt(page, state, track, item.time)} todo="What this track shows adds up: there is no single thing to be told of." />;
  }
  const [first, ...others] = items;
  if (phase === "asking" && (connection === "lost" || connection === "refused")) {
    return <Words why="The server does not answer." todo={`${advice(connection === "lost" ? "unreachable" : "token")} Then this is asked for again.`} isBad />;
  }
  if (track === null || phase === "asking") {
    return <Words why="What is there is being asked for." todo={track === null ? "" : wordsAt(page, state, track, item.time)} />;
  }
  if (first === undefined) {
    return <Words why={`There is nothing on ${nameOf(track)} at that time.`} todo="The keys , and . go to what is before and behind it." />;
  }
  return (
    <>
      {picked.complete ? null : <p class="faint">Not all of the traces is read yet: more may become known.</p>}
      <One page={page} item={first} facts={factsOf(first, track, telling)} telling={telling} />
      {hasEnds(first) ? <Ends page={page} run={first} track={track} /> : null}
      {others.length === 0 ? null : <h3>At the same time</h3>}
      {others.map((other, index) => (
        <details key={index}>
          <summary>{titleOf(other, telling)}</summary>
          <One page={page} item={other} facts={factsOf(other, track, telling)} telling={telling} />
        </details>
      ))}
      {picked.more ? <p class="faint">There is more at that time than is told here.</p> : null}
    </>
  );
}

function Words({ why, todo, isBad = false }: { readonly why: string; readonly todo: string; readonly isBad?: boolean }): JSX.Element {
  return (
    <p class={`words${isBad ? " bad" : ""}`} role={isBad ? "alert" : undefined}>
      <strong>{why}</strong> {todo}
    </p>
  );
}

interface OneOptions {
  readonly page: Page;
  readonly item: TrackItem;
  readonly facts: readonly Fact[];
  readonly telling: Telling;
}

/** One thing, with all that is known of it. */
function One({ page, item, facts, telling }: OneOptions): JSX.Element {
  const time = String(item.kind === "event" ? item.time : item.begin);
  return (
    <section class="one">
      <h2>
        <Swatch page={page} item={item} />
        {titleOf(item, telling)}
      </h2>
      <div class="copies">
        <Copy text={time} what="time">
          Copy time
        </Copy>
        <Copy text={wholeOf(item, facts)} what="all as JSON">
          Copy all as JSON
        </Copy>
      </div>
      <table class="facts-of">
        <tbody>
          {facts.map((fact, index) => (
            <FactLine key={index} page={page} fact={fact} />
          ))}
        </tbody>
      </table>
      {item.kind === "event" ? <EventFields item={item} /> : null}
    </section>
  );
}

function Swatch({ page, item }: { readonly page: Page; readonly item: TrackItem }): JSX.Element {
  const { label, kind } = item.value;
  const { theme, colouring, catalogue } = page.store.state;
  return <span class="swatch" aria-hidden="true" style={{ background: css(colourOf(theme, kind, label, slotOfValue(item.value, colouring, catalogue.tracks))) }} />;
}

function FactLine({ page, fact }: { readonly page: Page; readonly fact: Fact }): JSX.Element {
  const { name, text, hint, copy, to, isDoubtful } = fact;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class={isDoubtful ? "doubtful" : ""} title={hint}>
        {to === null ? (
          text
        ) : (
          <button type="button" class="plain link" onClick={() => page.picker.go(to)}>
            {text}
          </button>
        )}
      </td>
      <td>{copy === null ? null : <CopySign text={copy} what={name} />}</td>
    </tr>
  );
}

/** All of a thing, as JSON. */
function wholeOf(item: TrackItem, facts: readonly Fact[]): string {
  if (item.kind === "event" && item.event !== null) {
    return jsonOf(item.event, "lines");
  }
  return JSON.stringify(Object.fromEntries(facts.map(({ name, copy, text }) => [name, copy ?? text])), null, 2);
}
