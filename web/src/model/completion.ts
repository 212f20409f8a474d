// Completion for an expression of the filter language while the user types it: names of fields and of events, words, operators.

import { find, findable, isInside, type Findable } from "./search.ts";

/** One completion on offer. */
export interface Offer {
  /** The text that is inserted. */
  readonly text: string;
  /** The kind of the offer, in a word or two. */
  readonly what: string;
}

/** The offers that replace the text from `from` to before `to`, in units of UTF-16. */
export interface Completion {
  readonly from: number;
  readonly to: number;
  readonly offers: readonly Offer[];
}

/** The vocabulary of the traces. */
export interface Vocabulary {
  readonly fields: readonly Offer[];
  readonly events: readonly string[];
}

export const NO_VOCABULARY: Vocabulary = { fields: [], events: [] };

const OFFERS_MAX = 12;

/** Names that mean something in all traces. */
const WORDS: readonly Offer[] = [
  { text: "event.name", what: "name of the event" },
  { text: "time", what: "time of the event" },
  { text: "packet.cpu_id", what: "CPU" },
  { text: "has(", what: "whether the field exists" },
  { text: "$ctx.", what: "a context" },
  { text: "$payload.", what: "a field of the payload" },
  { text: "stream.id", what: "data stream" },
  { text: "trace.name", what: "folder of the trace" },
  { text: "env.hostname", what: "of the trace's environment" },
  { text: "event.log_level", what: "log level" },
  { text: "cycles", what: "value of the clock" },
];

/** Columns of a list of events that are no fields of theirs. */
const NO_FIELDS: ReadonlySet<string> = new Set(["time", "cycles", "name", "stream", "trace"]);

/** Fields by the names of columns that a list of events has: labels and lengths have columns of their own, which are no fields. */
export function fieldOffers(columns: readonly string[]): readonly Offer[] {
  const all = new Set(columns);
  const isExtra = (name: string): boolean => /_(?:label|bytes|tag)$/.test(name) && all.has(name.replace(/_[a-z]+$/, ""));
  const fields = columns.filter((name) => !NO_FIELDS.has(name) && !isExtra(name) && !/^_.*_length$/.test(name));
  return fields.map((name) => ({ text: name.startsWith("payload.") ? `$${name}` : name, what: "field" }));
}

/** The operators that may stand behind a value. */
const OPERATORS: readonly Offer[] = [
  { text: "== ", what: "is; `*` in a text is any text" },
  { text: "!= ", what: "is not" },
  { text: "< ", what: "less" },
  { text: "<= ", what: "at most" },
  { text: "> ", what: "more" },
  { text: ">= ", what: "at least" },
  { text: "in (", what: "one of these: (1, 5..=9)" },
  { text: '=~ "', what: "matches a regular expression" },
  { text: "&& ", what: "and" },
  { text: "|| ", what: "or" },
];

/** The offers at a place; `null`: the page knows none. */
export function complete(text: string, caret: number, vocabulary: Vocabulary): Completion | null {
  const before = text.slice(0, caret);
  const quote = openText(before);
  if (quote !== null) {
    return inText(text, quote, caret, vocabulary);
  }
  const word = /[\w$:.@`]+$/.exec(before)?.[0] ?? "";
  // Only the user knows the number, or the point in time.
  if (/^[\d@]/.test(word)) {
    return null;
  }
  const from = caret - word.length;
  const to = caret + (/^[\w$:.`]*/.exec(text.slice(caret))?.[0].length ?? 0);
  if (word === "") {
    return isBehindValue(before) ? { from: caret, to: caret, offers: OPERATORS } : null;
  }
  const offers = offersFor(findables(vocabulary).names, word);
  // A word that is written out gets no offers, so that they are not in the way of further typing.
  return offers.length === 0 || offers[0]?.text === word ? null : { from, to, offers };
}

