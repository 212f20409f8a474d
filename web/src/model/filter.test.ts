import { expect, test } from "vitest";
import { allBut, isChosen, only, tester, withItem, type Naming } from "./choice.ts";
import type { Owners } from "./owners.ts";
import { PLAIN_FILTER, analysisOf, expressionOf, isActive, needsNames, queryOf, questionOf, quoted, unanswered, type FieldNames, type Filter } from "./filter.ts";

const everywhere = (name: string): { name: string; isEverywhere: boolean } => ({ name, isEverywhere: true });
const somewhere = (name: string): { name: string; isEverywhere: boolean } => ({ name, isEverywhere: false });
const NONE: FieldNames = { cpu: [], thread: [], process: [], processName: [] };
const LTTNG: FieldNames = { cpu: [everywhere("$ctx.cpu_id")], thread: [everywhere("$ctx.vtid")], process: [everywhere("$ctx.vpid")], processName: [everywhere("$ctx.procname")] };
/** A kernel's trace with programs' traces beside it, as one. */
const MIXED: FieldNames = { ...NONE, cpu: [everywhere("$ctx.cpu_id")], thread: [somewhere("$ctx.tid"), somewhere("$ctx.vtid")], process: [somewhere("$ctx.vpid")] };

const OWNERS: Owners = {
  applicationOf: () => null,
  members: new Map([["app", { threads: [5, 6, 7], processes: ["5"] }], ["sh", { threads: [12], processes: ["11", "named"] }]]),
  isGuess: false,
};
const filterOf = (change: Partial<Filter>): Filter => ({ ...PLAIN_FILTER, names: LTTNG, ...change });

test("nothing is asked where nothing is chosen", () => {
  expect(questionOf(PLAIN_FILTER)).toEqual({});
  expect(questionOf(filterOf({ text: "  \n" }))).toEqual({});
  expect([expressionOf(PLAIN_FILTER), queryOf(PLAIN_FILTER), isActive(filterOf({ mode: "hide" }))]).toEqual(["", "", false]);
});

test.each<[string, Partial<Filter>, string]>([
  ["an expression is asked as it is", { text: "took > 5ms" }, "took > 5ms"],
  ["neighbours are ranges", { cpus: only([7, 2, 3, 1, 2, 9, 8, 12, 13]) }, "$ctx.cpu_id in (1..=3, 7..=9, 12, 13)"],
  ["what is taken out", { threads: allBut([5]) }, "!($ctx.vtid in (5))"],
  ["some of some", { threads: { only: [5, 6, 7], but: [6] } }, "($ctx.vtid in (5..=7)) && (!($ctx.vtid in (6)))"],
  ["processes have numbers", { processes: only(["42"]) }, "$ctx.vpid in (42)"],
  ["or names, whose stars are stars", { processes: only(['my "app"', "a*\\"]) }, '$ctx.procname in ("my \\"app\\"", "a\\*\\\\")'],
  ["or both", { processes: only(["42", "app"]) }, '($ctx.vpid in (42)) || ($ctx.procname in ("app"))'],
  ["and neither", { processes: allBut(["42", "app"]) }, '(!($ctx.vpid in (42))) && (!($ctx.procname in ("app")))'],
  ["several are all true", { text: "a || b", cpus: only([0]) }, "(a || b) && ($ctx.cpu_id in (0))"],
  ["a comment ends before what follows", { text: "a // why", cpus: only([0]) }, "(a // why\n) && ($ctx.cpu_id in (0))"],
  ["events that are taken out", { events: allBut(["a:b"]) }, 'event.name != "a:b"'],
  ["of several", { events: allBut(["a:*", "b"]) }, '!(event.name in ("a:*", "b"))'],
  ["the first field that an event has counts", { names: MIXED, threads: only([5]) }, "has($ctx.tid) && $ctx.tid in (5) || !has($ctx.tid) && has($ctx.vtid) && $ctx.vtid in (5)"],
  ["events that do not say it are not taken out", { names: MIXED, processes: allBut(["5"]) }, "!(has($ctx.vpid) && $ctx.vpid in (5))"],
])("%s", (_, change, expression) => {
  expect(questionOf(filterOf(change))).toEqual({ filter: expression });
});

test("applications are asked for as their threads, else as their processes, else by name", () => {
  const chosen = filterOf({ applications: only(["app", "sh"]), owners: OWNERS });
  expect(expressionOf(chosen)).toBe("$ctx.vtid in (5..=7, 12)");
  expect(expressionOf({ ...chosen, applications: allBut(["app"]) })).toBe("!($ctx.vtid in (5..=7))");
  expect(expressionOf({ ...chosen, names: { ...LTTNG, thread: [] } })).toBe("$ctx.vpid in (5, 11)");
  expect(expressionOf({ ...chosen, names: { ...LTTNG, thread: [], process: [] } })).toBe('$ctx.procname in ("app", "app/*", "sh", "sh/*")');
  expect([isActive(chosen), needsNames({ ...chosen, names: null }), unanswered(chosen)]).toEqual([true, true, []]);
});

