// How far a turn of the wheel goes, in any unit that the browser counts in.

const LINE_PX = 16;
const PAGE_PX = 400;

/** Pixels of a turn: down and right are positive. */
export function wheelPixels(event: WheelEvent): { readonly x: number; readonly y: number } {
  const unit = event.deltaMode === 1 ? LINE_PX : event.deltaMode === 2 ? PAGE_PX : 1;
  return { x: event.deltaX * unit, y: event.deltaY * unit };
}

/** By which factor a turn changes the window's span: a notch of a mouse wheel by about a third. */
export function wheelFactor(event: WheelEvent): number {
  const { x, y } = wheelPixels(event);
  const turn = Math.abs(y) >= Math.abs(x) ? y : x;
  return Math.exp(Math.min(300, Math.max(-300, turn)) * 0.0028);
}