/** Where the text begins that is open at the end of an expression, without its quote; `null`: none is. */
function openText(before: string): number | null {
  let open: { readonly quote: string; readonly at: number } | null = null;
  for (let at = 0; at < before.length; at++) {
    const letter = before[at] ?? "";
    if (letter === "\\") {
      at++;
    } else if (open === null) {
      open = letter === '"' || letter === "'" ? { quote: letter, at: at + 1 } : null;
    } else if (letter === open.quote) {
      open = null;
    }
  }
  return open?.at ?? null;
}

/** Names of events, where the text is compared with one. */
function inText(text: string, from: number, caret: number, vocabulary: Vocabulary): Completion | null {
  if (!/\bevent\.name\s*(?:[!=]=|in\s*\([^)]*)\s*["']$/.test(text.slice(0, from))) {
    return null;
  }
  const quote = text[from - 1] ?? '"';
  const rest = text.slice(caret);
  const end = rest.indexOf(quote);
  const written = text.slice(from, caret);
  const offers = offersFor(findables(vocabulary).events, written).map((offer) => ({ ...offer, text: `${offer.text}${quote}` }));
  return offers.length === 0 ? null : { from, to: end < 0 ? text.length : caret + end + 1, offers };
}

function isBehindValue(before: string): boolean {
  return /[\w)"'`\]] $/.test(before) && !/(?:&&|\|\||[=<>!~+\-*/%&|^,(]|\bin) $/.test(before);
}

interface Findables {
  readonly names: readonly Findable<Offer>[];
  readonly events: readonly Findable<Offer>[];
}

const kept = new WeakMap<Vocabulary, Findables>();

function findables(vocabulary: Vocabulary): Findables {
  let found = kept.get(vocabulary);
  if (found === undefined) {
    const all = (offers: readonly Offer[]): readonly Findable<Offer>[] => offers.map((offer) => findable(offer, offer.text));
    found = { names: all([...WORDS, ...vocabulary.fields]), events: all(vocabulary.events.map((text) => ({ text, what: "event" }))) };
    kept.set(vocabulary, found);
  }
  return found;
}

/** Those that have the word in them; letters that only happen to be there would be no help. */
function offersFor(all: readonly Findable<Offer>[], word: string): readonly Offer[] {
  if (word === "") {
    return all.slice(0, OFFERS_MAX).map(({ item }) => item);
  }
  return find(all, word, OFFERS_MAX).flatMap(({ item, score }) => (isInside(score) ? [item] : []));
}

/** A text with an offer in it, and where the caret is then. */
export function accepted(text: string, { from, to }: Completion, offer: Offer): { readonly text: string; readonly caret: number } {
  return { text: text.slice(0, from) + offer.text + text.slice(to), caret: from + offer.text.length };
}

/** A part of a text, and whether something is wrong with it. */
export interface Marked {
  readonly text: string;
  readonly isWrong: boolean;
}

/** A text cut where problems begin and end. One that has no length marks the character before it. */
export function marked(text: string, problems: readonly { readonly begin: number; readonly end: number }[]): Marked[] {
  const wrong = new Array<boolean>(text.length).fill(false);
  for (const { begin, end } of problems) {
    const from = Math.max(0, Math.min(begin, text.length - 1));
    wrong.fill(true, from, Math.max(end, from + 1));
  }
  const parts: Marked[] = [];
  let from = 0;
  for (let at = 1; at <= text.length; at++) {
    if (at === text.length || wrong[at] !== wrong[from]) {
      parts.push({ text: text.slice(from, at), isWrong: wrong[from] ?? false });
      from = at;
    }
  }
  return parts;
}

/** As many expressions are remembered. */
const HISTORY_MAX = 20;

/** Expressions that were asked before, the last one first. */
export function remembered(history: readonly string[], text: string): readonly string[] {
  const plain = text.trim();
  return plain === "" ? history : [plain, ...history.filter((one) => one !== plain)].slice(0, HISTORY_MAX);
}
