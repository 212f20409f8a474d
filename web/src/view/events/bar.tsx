// The bar at the side of the list: its height is all of the traces' time, its knob is when the first row on the screen was.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { timeText } from "../../model/clock.ts";
import { timeOf } from "../../model/reel.ts";
import { clockOf } from "../../state/viewer.ts";
import { nanos, type Nanos } from "../../units/time.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";

/** Parts of the bar that are told apart; and the least that the knob has. */
const STEPS = 10_000;
const KNOB_MIN_PART = 0.06;

export function TimeBar({ page }: { readonly page: Page }): JSX.Element {
  const { events, store } = page;
  const [reel, top, room] = usePick(events.store, (state) => [state.reel, state.top, state.room] as const);
  const [extent] = usePick(store, (state) => [state.status?.extent ?? null, state.timeStyle] as const);
  const isHeld = useRef(false);
  const time = timeOf(reel, top) ?? extent?.begin ?? nanos(0);
  const span = extent === null ? 0n : extent.end - extent.begin;
  const partOf = (at: Nanos): number => (extent === null || span <= 0n ? 0 : Number(((at - extent.begin) * BigInt(STEPS)) / span) / STEPS);
  const [part, last] = [partOf(time), partOf(timeOf(reel, top + room - 1) ?? time)];
  const size = Math.min(1, Math.max(KNOB_MIN_PART, last - part));
  const letGo = (): void => {
    isHeld.current = false;
  };
  const go = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = (event.clientY - box.top) / Math.max(1, box.height);
    const step = BigInt(Math.round(Math.min(1, Math.max(0, at)) * STEPS));
    if (extent !== null) {
      events.toTime(nanos(extent.begin + (span * step) / BigInt(STEPS)));
    }
  };
  return (
    <div
      class="event-bar"
      role="scrollbar"
      aria-label="Time of the first row"
      aria-orientation="vertical"
      aria-controls="panel-drawer"
      aria-valuemin={0}
      aria-valuemax={STEPS}
      aria-valuenow={Math.round(part * STEPS)}
      aria-valuetext={timeText(clockOf(store.state), time, 3)}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        isHeld.current = true;
        go(event);
      }}
      onPointerMove={(event) => isHeld.current && go(event)}
      onPointerUp={letGo}
      onPointerCancel={letGo}
      onLostPointerCapture={letGo}
    >
      <div class="event-knob" style={{ top: `${Math.min(part, 1 - size) * 100}%`, height: `${size * 100}%` }} />
    </div>
  );
}
