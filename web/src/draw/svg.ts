// Drawings as SVG: a pen that writes down the drawing of a canvas, so that the screen and a file come from the same code.
//
// Rectangles of one style that follow each other are one path, as a timeline has ten thousands of them.

import type { Box, Pen, Tools } from "./pen.ts";
import type { StripSheet } from "./strip.ts";

/** How wide a text is in a font; without a canvas it is a guess. */
export type Measure = (text: string, font: string) => number;

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "#000";
  strokeStyle: Pen["strokeStyle"] = "#000";
  lineWidth = 1;
  font = "10px sans-serif";
  textBaseline: CanvasTextBaseline = "alphabetic";
  textAlign: CanvasTextAlign = "start";
  globalAlpha = 1;
  private readonly measure: Measure;
  private readonly parts: string[] = [];
  /** Rectangles that wait for one of another style. */
  private style = "";
  private rects: string[] = [];
  private path: string[] = [];

  constructor(measure: Measure) {
    this.measure = measure;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.rect(this.fillOf(), x, y, width, height);
  }

  /** The paper is white where nothing is: nothing has to be taken away. */
  clearRect(): void {
    return undefined;
  }

  fillText(text: string, x: number, y: number): void {
    this.flush();
    const [, size = "10", family = "sans-serif"] = /([\d.]+)px (.*)$/.exec(this.font) ?? [];
    const weight = /^bold|^[5-9]00/.test(this.font) ? ' font-weight="bold"' : "";
    const anchor = this.textAlign === "right" || this.textAlign === "end" ? ' text-anchor="end"' : this.textAlign === "center" ? ' text-anchor="middle"' : "";
    const baseline = BASELINES[this.textBaseline] ?? "";
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" font-size="${size}" font-family="${escaped(family)}"${weight}${anchor}${baseline} ${this.fillOf()}>${escaped(text)}</text>`);
  }

  measureText(text: string): TextMetrics {
    return { width: this.measure(text, this.font) } as TextMetrics;
  }

  beginPath(): void {
    this.path = [];
  }

  moveTo(x: number, y: number): void {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.path.push(`L${short(x)} ${short(y)}`);
  }

  stroke(): void {
    this.flush();
    const opacity = this.globalAlpha === 1 ? "" : ` stroke-opacity="${short(this.globalAlpha)}"`;
    this.parts.push(`<path d="${this.path.join("")}" fill="none" stroke="${escaped(String(this.strokeStyle))}" stroke-width="${short(this.lineWidth)}"${opacity}/>`);
  }

  /** A rectangle that is filled as `style` says. */
  rect(style: string, x: number, y: number, width: number, height: number): void {
    if (style !== this.style) {
      this.flush();
      this.style = style;
    }
    this.rects.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`);
  }

  /** All that was drawn, in a place of its own: parts outside of it are cut. */
  drawn(place: Box): string {
    this.flush();
    const { x, y, width, height } = place;
    return `<svg x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" overflow="hidden">${this.parts.join("\n")}</svg>`;
  }

  private fillOf(): string {
    return `fill="${escaped(String(this.fillStyle))}"${this.globalAlpha === 1 ? "" : ` fill-opacity="${short(this.globalAlpha)}"`}`;
  }

  private flush(): void {
    if (this.rects.length > 0) {
      this.parts.push(`<path ${this.style} d="${this.rects.join("")}" shape-rendering="crispEdges"/>`);
      this.rects = [];
    }
  }
}

const BASELINES: Partial<Record<CanvasTextBaseline, string>> = { middle: ' dominant-baseline="central"', top: ' dominant-baseline="hanging"' };

/** Tools that put strips on a drawing as rectangles, instead of pixels. */
export function svgTools(pen: SvgPen, sheet: StripSheet): Tools {
  return {
    seal: () => undefined,
    blit: (top, rows, place) => {
      const high = place.height / rows;
      for (const [colour, runs] of runsOf(sheet, top, rows)) {
        const style = `fill="${cssOf(colour)}"`;
        const wide = place.width / sheet.width;
        runs.forEach((run) => pen.rect(style, place.x + run.from * wide, place.y + run.top * high, (run.to - run.from) * wide, (run.bottom - run.top) * high));
      }
    },
    hatch: { building: "url(#building)", unknown: "url(#unknown)" },
  };
}

/** A part of a strip that has one color: columns from `from` to before `to`, rows from `top` to before `bottom`. */
export interface Run {
  readonly from: number;
  readonly to: number;
  readonly top: number;
  bottom: number;
}

/** A strip's pixels as rectangles, as few as follow from its rows, by their colors. */
export function runsOf(sheet: StripSheet, top: number, rows: number): ReadonlyMap<number, readonly Run[]> {
  const found = new Map<number, Run[]>();
  let above = new Map<number, { readonly run: Run; readonly colour: number }>();
  for (let row = 0; row < rows; row++) {
    const here: typeof above = new Map();
    const begin = (top + row) * sheet.width;
    for (let x = 0; x < sheet.width; ) {
      const colour = sheet.pixels[begin + x] ?? 0;
      let end = x + 1;
      while (end < sheet.width && sheet.pixels[begin + end] === colour) {
        end++;
      }
      if (colour >>> 24 !== 0) {
        const before = above.get(x);
        const run = before?.colour === colour && before.run.to === end ? before.run : begun(found, colour, x, end, row);
        run.bottom = row + 1;
        here.set(x, { run, colour });
      }
      x = end;
    }
    above = here;
  }
  return found;
}

function begun(found: Map<number, Run[]>, colour: number, from: number, to: number, row: number): Run {
  const runs = found.get(colour) ?? [];
  const run = { from, to, top: row, bottom: row + 1 };
  runs.push(run);
  found.set(colour, runs);
  return run;
}

/** A color as canvases keep it, for SVG. */
function cssOf(colour: number): string {
  return `rgb(${colour & 255},${(colour >>> 8) & 255},${(colour >>> 16) & 255})`;
}

/** Whole drawings: parts that are placed beside each other, with the pattern for hatching. */
export function svgDocument(width: number, height: number, ratio: number, faint: string, parts: readonly string[]): string {
  const hatch = (id: string, apart: number, strength: number): string =>
    `<pattern id="${id}" width="${apart}" height="${apart}" patternUnits="userSpaceOnUse"><path d="M0 ${apart}L${apart} 0" stroke="${faint}" stroke-opacity="${strength}"/></pattern>`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width / ratio)}" height="${short(height / ratio)}" viewBox="0 0 ${short(width)} ${short(height)}">`;
  return `${head}\n<defs>${hatch("building", 6 * ratio, 0.5)}${hatch("unknown", 4 * ratio, 0.9)}</defs>\n${parts.join("\n")}\n</svg>\n`;
}

/** As many digits as one sees. */
function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** A text within a document; characters that XML cannot have are left out. */
function escaped(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "")
    .replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);
}
