// Why something was refused, in one sentence, and the advice.

import type { JSX } from "preact";
import type { Refusal } from "../../state/record.ts";

/** In the place where it was asked for. */
export function Refused({ refusal, place, id }: { readonly refusal: Refusal | null; readonly place: Refusal["place"]; readonly id?: string }): JSX.Element {
  return (
    <div role="alert" {...(id === undefined ? {} : { id })}>
      {refusal?.place === place ? (
        <p class="record-refusal">
          <strong class={`bad-text${refusal.why.includes("\n") ? " lines" : ""}`}>{refusal.why}</strong> {refusal.todo}
        </p>
      ) : null}
    </div>
  );
}
