// Canvases as sharp as the screen, drawn once for each picture that the screen shows.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";
import { SURFACES, css, type Theme } from "../model/palette.ts";
import type { Box, Pen, Tools } from "../draw/pen.ts";
import { StripSheet } from "../draw/strip.ts";
import type { Store } from "../state/store.ts";
import { cssPx, devicePixels, type CssPx } from "../units/screen.ts";

/** How large a canvas is, in CSS pixels, and how many device pixels one of them has. */
export interface CanvasSize {
  readonly width: CssPx;
  readonly height: CssPx;
  readonly ratio: number;
}

/** Calls `changed` with the size of an element, now and whenever it changes. */
export function useSize(element: RefObject<HTMLElement | null>, changed: (size: CanvasSize) => void): void {
  // Before the first picture: its content depends on that.
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) {
      return undefined;
    }
    const tell = (): void => changed({ width: cssPx(current.clientWidth), height: cssPx(current.clientHeight), ratio: window.devicePixelRatio });
    const observer = new ResizeObserver(tell);
    observer.observe(current);
    // Moving the window to another screen changes its ratio, not its size.
    window.addEventListener("resize", tell);
    tell();
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", tell);
    };
  }, [element]);
}

/** Draws before the next picture of the screen when something that is drawn has changed: one of the `parts`. */
export function useDrawing<S>(store: Store<S>, parts: (state: S) => readonly unknown[], draw: (state: S) => void): void {
  const latest = useRef({ parts, draw });
  latest.current = { parts, draw };
  useEffect(() => {
    let drawn: readonly unknown[] = [];
    let asked: number | null = null;
    const ask = (): void => {
      asked ??= requestAnimationFrame(() => {
        asked = null;
        const now = latest.current.parts(store.state);
        if (now.length !== drawn.length || now.some((part, index) => !Object.is(part, drawn[index]))) {
          drawn = now;
          latest.current.draw(store.state);
        }
      });
    };
    ask();
    const end = store.subscribe(ask);
    return () => {
      end();
      if (asked !== null) {
        cancelAnimationFrame(asked);
      }
    };
  }, [store]);
}

/** A canvas with all that drawing needs. */
export interface Board {
  readonly pen: Pen;
  readonly tools: Tools;
  readonly sheet: StripSheet;
  readonly width: number;
  readonly height: number;
  /** Draws on the uppermost pixels only. */
  within(height: number, draw: () => void): void;
}

/** The state of a canvas that is kept from one picture to the next. */
export class BoardMaker {
  private readonly sheet = new StripSheet();
  private strips: HTMLCanvasElement | null = null;
  private hatches: { readonly theme: Theme; readonly hatch: Tools["hatch"] } | null = null;

  /** The canvas in its size, `null` while it has none. It is black until all of it is painted, which the caller does at once. */
  prepare(canvas: HTMLCanvasElement | null, size: CanvasSize, theme: Theme): Board | null {
    const [width, height] = [devicePixels(size.width, size.ratio), devicePixels(size.height, size.ratio)];
    // Nothing below it has to be blended with it.
    const pen = canvas?.getContext("2d", { alpha: false }) ?? null;
    if (canvas === null || pen === null || width <= 0 || height <= 0) {
      return null;
    }
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const within: Board["within"] = (high, draw) => {
      pen.save();
      pen.beginPath();
      pen.rect(0, 0, width, high);
      pen.clip();
      draw();
      pen.restore();
    };
    return { pen, tools: this.tools(pen, theme), sheet: this.sheet, width, height, within };
  }

  private tools(pen: CanvasRenderingContext2D, theme: Theme): Tools {
    const strips = (this.strips ??= document.createElement("canvas"));
    if (this.hatches?.theme !== theme) {
      this.hatches = { theme, hatch: { building: hatch(pen, theme, 6, 0.5), unknown: hatch(pen, theme, 4, 0.9) } };
    }
    return {
      seal: () => seal(strips, this.sheet),
      blit: (top, rows, place) => blit(pen, strips, this.sheet.width, top, rows, place),
      hatch: this.hatches.hatch,
    };
  }
}

/** Puts the memory of the strips on a canvas of their own, from which they are copied. */
function seal(strips: HTMLCanvasElement, sheet: StripSheet): void {
  if (sheet.rows === 0 || sheet.width === 0) {
    return;
  }
  if (strips.width !== sheet.width || strips.height < sheet.rows) {
    strips.width = sheet.width;
    strips.height = sheet.rows;
  }
  const bytes = new Uint8ClampedArray(sheet.pixels.buffer, 0, sheet.rows * sheet.width * 4);
  strips.getContext("2d", { willReadFrequently: true })?.putImageData(new ImageData(bytes, sheet.width, sheet.rows), 0, 0);
}

function blit(pen: CanvasRenderingContext2D, strips: HTMLCanvasElement, width: number, top: number, rows: number, place: Box): void {
  pen.imageSmoothingEnabled = false;
  pen.drawImage(strips, 0, top, width, rows, place.x, place.y, place.width, place.height);
}

/** Lines from the lower left to the upper right, as a pattern. */
function hatch(pen: CanvasRenderingContext2D, theme: Theme, apart: number, strength: number): Pen["fillStyle"] {
  const tile = document.createElement("canvas");
  const size = Math.round(apart * window.devicePixelRatio);
  tile.width = size;
  tile.height = size;
  const own = tile.getContext("2d");
  if (own === null) {
    return "transparent";
  }
  own.strokeStyle = css(SURFACES[theme].faint);
  own.globalAlpha = strength;
  own.lineWidth = Math.max(1, size / 8);
  own.beginPath();
  for (const shift of [-size, 0, size]) {
    own.moveTo(shift, size);
    own.lineTo(shift + size, 0);
  }
  own.stroke();
  return pen.createPattern(tile, "repeat") ?? "transparent";
}
