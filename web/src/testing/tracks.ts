// Tracks for tests: each says what it is about, the rest is plain.

import type { Track } from "../model/catalogue.ts";
import { trackNumber } from "../units/tiles.ts";

/** A track of that number, called `t` and its number unless somebody says otherwise. */
export function trackLike(number: number, more: Partial<Track> = {}): Track {
  return { number: trackNumber(number), id: `t${number}`, kind: "states", name: "", group: "G", host: null, cpu: null, process: null, tid: null, depth: null, parent: null, ...more };
}
