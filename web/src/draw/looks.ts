// How values look: their colors, as canvases have them in memory, and how high their bars are. Looked up once for each value.

import type { Track, TrackValue } from "../model/catalogue.ts";
import { SURFACES, colourOf, css, heightOf, inkOn, mix, packed, paler, type Colouring, type Rgb, type Theme } from "../model/palette.ts";
import { plain } from "../model/plain.ts";
import { slotOfValue } from "../model/siblings.ts";
import { STRIP_ROWS } from "./strip.ts";

/** How one value looks. */
export interface Look {
  readonly label: string;
  readonly kind: string;
  readonly colour: Rgb;
  readonly packed: number;
  /** Where it is only estimated. */
  readonly pale: number;
  /** At its left edge, where there is room. */
  readonly edge: number;
  /** Rows of a strip that its bar has. */
  readonly rows: number;
  /** The color of readable text on it. */
  readonly ink: string;
}

/** How near to the lane values are that the filter does not mean: as far as rows are. */
const DIMMED = 0.75;

export class Looks {
  readonly theme: Theme;
  readonly colouring: Colouring;
  private readonly values: readonly TrackValue[];
  private readonly tracks: readonly Track[];
  private readonly isMeant: (value: TrackValue) => boolean;
  private readonly found: Look[] = [];
  private readonly unknown: Look;
  /** Colors and rows once more, by value, for the loop that paints each bucket of each track. */
  readonly packed: Uint32Array;
  readonly rows: Uint8Array;
  /** Which values mean that nothing is done: 1. */
  readonly rest: Uint8Array;

  /** `isMeant` says which values are those that the filter means; all others are paler. */
  constructor(theme: Theme, values: readonly TrackValue[], colouring: Colouring = "thread", tracks: readonly Track[] = [], isMeant: ((value: TrackValue) => boolean) | null = null) {
    this.theme = theme;
    this.colouring = colouring;
    this.tracks = tracks;
    this.isMeant = isMeant ?? (() => true);
    this.values = values;
    this.unknown = this.make("…", "unknown", SURFACES[theme].faint);
    const count = (values.at(-1)?.number ?? -1) + 1;
    this.packed = new Uint32Array(count).fill(this.unknown.packed);
    this.rows = new Uint8Array(count).fill(this.unknown.rows);
    this.rest = new Uint8Array(count);
    for (const { number, isRest } of values) {
      this.packed[number] = this.of(number).packed;
      this.rows[number] = this.of(number).rows;
      this.rest[number] = isRest === true ? 1 : 0;
    }
  }

  /** How a value looks; one that the server has not described yet is gray. */
  of(value: number): Look {
    const known = this.found[value];
    if (known !== undefined) {
      return known;
    }
    const described = this.describe(value);
    if (described === undefined) {
      return this.unknown;
    }
    const { label, kind } = described;
    const colour = colourOf(this.theme, kind, label, slotOfValue(described, this.colouring, this.tracks));
    const look = this.isMeant(described) ? this.make(label, kind, colour) : this.dimmed(this.make(label, kind, mix(colour, SURFACES[this.theme].lane, DIMMED)));
    this.found[value] = look;
    return look;
  }

  /** Numbers count from 0 without a gap; where they do not, the value is looked for. */
  private describe(value: number): TrackValue | undefined {
    const likely = this.values[value];
    return likely?.number === value ? likely : this.values.find((one) => one.number === value);
  }

  private dimmed(look: Look): Look {
    return { ...look, edge: look.packed, ink: css(SURFACES[this.theme].faint) };
  }

  private make(label: string, kind: string, colour: Rgb): Look {
    return {
      label: plain(label),
      kind,
      colour,
      packed: packed(colour),
      pale: packed(paler(colour, this.theme)),
      edge: packed(mix(colour, this.theme === "dark" ? [255, 255, 255] : [0, 0, 0], 0.35)),
      rows: Math.max(1, Math.round(heightOf(kind, label) * STRIP_ROWS)),
      ink: css(inkOn(colour)),
    };
  }
}
