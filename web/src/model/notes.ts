// Notes of people on the traces, as the server has them in a file: the text, the time, and the place of each.

import type { Clock } from "./clock.ts";
import { duration, timeText } from "./clock.ts";
import { Shape, ShapeFault, parseJson } from "./json.ts";
import { itemTexts, memberTexts } from "./parts.ts";
import type { Rgb, Theme } from "./palette.ts";
import { wordsOf } from "./search.ts";
import { endOf, pixelOf, type Viewport } from "./viewport.ts";
import { px } from "../units/screen.ts";
import { minus, nanos, type Nanos } from "../units/time.ts";

export interface Note {
  readonly id: string;
  readonly begin: Nanos;
  /** `null`: it is about a moment. */
  readonly end: Nanos | null;
  readonly text: string;
  /** The id of the track that it is about, which need not be there. */
  readonly track: string | null;
  readonly author: string | null;
  /** One of `NOTE_COLOURS`, `#rrggbb`, or a name that another program uses for a color. */
  readonly colour: string | null;
  /** Its other members, by name, as JSON: a change of a text keeps them. */
  readonly rest: readonly (readonly [string, string])[];
}

/** A line of the file that is no note. */
export interface NotesProblem {
  readonly line: number;
  readonly message: string;
}

/** The server's state of the file. */
export interface NotesFile {
  readonly file: string;
  /** In the order of times. */
  readonly notes: readonly Note[];
  readonly problems: readonly NotesProblem[];
}

const KNOWN: ReadonlySet<string> = new Set(["id", "begin_ns", "end_ns", "text", "track", "author", "colour"]);

/** The notes in the server's answer. Throws a `SyntaxError` or a `ShapeFault`. */
export function readNotes(text: string): NotesFile {
  const shape = new Shape(parseJson(text), "notes");
  const file = shape.get("file").text();
  const shapes = shape.get("notes").list();
  const texts = itemTexts(memberTexts(text).find(([name]) => name === "notes")?.[1] ?? "[]");
  const notes = shapes.map((one, index) => readNote(one, texts[index] ?? "{}"));
  const problems = shape.get("problems").list().map((one) => ({ line: one.get("line").number(), message: one.get("message").text() }));
  return { file, notes: ordered(notes), problems };
}

function readNote(shape: Shape, text: string): Note {
  const word = (name: string): string | null => (shape.get(name).given ? shape.get(name).text() : null);
  const [id, begin] = [shape.get("id").text(), nanos(shape.get("begin_ns").whole())];
  const end = shape.get("end_ns").given ? nanos(shape.get("end_ns").whole()) : null;
  if (end !== null && end < begin) {
    throw new ShapeFault(`note ${id}: found end_ns ${end}, expected a time that is not before begin_ns ${begin}`);
  }
  const rest = memberTexts(text).filter(([name]) => !KNOWN.has(name));
  return { id, begin, end, text: shape.get("text").text(), track: word("track"), author: word("author"), colour: word("colour"), rest };
}

/** Notes in the order of times; of those that begin together, as they stood. */
export function ordered(notes: readonly Note[]): readonly Note[] {
  return [...notes].sort((one, other) => (one.begin < other.begin ? -1 : one.begin > other.begin ? 1 : 0));
}

