// Whether the window goes along with traces that grow, and how old its end is; held back, how much has come since. A click does the other.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { lagOf } from "../model/follow.ts";
import { behindText, isRecording, sinceText } from "../model/live.ts";
import { toggledFollow } from "../state/live.ts";
import { nanos } from "../units/time.ts";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";
import "./live.css";

export function LiveChip({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [status, follow, connection] = usePick(store, (state) => [state.status, state.follow, state.connection] as const);
  if (status === null || status.live === undefined || status.live === null || connection !== "heard") {
    return null;
  }
  if (!isRecording(status)) {
    return (
      <span class="badge live-chip ended" role="status" title="Nothing more comes: the recorder has ended.">
        ended
      </span>
    );
  }
  const { view } = store.state;
  const behind = behindText(status.live, follow.isOn && view !== null ? lagOf(status.extent, view) : nanos(0));
  const since = follow.left === null ? null : sinceText(follow.left, status);
  const age = behind === null ? "" : ` What is drawn at its end is ${behind}.`;
  const title = follow.isOn ? `The window follows the recording.${age} Space holds it back.` : `The window is held back; the recorder goes on.${behind === null ? "" : ` The traces are ${behind}.`} Space or L follows again.`;
  return (
    <button type="button" class={`badge live-chip ${follow.isOn ? "on" : "off"}`} title={title} onClick={() => store.update(toggledFollow)}>
      {follow.isOn ? (
        <>
          <span class="live-dot" aria-hidden="true">
            ●
          </span>{" "}
          Live{behind === null ? null : <span class="live-more"> · {behind}</span>}
        </>
      ) : (
        <>
          Paused{since === null ? null : <span class="live-more"> · {since} behind</span>}
        </>
      )}
    </button>
  );
}

/** A class that is another one each time that a number changes; none at first. */
export function useFlash(now: bigint | null): string {
  const before = useRef(now);
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (before.current !== now) {
      before.current = now;
      setCount((old) => old + 1);
    }
  }, [now]);
  return count === 0 ? "" : count % 2 === 0 ? "flash-even" : "flash-odd";
}
