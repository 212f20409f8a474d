import { expect, test } from "vitest";
import { accepted, complete, fieldOffers, marked, remembered, type Vocabulary } from "./completion.ts";

const VOCABULARY: Vocabulary = {
  fields: ["prev_comm", "prev_tid", "next_tid", "ret"].map((text) => ({ text, what: "field" })),
  events: ["sched_switch", "sched_wakeup", "irq_entry"],
};

/** What is offered where `|` stands, and what is replaced. */
function offered(text: string): readonly string[] | null {
  const caret = text.indexOf("|");
  const found = complete(text.replace("|", ""), caret, VOCABULARY);
  return found === null ? null : [text.replace("|", "").slice(found.from, found.to), ...found.offers.map((offer) => offer.text)];
}

test.each<[string, readonly string[] | null]>([
  ["prev|", ["prev", "prev_tid", "prev_comm"]],
  ["a == 1 && nex|t", ["next", "next_tid"]],
  ["tid|", ["tid", "prev_tid", "next_tid"]],
  ["event.na|", ["event.na", "event.name"]],
  ["ret|", null],
  ["5|", null],
  ["@12:1|", null],
  ["zzzz|", null],
  ["|", null],
  ["ret == |", null],
  ["(|", null],
  ['event.name == "wake|', ["wake", 'sched_wakeup"']],
  ['event.name in ("sched_switch", "irq|xx")', ['irqxx")'.slice(0, -1), 'irq_entry"']],
  ["event.name != 'irq|", ["irq", "irq_entry'"]],
  ['prev_comm == "prev|', null],
  ['prev_comm == "a\\"" && pre|', ["pre", "prev_tid", "prev_comm"]],
])("at the bar of %s", (text, offers) => {
  expect(offered(text)).toEqual(offers);
});

test("operators are offered behind a value, and only there", () => {
  expect(offered("ret |")?.slice(1, 4)).toEqual(["== ", "!= ", "< "]);
  expect(offered("(ret) |")?.length).toBe(11);
  expect(offered("ret in (|")).toBeNull();
});

test("what is accepted takes the place of what was written", () => {
  const found = complete("a && nex", 8, VOCABULARY);
  const [offer] = found?.offers ?? [];
  expect(found !== null && offer !== undefined && accepted("a && nex", found, offer)).toEqual({ text: "a && next_tid", caret: 13 });
});

test("problems are marked where they are, also at the end", () => {
  expect(marked("took > 5x", [{ begin: 7, end: 9 }])).toEqual([
    { text: "took > ", isWrong: false },
    { text: "5x", isWrong: true },
  ]);
  expect(marked("a ==", [{ begin: 4, end: 4 }])).toEqual([
    { text: "a =", isWrong: false },
    { text: "=", isWrong: true },
  ]);
  expect(marked("", [{ begin: 0, end: 0 }])).toEqual([]);
  expect(marked("ab", [])).toEqual([{ text: "ab", isWrong: false }]);
});

test("the last expressions are remembered, each once", () => {
  expect(remembered(["a", "b"], " b ")).toEqual(["b", "a"]);
  expect(remembered(["a"], "  ")).toEqual(["a"]);
  expect(remembered(Array.from({ length: 20 }, (_, number) => String(number)), "new").length).toBe(20);
});

test("fields are columns, but for those that say what others mean", () => {
  const columns = ["time", "name", "kind", "kind_label", "my_label", "_sizes_length", "sizes", "payload.name", "vtid"];
  expect(fieldOffers(columns).map((offer) => offer.text)).toEqual(["kind", "my_label", "sizes", "$payload.name", "vtid"]);
});