/** A note as the server takes it. Times are whole numbers of any size, which `JSON.stringify` does not write. */
export function noteBody({ id, begin, end, text, track, author, colour, rest }: Note): string {
  const words = [["text", text], ["track", track], ["author", author], ["colour", colour]] as const;
  const members = [
    ["id", JSON.stringify(id)],
    ["begin_ns", String(begin)],
    ...(end === null ? [] : [["end_ns", String(end)]]),
    ...words.flatMap(([name, value]) => (value === null ? [] : [[name, JSON.stringify(value)]])),
    ...rest,
  ];
  return `{${members.map(([name = "", value = ""]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

const TITLE_MAX = 60;

/** The title of a note: the first line of its text that says something. */
export function titleOf({ text }: Pick<Note, "text">): string {
  const line = text.split("\n").find((one) => one.trim() !== "")?.trim() ?? "a note without text";
  return line.length <= TITLE_MAX ? line : `${line.slice(0, TITLE_MAX - 1).trimEnd()}…`;
}

/** When it is, and for how long. */
export function whenText(clock: Clock, { begin, end }: Pick<Note, "begin" | "end">): string {
  return `${timeText(clock, begin)}${end === null ? "" : ` + ${duration(minus(end, begin), 3)}`}`;
}

/** The notes that contain each word of a query in text, author or track; they stay in their order. */
export function notesWith(notes: readonly Note[], query: string): readonly Note[] {
  const words = wordsOf(query);
  return words.length === 0 ? notes : notes.filter((note) => saysAll(note, words));
}

function saysAll({ text, author, track }: Note, words: readonly string[]): boolean {
  const all = `${text} ${author ?? ""} ${track ?? ""}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

/** The notes of which something is in a window. They are in the order of times. */
export function notesIn(notes: readonly Note[], shown: Viewport): readonly Note[] {
  const last = endOf(shown);
  return notes.filter(({ begin, end }) => begin < last && (begin >= shown.begin || (end ?? begin) > shown.begin));
}

/** Colors that a note may have, by their names; as text on the ground of the theme they are all easy to see. */
export const NOTE_COLOURS: Readonly<Record<string, Readonly<Record<Theme, Rgb>>>> = {
  orange: { light: [150, 80, 0], dark: [255, 190, 90] },
  red: { light: [180, 30, 30], dark: [255, 130, 120] },
  purple: { light: [120, 50, 150], dark: [215, 160, 240] },
  blue: { light: [0, 90, 156], dark: [110, 190, 240] },
  green: { light: [0, 110, 70], dark: [90, 210, 160] },
  grey: { light: [92, 102, 114], dark: [170, 180, 192] },
};

/** The color of a note without one. */
export const PLAIN_COLOUR = "orange";

/** The color of several notes together: theirs, if they have the same one. */
export function colourOf(colours: Iterable<string | null>, theme: Theme): Rgb {
  const [colour = null, ...others] = new Set(colours);
  const [, red, green, blue] = others.length > 0 ? [] : (/^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour ?? "") ?? []);
  if (red !== undefined && green !== undefined && blue !== undefined) {
    return [Number.parseInt(red, 16), Number.parseInt(green, 16), Number.parseInt(blue, 16)];
  }
  const named = others.length > 0 || colour === null || !Object.hasOwn(NOTE_COLOURS, colour) ? PLAIN_COLOUR : colour;
  return NOTE_COLOURS[named]?.[theme] ?? [128, 128, 128];
}

/** Where notes are marked on a line of time: one flag for those that begin about there. */
export interface Flag {
  readonly x: number;
  readonly notes: readonly Note[];
}

/** From where to where the time of one or several notes lasts. */
export interface Band {
  readonly from: number;
  readonly to: number;
  /** Of all notes that it is of. */
  readonly colours: ReadonlySet<string | null>;
}

/** Flags are so far apart at least, so that there are never more than fit. */
const FLAGS_APART = 14;
const BAND_MIN = 2;

/** How many notes a flag stands for, as far as that fits; empty: one. */
export function countOf({ notes }: Flag): string {
  return notes.length === 1 ? "" : notes.length > 99 ? "…" : String(notes.length);
}

/** The flags and bands of notes on a line of time that is so many CSS pixels wide. A note that begins before the window has its flag at the edge. */
export function marksOf(notes: readonly Note[], shown: Viewport, width: number): { readonly flags: readonly Flag[]; readonly bands: readonly Band[] } {
  const flags: { x: number; notes: Note[] }[] = [];
  const bands: { from: number; to: number; colours: Set<string | null> }[] = [];
  for (const note of notesIn(notes, shown)) {
    const x = Math.max(0, pixelOf(shown, note.begin, px(width)));
    const flag = flags.at(-1);
    if (flag !== undefined && x < flag.x + FLAGS_APART) {
      flag.notes.push(note);
    } else {
      flags.push({ x, notes: [note] });
    }
    if (note.end !== null) {
      const to = Math.max(x + BAND_MIN, Math.min(width, pixelOf(shown, note.end, px(width))));
      const band = bands.at(-1);
      // Notes that lie over each other, or nearly touch, are one band: there are never more than pixels.
      if (band !== undefined && x <= band.to + 1) {
        band.to = Math.max(band.to, to);
        band.colours.add(note.colour);
      } else {
        bands.push({ from: x, to, colours: new Set([note.colour]) });
      }
    }
  }
  return { flags, bands };
}

/** The note of a flag that is next when the flag is clicked: those that share one come one after the other. */
export function nextOf({ notes }: Flag, chosen: string | null): Note | null {
  const at = notes.findIndex(({ id }) => id === chosen);
  return notes[(at + 1) % Math.max(1, notes.length)] ?? null;
}
