// The place of a tooltip: near the pointer, on the screen, and never below the pointer.

/** A place or a size in CSS pixels. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface TipPlace extends Point {
  /** It is cut where it would be higher. */
  readonly heightMax: number;
}

/** Away from the pointer, and from the edges of the screen. */
const APART = 14;
const EDGE = 6;

/** Where the upper left corner is, for a tooltip of some size: at the right below the pointer if it fits there. */
export function placeTip(pointer: Point, size: Point, screen: Point): TipPlace {
  const right = pointer.x + APART;
  const left = pointer.x - APART - size.x;
  const middle = Math.max(EDGE, Math.min(right, screen.x - EDGE - size.x));
  const x = right + size.x <= screen.x - EDGE ? right : left >= EDGE ? left : middle;
  const [below, above] = [screen.y - EDGE - pointer.y - APART, pointer.y - APART - EDGE];
  // Beside the pointer it may go up as far as it has to; over or under it there is only as much room as there is.
  if (x !== middle || middle === right) {
    const heightMax = screen.y - 2 * EDGE;
    const height = Math.min(size.y, heightMax);
    return { x, y: Math.max(EDGE, Math.min(pointer.y + APART, screen.y - EDGE - height)), heightMax };
  }
  const isBelow = size.y <= below || below >= above;
  const heightMax = Math.max(0, isBelow ? below : above);
  return { x, y: isBelow ? pointer.y + APART : pointer.y - APART - Math.min(size.y, heightMax), heightMax };
}
