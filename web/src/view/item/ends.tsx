// The arguments and the result of a duration or a call: all fields of the events at its begin and at its end.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiFault } from "../../api/client.ts";
import { askEnd } from "../../api/ends.ts";
import type { Track } from "../../model/catalogue.ts";
import type { End, Side } from "../../model/ends.ts";
import type { RunItem } from "../../model/items.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { EventFields } from "./fields.tsx";
import { sentence } from "./picker.ts";

type Told = End | { readonly kind: "asking" } | { readonly kind: "failed"; readonly why: string };

const ASKING: Told = { kind: "asking" };

export function Ends({ page, run, track }: { readonly page: Page; readonly run: RunItem; readonly track: Track }): JSX.Element {
  return (
    <>
      {run.beginKnown ? <EndView page={page} run={run} track={track} side="begin" /> : null}
      {run.endKnown && run.end > run.begin ? <EndView page={page} run={run} track={track} side="end" /> : null}
    </>
  );
}

interface EndOptions {
  readonly page: Page;
  readonly run: RunItem;
  readonly track: Track;
  readonly side: Side;
}

function EndView({ page, run, track, side }: EndOptions): JSX.Element {
  // Which tracks of events there are is known once all is read.
  const [isComplete] = usePick(page.store, ({ status }) => [status?.state === "complete"] as const);
  const told = useEnd(page, run, track, side, isComplete);
  const title = side === "begin" ? "At its begin" : "At its end";
  if (told.kind === "event") {
    return (
      <section class="ends" aria-label={title}>
        <h3>
          {title}:{" "}
          <button type="button" class="plain link" onClick={() => page.picker.go({ track: told.track, time: told.item.time })}>
            {told.item.value.label}
          </button>
        </h3>
        <EventFields item={told.item} />
      </section>
    );
  }
  return (
    <section class="ends" aria-label={title} aria-busy={told.kind === "asking"}>
      <h3>{title}</h3>
      <p class={told.kind === "failed" ? "words bad" : "faint"}>{wordsOf(told, isComplete)}</p>
    </section>
  );
}

function wordsOf(told: Exclude<Told, { readonly kind: "event" }>, isComplete: boolean): string {
  switch (told.kind) {
    case "asking":
      return "The event is being asked for.";
    case "failed":
      return told.why;
    case "unknown":
      return told.count === 0 ? (isComplete ? "No event of these traces is at that time." : "The event is not known yet: not all of the traces is read.") : `${told.count} events are at that time: which of them belongs to this is not known.`;
  }
}

function useEnd({ client, store }: Page, run: RunItem, track: Track, side: Side, isComplete: boolean): Told {
  const [told, tell] = useState<Told>(ASKING);
  useEffect(() => {
    const asking = new AbortController();
    tell(ASKING);
    askEnd(client, run, side, track, store.state.catalogue.tracks, asking.signal).then(
      (end) => (asking.signal.aborted ? undefined : tell(end)),
      (error: unknown) => (asking.signal.aborted ? undefined : tell({ kind: "failed", why: sentence(error instanceof ApiFault ? error.message : String(error)) })),
    );
    return () => asking.abort();
  }, [client, track.id, side === "begin" ? run.begin : run.end, run.value.label, isComplete]);
  return told;
}
