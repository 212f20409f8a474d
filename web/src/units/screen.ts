// Lengths on the screen. Canvases have device pixels; the page is laid out in CSS pixels.

/** Device pixels, counted from the left or top edge of a canvas. Fractions lie inside of a pixel. */
export type Px = number & { readonly unit: "px" };

/** CSS pixels. */
export type CssPx = number & { readonly unit: "css px" };

export function px(count: number): Px {
  return count as Px;
}

export function cssPx(count: number): CssPx {
  return count as CssPx;
}

/** As many device pixels as cover `length`, where one CSS pixel has `ratio` of them. */
export function devicePixels(length: CssPx, ratio: number): Px {
  return Math.round(length * ratio) as Px;
}
