// An edge that the user moves to make something larger or smaller: with the pointer, or with the arrow keys.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

const KEY_STEP = 16;

export interface EdgeOptions {
  /** The name of what it sizes. */
  readonly name: string;
  readonly axis: "x" | "y";
  /** Whether it grows to the right and downwards, or the other way. */
  readonly sign: 1 | -1;
  /** The size on the screen: the user may not have chosen one, and a small window makes it smaller. */
  readonly size: number;
  readonly resize: (size: number) => void;
  /** Makes it as large as its content, on a double click and on Enter. */
  readonly fit?: () => void;
  readonly hint?: string;
}

export function Edge({ name, axis, sign, size, resize, fit, hint }: EdgeOptions): JSX.Element {
  const held = useRef<{ at: number; size: number } | null>(null);
  const letGo = (): void => {
    held.current = null;
  };
  const placeOf = (event: PointerEvent): number => (axis === "x" ? event.clientX : event.clientY);
  const [less, more] = axis === "x" ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  return (
    <div
      class="edge"
      role="separator"
      tabIndex={0}
      title={hint}
      aria-label={`Size: ${name}`}
      aria-orientation={axis === "x" ? "vertical" : "horizontal"}
      aria-valuenow={size}
      onPointerDown={(event) => {
        event.preventDefault();
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        held.current = { at: placeOf(event), size };
      }}
      onPointerMove={(event) => {
        if (held.current !== null && placeOf(event) !== held.current.at) {
          resize(held.current.size + sign * (placeOf(event) - held.current.at));
        }
      }}
      onPointerUp={letGo}
      onPointerCancel={letGo}
      onLostPointerCapture={letGo}
      onDblClick={() => fit?.()}
      onKeyDown={(event) => {
        if (event.key === less || event.key === more) {
          event.preventDefault();
          event.stopPropagation();
          resize(size + sign * (event.key === more ? KEY_STEP : -KEY_STEP));
        } else if (event.key === "Enter" && fit !== undefined) {
          event.preventDefault();
          event.stopPropagation();
          fit();
        }
      }}
    />
  );
}
