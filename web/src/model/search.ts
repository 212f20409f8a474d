// Finds things by a part of their names: names that begin with it first, then names with a word that does, then names that have it anywhere,
// then names that have its letters in that order. Several words must all be found, in any order.

/** Something that can be found. */
export interface Findable<T> {
  readonly item: T;
  /** The name, in small letters. */
  readonly text: string;
}

/** Something that was found, and how well it fits: the more, the better. */
export interface Hit<T> {
  readonly item: T;
  readonly score: number;
}

export function findable<T>(item: T, text: string): Findable<T> {
  return { item, text: text.toLowerCase() };
}

/** The best ones, at most `limit` of them; those that fit alike stay in their order. */
export function find<T>(all: readonly Findable<T>[], query: string, limit = Infinity): Hit<T>[] {
  const words = wordsOf(query);
  const hits: Hit<T>[] = [];
  for (const { item, text } of all) {
    const score = scoreOf(text, words);
    if (score > 0) {
      hits.push({ item, score });
    }
  }
  return hits.sort((one, other) => other.score - one.score).slice(0, limit);
}

/** The words of a query; none: everything fits. */
export function wordsOf(query: string): readonly string[] {
  return query.toLowerCase().split(/\s+/).filter((word) => word !== "");
}

/** How well a text in small letters fits to all words; 0: not at all. */
export function scoreOf(text: string, words: readonly string[]): number {
  let score = 1;
  for (const word of words) {
    const one = wordScore(text, word);
    if (one === 0) {
      return 0;
    }
    score += one;
  }
  return score;
}

const EXACT = 1_000;
const BEGIN = 800;
const WORD = 600;
const INSIDE = 400;
const SCATTERED = 100;

/** Whether a score of one word says that a text has it in it, as opposed to its letters. */
export function isInside(score: number): boolean {
  return score > INSIDE;
}

function wordScore(text: string, word: string): number {
  const at = text.indexOf(word);
  if (at < 0) {
    return scattered(text, word);
  }
  // Of equal fits the shorter text is nearer to the typed one.
  const rest = 100 / (1 + text.length - word.length);
  if (at === 0) {
    return (text.length === word.length ? EXACT : BEGIN) + rest;
  }
  for (let next = at; next >= 0; next = text.indexOf(word, next + 1)) {
    if (!isLetter(text.charCodeAt(next - 1))) {
      return WORD + rest;
    }
  }
  return INSIDE + rest;
}

/** Letters in their order with others between them; the fewer gaps, the better. One letter alone says too little. */
function scattered(text: string, word: string): number {
  let [at, gaps] = [-1, 0];
  for (const letter of word) {
    const next = text.indexOf(letter, at + 1);
    if (next < 0) {
      return 0;
    }
    gaps += next === at + 1 ? 0 : 1;
    at = next;
  }
  return gaps > Math.max(2, word.length / 2) ? 0 : SCATTERED / gaps;
}

function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code > 127;
}
