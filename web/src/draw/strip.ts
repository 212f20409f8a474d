// A strip of pixels: as wide as the canvas, and a few rows high, which become as high as the track when it is put on the canvas. The content of
// a track is written here pixel by pixel, because a thousand rectangles for each of sixty tracks are slower by far.

/** Rows of the strip of a track with bars. */
export const STRIP_ROWS = 16;

/** A part of memory that is shared by all strips of a picture. */
export class Strip {
  readonly pixels: Uint32Array;
  readonly width: number;
  readonly rows: number;

  constructor(pixels: Uint32Array, width: number, rows: number) {
    this.pixels = pixels;
    this.width = width;
    this.rows = rows;
  }

  /** Paints columns from `from` to before `to`, rows from `top` to before `bottom`; columns and rows outside of the strip are left out. */
  fill(from: number, to: number, top: number, bottom: number, colour: number): void {
    const left = from < 0 ? 0 : from;
    const right = to > this.width ? this.width : to;
    const end = (bottom > this.rows ? this.rows : bottom) * this.width;
    // Most rectangles are a pixel or two wide: for these a loop is quicker than to ask the array to fill itself.
    if (right - left <= 4) {
      for (let x = left; x < right; x++) {
        for (let at = (top < 0 ? 0 : top) * this.width + x; at < end; at += this.width) {
          this.pixels[at] = colour;
        }
      }
      return;
    }
    for (let at = (top < 0 ? 0 : top) * this.width; at < end; at += this.width) {
      this.pixels.fill(colour, at + left, at + right);
    }
  }

  /** The color of a pixel; 0 is transparent. */
  at(x: number, row: number): number {
    return this.pixels[row * this.width + x] ?? 0;
  }
}

/** Memory for the strips of one picture, one below the other. It is used again for the next picture. */
export class StripSheet {
  width = 0;
  pixels: Uint32Array<ArrayBuffer> = new Uint32Array(0);
  private used = 0;

  /** Begins a picture; all of its strips have so many rows together. */
  begin(width: number, rows: number): void {
    const size = width * rows;
    if (this.pixels.length < size) {
      this.pixels = new Uint32Array(size);
    } else {
      this.pixels.fill(0, 0, this.used * this.width);
    }
    this.width = width;
    this.used = 0;
  }

  /** The next strip, which is empty, and in which row of the sheet it begins. */
  next(rows: number): { readonly strip: Strip; readonly top: number } {
    const top = this.used;
    this.used += rows;
    const pixels = this.pixels.subarray(top * this.width, this.used * this.width);
    return { strip: new Strip(pixels, this.width, rows), top };
  }

  /** Rows that strips were taken of. */
  get rows(): number {
    return this.used;
  }
}
