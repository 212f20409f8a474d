// The URL keeps what is seen: of any page that there may be, and whatever text somebody opens.

import { expect, test } from "vitest";
import { cssPx } from "../units/screen.ts";
import { nanos, type Nanos } from "../units/time.ts";
import type { Choice } from "./choice.ts";
import { FILTER_MODES, PLAIN_FILTER } from "./filter.ts";
import { FOLLOW_SPAN } from "./follow.ts";
import { PLAIN_LAYOUT, ROW_SIZES } from "./layout.ts";
import { PLAIN_LENS, ROWS, SCOPES, type Look } from "./lens.ts";
import { CURVES_MAX, PLAIN_CURVES } from "./curves.ts";
import { BELOW_MAX, PLAIN_LISTED, type ListPlace } from "./listed.ts";
import { PLAIN_PANELS, SIDES, openedPanel, sizedPanel, type Panels } from "./panels.ts";
import { decodeUrl, encode, type Seen } from "./url.ts";
import type { Viewport } from "./viewport.ts";

test("a URL holds all that is seen", () => {
  const seen: Seen = {
    view: { begin: nanos(-5), span: nanos(71_210_000) },
    follow: FOLLOW_SPAN,
    selection: { begin: nanos(1_795_219_372_253_260_578n), span: nanos(1), rows: { from: "track thread/0/5/a~b=c&d", to: "head Événements" } },
    item: { track: "thread/0/29832/a~b=c&d", time: nanos(1_795_219_372_253_260_579n) },
    mark: nanos(1_795_219_372_253_260_579n),
    arrows: false,
    colouring: "application",
    legend: true,
    layout: { ...PLAIN_LAYOUT, groups: ["Events", "CPUs"], closed: ["Threads"], shown: ["thread/0/5/state"], large: ["x"], size: "small", active: true, names: cssPx(320), pinned: ["cpu/0/3/thread", "a&b=c#d+e f%2F"], hidden: ["x"], folded: ["CPUs", "Événements"] },
    filter: {
      ...PLAIN_FILTER,
      text: 'took > 5ms && name == "a&b"',
      events: { only: ["sched_*", "jobs:end"], but: ["sched_stat_wait"] },
      cpus: { only: [3, 1, 2, 7], but: [] },
      applications: { only: ["my app", "cc"], but: ["ld"] },
      processes: { only: null, but: ["42", "my app"] },
      threads: { only: null, but: [5] },
      states: { only: ["doing:running", "slice:a:b"], but: ["doing:blocked"] },
      mode: "hide",
    },
    panels: openedPanel(PLAIN_PANELS, "drawer", "events"),
    lens: {
      ...PLAIN_LENS,
      scope: "selection",
      kind: "syscalls",
      table: "per-thread",
      look: { sort: { column: "total", descending: true }, text: "> 5ms", within: "p999" },
      rows: 10_000,
      latency: "pairs",
      latencyTable: "per-group",
      latencyLook: { sort: { column: "time", descending: false }, text: "a~b", within: null },
      longest: 10_000,
      range: { low: 0, high: 5_000_000 },
      group: { column: "thread", text: "nginx (12)", tid: 12 },
      pairs: ["a:begin", "a:end if x == 1", "", "id"],
      periods: "p : a : b\nq : c",
    },
    listed: { names: "sched_* irq_*", columns: "prev_comm", find: "a && b < 5", sync: false, at: { place: { time: nanos(-7), rank: 2 }, below: -3 } },
    curves: { tracks: ["counter/0/4711/a b&c", "own/jobs/queue"], apart: true },
    timeStyle: "absolute",
    scroll: 120,
  };
  const text = encode(seen);
  expect(decodeUrl(`#${text}`)).toEqual({ ...seen, filter: { ...seen.filter, cpus: { only: [1, 2, 3, 7], but: [] } } });
  expect(text.startsWith("at=-5~71210000&selected=")).toBe(true);
  expect(text).toContain("pin=cpu/0/3/thread");
  expect(text).toContain("event=sched_*&event=jobs:end&no-event=sched_stat_wait&cpu=1-3,7&app=my+app&app=cc&no-app=ld&no-process=42&no-process=my+app&no-thread=5&state=doing:running&state=slice:a:b&no-state=doing:blocked&mode=hide");
});

