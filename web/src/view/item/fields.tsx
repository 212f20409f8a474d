// The fields of an event as lines of a table, and buttons that copy.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { FIELD_LINES_MAX, fieldLines, type FieldLine } from "../../model/facts.ts";
import type { EventItem } from "../../model/items.ts";
import { copyText } from "../leaving.ts";
import { counted } from "../../units/counted.ts";

export function EventFields({ item: { event, bases } }: { readonly item: EventItem }): JSX.Element {
  if (event === null) {
    return <p class="faint">Which event of the trace this is cannot be told: several of its kind are at that time.</p>;
  }
  const lines = fieldLines(event, bases);
  const left = lines.length - FIELD_LINES_MAX;
  return (
    <>
      <table class="fields-of">
        <tbody>
          {lines.slice(0, FIELD_LINES_MAX).map((line, index) => (
            <FieldRow key={index} line={line} />
          ))}
        </tbody>
      </table>
      {left <= 0 ? null : <p class="faint">{counted(left, "more is not shown; a copy of all has it", "more are not shown; a copy of all has them")}.</p>}
    </>
  );
}

function FieldRow({ line }: { readonly line: FieldLine }): JSX.Element {
  const { name, text, type, hint, copy, depth } = line;
  const isHead = text === null && depth === 0;
  return (
    <tr class={isHead ? "head" : ""}>
      <th scope="row" colSpan={isHead ? 2 : 1} style={{ paddingLeft: `${Math.max(0, depth - 1) * 12}px` }}>
        {name}
      </th>
      {isHead ? null : (
        <td title={hint === "" ? type : `${type}, ${hint}`}>
          {text} <span class="type">{type}</span>
        </td>
      )}
      <td>
        <CopySign text={copy} what={name} />
      </td>
    </tr>
  );
}

export function CopySign({ text, what }: { readonly text: string; readonly what: string }): JSX.Element {
  return (
    <Copy text={text} what={what} isSign>
      <svg width="12" height="12" viewBox="0 0 12 12" fill="none" stroke="currentColor" aria-hidden="true">
        <path d="M4 8H1.5V1.5H8V4M4 4h6.5v6.5H4z" />
      </svg>
    </Copy>
  );
}

interface CopyOptions {
  readonly text: string;
  readonly what: string;
  readonly isSign?: boolean;
  readonly children: ComponentChildren;
}

/** A button that copies something, and says so. */
export function Copy({ text, what, isSign = false, children }: CopyOptions): JSX.Element {
  const [copied, setCopied] = useState<{ readonly text: string; readonly isDone: boolean } | null>(null);
  const isSaid = copied?.text === text;
  const said = !isSaid ? children : copied.isDone ? (isSign ? "✓" : "Copied") : isSign ? "✗" : "Not copied";
  return (
    <button
      type="button"
      class={isSign ? "plain copy" : "button"}
      aria-label={isSign ? `Copy ${what}` : undefined}
      title={`Copy ${what}`}
      onClick={() => void copyText(text).then((isDone) => setCopied({ text, isDone }))}
    >
      {said}
    </button>
  );
}