test("an application that nobody knows, or that no event tells of, is not asked for, which is told", () => {
  const unknown = filterOf({ applications: only(["gone"]), owners: OWNERS });
  expect([expressionOf(unknown), unanswered(unknown)]).toEqual(["", ["applications"]]);
  const silent = filterOf({ applications: only(["app"]), owners: OWNERS, names: NONE });
  expect([expressionOf(silent), unanswered(silent)]).toEqual(["", ["applications"]]);
  // While nobody has said who belongs to whom, it is too early to tell.
  expect(unanswered(filterOf({ applications: only(["app"]) }))).toEqual([]);
});

test("a field that all events have is the last one that is asked for", () => {
  const thread = [somewhere("$ctx.tid"), everywhere("perf_tid"), everywhere("common_pid")];
  expect(expressionOf(filterOf({ names: { ...NONE, thread }, threads: only([5]) }))).toBe("has($ctx.tid) && $ctx.tid in (5) || !has($ctx.tid) && perf_tid in (5)");
});

test("names of events are asked beside the expression, or in it where that is all there is", () => {
  const filter = filterOf({ text: "x", events: { only: ["sched_*", "a"], but: ["sched_stat"] } });
  expect(questionOf(filter)).toEqual({ filter: '(x) && (event.name != "sched_stat")', event: ["sched_*", "a"] });
  expect(queryOf(filterOf({ text: "x", events: only(["sched_*", "a"]) }))).toBe("filter=x&event=sched_*&event=a");
  expect(expressionOf(filter)).toBe('(x) && (event.name in ("sched_*", "a")) && (event.name != "sched_stat")');
});

test("more names than the server takes are part of the expression", () => {
  const many = Array.from({ length: 65 }, (_, number) => `e${number}`);
  expect(Object.keys(questionOf(filterOf({ events: only(many) })))).toEqual(["filter"]);
  expect(questionOf(filterOf({ events: only(many.slice(1)) })).event?.length).toBe(64);
});

test("analyses are of everything unless the rest is excluded", () => {
  expect(analysisOf(filterOf({ text: "x", mode: "hide" }))).toEqual({});
  expect(analysisOf(filterOf({ text: "x", events: only(["a"]), mode: "exclude" }))).toEqual({ filter: '(x) && (event.name == "a")' });
});

test("what no event says is not asked, and told", () => {
  const chosen = { cpus: only([1]), processes: only(["app"]), threads: only([5]) };
  const filter = filterOf({ names: { ...NONE, cpu: LTTNG.cpu, process: LTTNG.process }, ...chosen });
  expect(questionOf(filter)).toEqual({ filter: "$ctx.cpu_id in (1)" });
  expect(unanswered(filter)).toEqual(["processes", "threads"]);
  expect(unanswered(filterOf(chosen))).toEqual([]);
  const unknown = filterOf({ names: null, ...chosen });
  expect([questionOf(unknown), needsNames(unknown), unanswered(unknown), needsNames(filter)]).toEqual([{}, true, [], false]);
});

test("texts are written so that they are read again", () => {
  expect(quoted('a"b\\c\nd\te')).toBe('"a\\"b\\\\c\\nd\\te"');
});

const EVENTS = ["sched_switch", "sched_wakeup", "irq_entry"];
const matches = (named: string, event: string): boolean => new RegExp(`^${named.replaceAll("*", ".*")}$`).test(event);
const PATTERNS: Naming<string> = { matches, expand: (named) => EVENTS.filter((event) => matches(named, event)) };

test("a choice is as short as what was clicked", () => {
  let choice = withItem<string>(null, "irq_entry", false, PATTERNS);
  expect(choice).toEqual(allBut(["irq_entry"]));
  choice = withItem(choice, "irq_entry", true, PATTERNS);
  expect(choice).toBeNull();
  choice = withItem(only(["sched_*"]), "sched_switch", false, PATTERNS);
  expect(choice).toEqual({ only: ["sched_*"], but: ["sched_switch"] });
  expect(EVENTS.filter((event) => isChosen(choice, event, matches))).toEqual(["sched_wakeup"]);
  choice = withItem(choice, "irq_entry", true, PATTERNS);
  expect(choice).toEqual({ only: ["sched_*", "irq_entry"], but: ["sched_switch"] });
  expect(withItem(choice, "sched_switch", true, PATTERNS)).toEqual(only(["sched_*", "irq_entry"]));
});

test("one of a pattern that was taken out comes back alone", () => {
  expect(withItem(allBut(["sched_*"]), "sched_switch", true, PATTERNS)).toEqual(allBut(["sched_wakeup"]));
});

test("who takes out the last one has all again, and what is so already stays", () => {
  expect(withItem(only([5]), 5, false)).toBeNull();
  const choice = only([5, 6]);
  expect(withItem(choice, 5, true)).toBe(choice);
  expect(withItem(choice, 7, false)).toBe(choice);
  expect([4, 5, 6].filter(tester(withItem(choice, 6, false)))).toEqual([5]);
  expect([only([]), allBut([])]).toEqual([null, null]);
});