test("a URL holds how much of traces that grow is seen, unless a window is chosen", () => {
  const plain = decodeUrl("");
  expect(encode({ ...plain, follow: null })).toBe("follow=all");
  expect(encode({ ...plain, follow: nanos(500_000_000) })).toBe("follow=500000000");
  expect(encode({ ...plain, follow: null, view: { begin: nanos(1), span: nanos(2) } })).toBe("at=1~2");
  expect([decodeUrl("#follow=all").follow, decodeUrl("#follow=500000000").follow]).toEqual([null, 500_000_000n]);
  for (const strange of ["", "0", "-5", "1.5", "ALL", "9".repeat(25)]) {
    expect(decodeUrl(`#follow=${strange}`).follow, strange).toBe(FOLLOW_SPAN);
  }
});

test("a URL that is empty or strange shows what is plain", () => {
  const plain: Seen = { view: null, follow: FOLLOW_SPAN, selection: null, item: null, mark: null, arrows: true, colouring: "thread", legend: false, layout: PLAIN_LAYOUT, filter: PLAIN_FILTER, panels: PLAIN_PANELS, lens: PLAIN_LENS, listed: PLAIN_LISTED, curves: PLAIN_CURVES, timeStyle: "relative", scroll: 0 };
  expect(decodeUrl("")).toEqual(plain);
  expect(encode(plain)).toBe("");
  expect(decodeUrl("#at=1~&selected=x~2&down=-7&colours=other&time=other&later=1&stats=A..b&scope=none&latency=%3C")).toEqual(plain);
  expect(decodeUrl("#at=99999999999999999999~1&down=NaN")).toEqual(plain);
  expect(decodeUrl("#item=5&item=~a")).toEqual(plain);
  expect(decodeUrl("#stats-rows=7&latency-rows=x&stats-sort=total&lasts=5-3&lasts=a&latency-group=x&sync=maybe&row=5&row=5.1~9999&top=x&pairs=&pairs=")).toEqual(plain);
  expect(decodeUrl("#pin=a&pin=a").layout.pinned).toEqual(["a"]);
  expect(decodeUrl("#cpu=&thread=x,9-3,-1,99999999999&event=&mode=gone&filter=+").filter).toEqual({ ...PLAIN_FILTER, text: " " });
  expect(decodeUrl("#thread=0-9999999999").filter.threads?.only?.length).toBe(20_000);
});

/** Numbers that look like chance, and are the same each time. */
class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed;
  }

  /** From 0 to before `sides`. */
  below(sides: number): number {
    this.state = (Math.imul(this.state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.state / 2 ** 32) * sides);
  }

  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }

  flag(): boolean {
    return this.below(2) === 0;
  }

  time(): Nanos {
    const digits = Array.from({ length: 1 + this.below(18) }, () => this.below(10)).join("");
    return nanos(BigInt(digits) * (this.flag() ? 1n : -1n));
  }

  /** Anything that a box or a name may hold; not empty. */
  text(): string {
    const pieces = ["a", "sched_switch", " ", "&", "=", "#", "+", "%41", "~", ".", ",", "/", ":", "\n", "é", "😀", "\"", "<", "-", "0", "'", "\u202f"] as const;
    return Array.from({ length: 1 + this.below(6) }, () => this.of(pieces)).join("");
  }

  texts(): readonly string[] {
    return [...new Set(Array.from({ length: this.below(4) }, () => this.text()))];
  }

  numbers(): readonly number[] {
    return [...new Set(Array.from({ length: this.below(5) }, () => this.below(40)))].sort((one, other) => one - other);
  }

  word(): string {
    return this.of(["cpu", "per-thread", "syscalls", "io"]).replaceAll("-", this.flag() ? "-" : "");
  }

  perhaps<T>(make: () => T): T | null {
    return this.flag() ? make() : null;
  }
}

function windowOf(dice: Dice): Viewport {
  const span = dice.time();
  return { begin: dice.time(), span: span < 0n ? nanos(-span) : span };
}

function choiceOf<T>(named: readonly T[], but: readonly T[]): Choice<T> | null {
  return named.length === 0 && but.length === 0 ? null : { only: named.length === 0 ? null : named, but };
}

function lookOf(dice: Dice): Look {
  return { sort: dice.perhaps(() => ({ column: dice.text(), descending: dice.flag() })), text: dice.perhaps(() => dice.text()) ?? "", within: dice.perhaps(() => dice.text()) };
}

function placeOf(dice: Dice): ListPlace {
  return { place: { time: dice.time(), rank: dice.below(1_000) }, below: dice.perhaps(() => dice.below(2 * BELOW_MAX + 1) - BELOW_MAX) };
}

function panelsOf(dice: Dice): Panels {
  return SIDES.filter(() => dice.flag()).reduce((panels, side) => {
    const open = openedPanel(panels, side, dice.perhaps(() => dice.of(["events", "latency"])));
    return dice.flag() ? open : sizedPanel(open, side, cssPx(dice.below(1_500)));
  }, PLAIN_PANELS);
}

