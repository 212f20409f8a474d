// Colors: which one a value has, in the dark and in the light.
//
// Seven hues that people with any kind of color vision tell apart (Okabe and Ito), in three lightnesses each. A value's stable hash picks one of them,
// and for threads siblings.ts: a thread has the same color in each window, on each screen and tomorrow. The activity of a thread has colors of its own,
// which differ in lightness too. A color is never all that tells two things apart: labels and the status line do as well.

/** Red, green, blue from 0 to 255. */
export type Rgb = readonly [number, number, number];

export type Theme = "light" | "dark";

/** Blue, orange, green, vermilion, sky, purple, yellow. */
export const HUES: readonly Rgb[] = [
  [0, 114, 178],
  [230, 159, 0],
  [0, 158, 115],
  [213, 94, 0],
  [86, 180, 233],
  [204, 121, 167],
  [240, 228, 66],
];

const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];

/** The colors around values. */
export interface Surface {
  readonly background: Rgb;
  readonly lane: Rgb;
  readonly line: Rgb;
  readonly ink: Rgb;
  readonly faint: Rgb;
  readonly accent: Rgb;
}

/** The color of missing data. */
export const MISSING: Readonly<Record<Theme, Rgb>> = { light: [200, 40, 30], dark: [255, 120, 100] };

export const SURFACES: Readonly<Record<Theme, Surface>> = {
  light: { background: WHITE, lane: [244, 246, 248], line: [214, 219, 225], ink: [28, 33, 40], faint: [92, 102, 114], accent: [0, 90, 156] },
  dark: { background: [22, 25, 30], lane: [30, 34, 41], line: [56, 62, 72], ink: [230, 234, 240], faint: [152, 161, 174], accent: [110, 190, 240] },
};

/** Things that look the same in every trace, by the begin of their names: their color, and how high their bar is, so that
 * running threads stand out of waiting ones also where colors are not seen. */
const NAMED: ReadonlyArray<readonly [string, Rgb, number]> = [
  ["running", [0, 158, 115], 1],
  ["preempted", [230, 159, 0], 0.65],
  ["waiting for a cpu", [240, 200, 40], 0.65],
  ["runnable", [240, 200, 40], 0.65],
  ["ready", [240, 200, 40], 0.65],
  ["new", [240, 200, 40], 0.65],
  ["uninterruptible", [213, 94, 0], 0.3],
  ["blocked", [110, 60, 135], 0.3],
  ["sleeping", [110, 60, 135], 0.3],
  ["waiting", [110, 60, 135], 0.3],
  ["off the cpu", [110, 60, 135], 0.3],
  ["stopped", [128, 128, 128], 0.3],
  ["idle", [168, 176, 186], 0.15],
  ["unknown", [128, 128, 128], 0.3],
  ["lost", [200, 40, 40], 1],
];

/** Kinds of values with names that mean the same in every trace. */
const NAMED_KINDS: ReadonlySet<string> = new Set(["doing", "state"]);

/** The things that have colors of their own where CPUs run threads: each thread by its name, or all threads of an application. */
export type Colouring = "thread" | "application";

/** The properties of a value that decide on its color. */
export interface Coloured {
  /** A stable hash of the value's identity. */
  readonly colour: number;
  readonly owner?: { readonly colour: number | null };
}

/** There are as many colors: a number picks one of them. Neighbors differ in hue. */
export const SLOTS = 3 * HUES.length;

/** The number of the color that a stable hash picks. */
export function slotOf(hash: number): number {
  return scramble(hash) % SLOTS;
}

/** The color of a value: `slot` is the number of its color, if it has none of its own. */
export function colourOf(theme: Theme, kind: string, label: string, slot: number): Rgb {
  const named = namedAs(kind, label);
  if (named !== undefined) {
    return shade(theme, named[1], 0);
  }
  if (kind === "estimate") {
    return SURFACES[theme].faint;
  }
  const hue = HUES[slot % HUES.length] ?? BLACK;
  return shade(theme, hue, Math.floor(slot / HUES.length) % 3);
}

/** How high a value's bar is, of 1. */
export function heightOf(kind: string, label: string): number {
  return namedAs(kind, label)?.[2] ?? 1;
}

function namedAs(kind: string, label: string): readonly [string, Rgb, number] | undefined {
  if (!NAMED_KINDS.has(kind) && label !== "idle") {
    return undefined;
  }
  const lower = label.toLowerCase();
  return NAMED.find(([begin]) => lower.startsWith(begin));
}

/** One of three lightnesses of a hue: itself, nearer to white, nearer to black. */
function shade(theme: Theme, hue: Rgb, step: number): Rgb {
  if (step === 0) {
    return theme === "dark" ? mix(hue, BLACK, 0.1) : hue;
  }
  return step === 1 ? mix(hue, WHITE, theme === "dark" ? 0.25 : 0.4) : mix(hue, BLACK, theme === "dark" ? 0.35 : 0.25);
}

/** `part` of the way from one color to another. */
export function mix(from: Rgb, to: Rgb, part: number): Rgb {
  const channel = (index: 0 | 1 | 2): number => Math.round(from[index] + (to[index] - from[index]) * part);
  return [channel(0), channel(1), channel(2)];
}

/** Estimated values are nearer to the background. */
export function paler(colour: Rgb, theme: Theme): Rgb {
  return mix(colour, SURFACES[theme].lane, 0.55);
}

/** Black or white, whichever can be read on a color. */
export function inkOn(colour: Rgb): Rgb {
  return luminance(colour) > 0.18 ? BLACK : WHITE;
}

/** As WCAG defines it: 0 for black, 1 for white. */
export function luminance([red, green, blue]: Rgb): number {
  const linear = (value: number): number => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** How well one color can be read on another, 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].sort((left, right) => left - right) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red},${green},${blue})`;
}

/** As canvases keep a pixel in memory, read as a number of 32 bits. */
export function packed([red, green, blue]: Rgb): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Neighboring numbers, far apart: hashes of servers need not be good ones. */
function scramble(hash: number): number {
  let mixed = hash >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
