// The classes of events that programs of the session have: each with a box that switches it, its level, and where its filter runs.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { levelText, whereText, type RecordedClass, type Recording } from "../../model/recording.ts";
import { find, findable } from "../../model/search.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { useLines } from "../rail/lines.ts";
import { VirtualList } from "../rail/virtual.tsx";
import { recordOf } from "./desk.ts";
import type { Draft } from "./form.tsx";
import { Refused } from "./refused.tsx";
import { counted } from "../../units/counted.ts";

const LINE_HEIGHT = 40;
const LINES_MAX = 12;

interface ListOptions {
  readonly page: Page;
  readonly recording: Recording;
  /** Puts a class into the box for patterns. */
  readonly edit: (draft: Draft) => void;
}

export function ClassList({ page, recording, edit }: ListOptions): JSX.Element {
  const { classes, moreClasses } = recording;
  const desk = recordOf(page);
  const [switching, refusal] = usePick(desk.store, (state) => [state.switching, state.refusal] as const);
  const [query, setQuery] = useState("");
  const findables = useMemo(() => classes.map((one) => findable(one, `${one.name} ${levelText(one.level)}`)), [classes]);
  const found = useMemo(() => (query.trim() === "" ? classes : find(findables, query).map((hit) => hit.item)), [findables, query, classes]);
  const { box, shown, step } = useLines(found.length);
  const on = classes.filter(({ isOn }) => isOn).length;
  return (
    <section class="facet" aria-label="Events of the session">
      <div class="facet-head">
        <h3 class="facet-title">
          Events <span class="faint">{`${on.toLocaleString("en")} of ${classes.length.toLocaleString("en")} on`}</span>
        </h3>
      </div>
      <input class="field" type="search" placeholder="Search events" aria-label="Search events of the session" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      <Refused refusal={refusal} place="classes" />
      {found.length === 0 ? (
        <p class="hint">{classes.length === 0 ? "No program that runs has events. C and C++ have them with libkymo, Rust with kymo_tracer." : "Nothing is called like that."}</p>
      ) : (
        <div ref={box} onKeyDown={step}>
          <VirtualList
            items={found}
            height={LINE_HEIGHT}
            linesMax={LINES_MAX}
            keyOf={(one) => one.name}
            label="Events of the session"
            shown={shown}
            render={(one, index) => (
              <Line one={one} index={index} isOn={switching.get(one.name) ?? one.isOn} toggle={(isOn) => void desk.toggle(one.name, isOn)} edit={() => edit({ patterns: one.name, filter: one.filters[0] ?? "" })} />
            )}
          />
        </div>
      )}
      {moreClasses === 0 ? null : <p class="hint">{counted(moreClasses, "more is not listed; names in the boxes above are about it, too", "more are not listed; names in the boxes above are about these, too")}.</p>}
    </section>
  );
}

interface LineOptions {
  readonly one: RecordedClass;
  readonly index: number;
  readonly isOn: boolean;
  readonly toggle: (isOn: boolean) => void;
  readonly edit: () => void;
}

function Line({ one, index, isOn, toggle, edit }: LineOptions): JSX.Element {
  const { name, level, programs, filters, runs } = one;
  const where = whereText(one);
  const detail = `record-class-${index}`;
  return (
    <div class={`choice record-class${isOn ? "" : " out"}`} data-line={index}>
      <input type="checkbox" checked={isOn} aria-label={`Record ${name}`} aria-describedby={detail} onChange={(event) => toggle(event.currentTarget.checked)} />
      <div class="record-lines">
        <button type="button" class="plain choice-name" title={`${name}\nA click puts it into the box above`} aria-label={`Edit ${name}`} onClick={edit}>
          {name}
        </button>
        <span class="record-detail faint" id={detail} title={where === null ? undefined : `${filters.join("\n")}\nThe filter ${where}`}>
          {levelText(level)} · {counted(programs, "program")}
          {filters.length === 0 ? null : <span class="mono"> · {filters.join(" | ")}</span>}
          {where === null ? null : ` · ${SHORT[runs[0] ?? ""] ?? runs.join()}`}
        </span>
      </div>
    </div>
  );
}

/** Where a filter runs, in a word. */
const SHORT: Readonly<Record<string, string>> = { "": "…", native: "native", interpreter: "bytecode", recorder: "recorder", always: "always true", never: "never true" };
