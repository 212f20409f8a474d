// The traces that are shown, as the header names them.

import type { Shape } from "./json.ts";

export interface TraceNote {
  readonly name: string;
  readonly path: string | null;
}

/** The server's notes on its traces. Throws a `ShapeFault`. */
export function readTraces(shape: Shape): TraceNote[] {
  return shape.get("traces").list().map((trace) => {
    const path = trace.get("path").given ? trace.get("path").text() : null;
    const name = trace.get("name").given ? trace.get("name").text() : (path ?? "trace");
    return { name: lastOf(name), path };
  });
}

/** The last folder of a path: enough to know it, where a chip has little room. */
function lastOf(path: string): string {
  return path.replace(/[/\\]+$/, "").split(/[/\\]/).at(-1) || path;
}
