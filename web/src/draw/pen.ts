// The calls of a canvas that drawing needs: few enough calls that tests can write them down.

/** A canvas context, as far as it is used. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | "fillStyle"
  | "strokeStyle"
  | "lineWidth"
  | "font"
  | "textBaseline"
  | "textAlign"
  | "globalAlpha"
  | "fillRect"
  | "clearRect"
  | "fillText"
  | "measureText"
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "stroke"
>;

/** The tools that only a page can make. */
export interface Tools {
  /** Puts a part of the sheet of strips on the canvas, so high that it fills the place. */
  blit(top: number, rows: number, place: Box): void;
  /** All strips are painted, none is on the canvas yet. */
  seal(): void;
  /** Lines that say that something is not known. */
  readonly hatch: { readonly building: Pen["fillStyle"]; readonly unknown: Pen["fillStyle"] };
}

/** A rectangle in device pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The longest begin of a text that is not wider than `width`; empty if that is nothing one could read. */
export function fitted(pen: Pick<Pen, "measureText">, text: string, width: number): string {
  if (pen.measureText(text).width <= width) {
    return text;
  }
  let [low, high] = [0, text.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low >= 3 ? `${text.slice(0, low).trimEnd()}…` : "";
}