function seenBy(dice: Dice): Seen {
  const text = (): string => dice.perhaps(() => dice.text()) ?? "";
  const low = dice.below(1_000_000);
  const pairs = Array.from({ length: dice.below(5) }, text);
  const view = dice.perhaps(() => windowOf(dice));
  return {
    view,
    // A window that was chosen goes along with nothing.
    follow: view === null ? dice.of([FOLLOW_SPAN, null, nanos(1 + dice.below(1_000_000))]) : FOLLOW_SPAN,
    selection: dice.perhaps(() => (dice.flag() ? windowOf(dice) : { ...windowOf(dice), rows: { from: dice.text(), to: dice.text() } })),
    item: dice.perhaps(() => ({ time: dice.time(), track: dice.text() })),
    mark: dice.perhaps(() => dice.time()),
    arrows: dice.flag(),
    colouring: dice.flag() ? "application" : "thread",
    legend: dice.flag(),
    layout: { ...PLAIN_LAYOUT, pinned: dice.texts(), hidden: dice.texts(), folded: dice.texts(), groups: dice.texts(), small: dice.texts(), size: ROW_SIZES[dice.below(3)] ?? "plain", active: dice.flag() },
    filter: {
      ...PLAIN_FILTER,
      text: dice.perhaps(() => `x${dice.text()}`) ?? "",
      events: choiceOf(dice.texts(), dice.texts()),
      processes: choiceOf(dice.texts(), []),
      cpus: choiceOf(dice.numbers(), []),
      threads: choiceOf(dice.numbers(), dice.numbers()),
      states: choiceOf(dice.texts(), dice.texts()),
      mode: FILTER_MODES[dice.below(FILTER_MODES.length)] ?? "dim",
    },
    panels: panelsOf(dice),
    lens: {
      scope: SCOPES[dice.below(SCOPES.length)]?.[0] ?? "all",
      kind: dice.word().replaceAll("-", ""),
      table: dice.perhaps(() => dice.word()),
      look: lookOf(dice),
      rows: ROWS[dice.below(ROWS.length)] ?? 1_000,
      latency: dice.perhaps(() => dice.word()) ?? "",
      latencyTable: dice.perhaps(() => dice.word()),
      latencyLook: lookOf(dice),
      longest: ROWS[dice.below(ROWS.length)] ?? 1_000,
      range: dice.perhaps(() => ({ low, high: low + dice.below(1_000_000) })),
      group: dice.perhaps(() => ({ column: dice.word(), text: text(), tid: dice.perhaps(() => dice.below(100_000)) })),
      pairs: pairs.some((part) => part !== "") ? pairs : [],
      periods: text(),
    },
    listed: { names: text(), columns: text(), find: text(), sync: dice.flag(), at: dice.perhaps(() => placeOf(dice)) },
    curves: { tracks: [...new Set(dice.texts())].slice(0, CURVES_MAX), apart: dice.flag() },
    timeStyle: dice.flag() ? "absolute" : "relative",
    scroll: dice.below(10_000),
  };
}

test("whatever a page shows is what its URL says", () => {
  for (let seed = 0; seed < 300; seed++) {
    const seen = seenBy(new Dice(seed));
    const text = encode(seen);
    expect(decodeUrl(`#${text}`), `seed ${seed}: ${text}`).toEqual(seen);
    // As browsers write it in the address bar.
    expect(decodeUrl(new URL(`http://localhost/#${text}`).hash), `seed ${seed}: ${text}`).toEqual(seen);
  }
});

test("any text is a URL of some page, which keeps what was understood", () => {
  const names = ["at", "follow", "selected", "on", "item", "mark", "pin", "cpu", "thread", "mode", "panels", "stats", "stats-sort", "stats-in", "latency", "lasts", "group", "latency-group", "pairs", "row", "top", "sync", "list", "find", "time", "down"] as const;
  const pieces = ["1", "-", "~", ".", "5~9", "a", "drawer", "..", "%", "%F0", "&", "=", "down.x", "9".repeat(19), "9".repeat(25), "\ud800", "é", "0-3", ",", "all", "__proto__", "null"] as const;
  for (let seed = 0; seed < 800; seed++) {
    const dice = new Dice(seed);
    const part = (): string => `${dice.of(names)}=${Array.from({ length: dice.below(5) }, () => dice.of(pieces)).join("")}`;
    const text = dice.below(8) === 0 ? dice.text() : Array.from({ length: 1 + dice.below(4) }, part).join("&");
    const seen = decodeUrl(`#${text}`);
    expect(decodeUrl(`#${encode(seen)}`), `seed ${seed}: ${text}`).toEqual(seen);
  }
});
