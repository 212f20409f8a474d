// Names and texts of traces as the page shows them: the one place where they become text that is read.
//
// Anything can stand in a trace. Characters that show nothing, but move or hide the text around them, are written as their codes: control characters,
// overrides and embeddings of the direction of text (U+202A to U+202E), isolates (U+2066 to U+2069), marks and spaces without a width. Letters that
// are written from right to left would take neighboring numbers and brackets along: text with such letters is isolated (U+2068 … U+2069, which
// elements, canvases, hints and SVG understand alike). Isolates of this kind that are whole stay, so that text can be made of parts. Copies, files,
// filters and URLs have the text as it is recorded.

const FIRST_STRONG = "\u2068";
const END = "\u2069";
/** Begins of isolates, the end of which is the same character as that of ours. */
const OTHER_ISOLATES = new Set(["\u2066", "\u2067"]);

/** Letters that are written from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
/** Joiners are not among them: scripts and pictures are made with these. */
const UNSEEN = /[\p{Cc}\u061c\u00ad\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/u;

const WORDS: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A text as one reads it. The same text again, if it is such a text already. */
export function plain(text: string): string {
  if (!UNSEEN.test(text) && !RIGHT_TO_LEFT.test(text)) {
    return text;
  }
  const letters = [...text];
  const ours = isolatesIn(letters);
  let [shown, depth, isAlone] = ["", 0, true];
  for (const [index, letter] of letters.entries()) {
    if (ours.has(index)) {
      depth += letter === FIRST_STRONG ? 1 : -1;
      shown += letter;
    } else {
      isAlone &&= depth > 0 || !RIGHT_TO_LEFT.test(letter);
      shown += UNSEEN.test(letter) ? codeOf(letter) : letter;
    }
  }
  return isAlone ? shown : `${FIRST_STRONG}${shown}${END}`;
}

/** Where isolates of our kind begin and end that are whole. */
function isolatesIn(letters: readonly string[]): ReadonlySet<number> {
  const open: number[] = [];
  const whole = new Set<number>();
  for (const [index, letter] of letters.entries()) {
    if (letter === FIRST_STRONG || OTHER_ISOLATES.has(letter)) {
      open.push(index);
    } else if (letter === END) {
      const begin = open.pop();
      if (begin !== undefined && letters[begin] === FIRST_STRONG) {
        whole.add(begin).add(index);
      }
    }
  }
  return whole;
}

function codeOf(letter: string): string {
  return WORDS[letter] ?? `\\u{${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`;
}
