import { expect, test } from "vitest";
import { Fields, Figure, durationOf, extentOf, jsonOf, parseFields, readItems, sameItem } from "./items.ts";

const VALUE = { number: 0, label: "multithread (2673)", kind: "thread", colour: 720_857_754, track: 61 };

/** An answer as a server writes it, where times are larger than a double is exact. */
function answerOf(...items: string[]): string {
  return `{"track":{"number":3},"complete":true,"items":[${items.join(",")}],"next_ns":1795219372255278554}`;
}

test("a run has its true ends, and says which are not known", () => {
  const run = `{"kind":"run","begin_ns":1795219372255338980,"end_ns":1795219372255544157,"duration_ns":205177,"begin_known":true,"end_known":true,"in_doubt":false,"value":${JSON.stringify(VALUE)}}`;
  const found = readItems(answerOf(run, run.replace('"begin_known":true', '"begin_known":false')));
  expect(found.next).toBe(1_795_219_372_255_278_554n);
  const [known, open] = found.items;
  if (known === undefined || open === undefined) {
    throw new Error("two runs were told");
  }
  expect(known).toMatchObject({ kind: "run", value: { label: "multithread (2673)", kind: "thread", track: 61 } });
  expect(extentOf(known)).toEqual({ begin: 1_795_219_372_255_338_980n, end: 1_795_219_372_255_544_157n });
  expect([durationOf(known), durationOf(open)]).toEqual([205_177n, null]);
});

test("an arrow says who woke whom, and when that one ran", () => {
  const arrow = `{"kind":"arrow","begin_ns":1457113582970930497,"end_ns":1457113582970932691,"duration_ns":2194,"end_known":true,"received_first":false,"from":9,"to":61,"value":${JSON.stringify(VALUE)},"waker":null}`;
  const waker = `"waker":{"number":1,"label":"thread 5720","kind":"thread","colour":1,"track":3080}`;
  const { items } = readItems(answerOf(arrow, arrow.replace('"waker":null', waker)));
  expect(items.map((item) => item.kind === "arrow" && [item.from, item.to, item.waker?.label])).toEqual([[9, 61, undefined], [9, 61, "thread 5720"]]);
});

test("fields of an event are what was written: large numbers, texts of digits, structures in lists", () => {
  const event = '{"payload":{"address":18446744073709551615,"name":"18446744073709551615","part":0.10,"kind":{"value":5,"labels":["CUSTOM"]},"empty":[],"none":null,"a\\"b":true}}';
  const [item] = readItems(answerOf(`{"kind":"event","time_ns":1795219372255263261,"value":${JSON.stringify(VALUE)},"event":${event}}`)).items;
  if (item?.kind !== "event" || item.event === null) {
    throw new Error("an event was told");
  }
  const payload = item.event.members.get("payload") as Fields;
  expect(payload.members.get("address")).toEqual(new Figure("18446744073709551615"));
  expect(payload.members.get("name")).toBe("18446744073709551615");
  expect([(payload.members.get("part") as Figure).isWhole, (payload.members.get("address") as Figure).isWhole]).toEqual([false, true]);
  expect(extentOf(item)).toEqual({ begin: item.time, end: item.time });
  expect(jsonOf(item.event).replaceAll(": ", ":").replaceAll(", ", ",")).toBe(event);
  expect(jsonOf(payload.members.get("kind") ?? null, "lines")).toBe('{\n  "value": 5,\n  "labels": [\n    "CUSTOM"\n  ]\n}');
});

test("an event that cannot be told has no fields, and what a newer server tells is left out", () => {
  const { items } = readItems(answerOf(`{"kind":"event","time_ns":1,"value":${JSON.stringify(VALUE)},"event":null}`, `{"kind":"knot","value":${JSON.stringify(VALUE)}}`));
  expect(items).toEqual([{ kind: "event", time: 1n, value: { label: "multithread (2673)", kind: "thread", colour: 720_857_754, track: 61 }, event: null, thread: null, bases: [] }]);
});

test("what is wrong with an answer is said by path", () => {
  expect(() => readItems('{"complete":true,"items":[{"kind":"run","begin_ns":1}],"next_ns":null}')).toThrow("items.items[0].value: found nothing");
  expect(() => readItems('{"complete":1,"items":[]}')).toThrow("items.complete: found 1, expected true or false");
});

test("JSON of all kinds is read and written again", () => {
  for (const text of ["-5", "1e400", "[]", "{}", '"a\\u0000b"', "[1, [2, {\"a\": -0.50}]]", "null", "false"]) {
    expect(jsonOf(parseFields(text))).toBe(text);
  }
});

test("an item is the same if it is on the same track at the same time", () => {
  const item = { track: "a", time: 5n as never };
  expect([sameItem(null, null), sameItem(item, null), sameItem(item, { ...item }), sameItem(item, { ...item, track: "b" })]).toEqual([true, false, true, false]);
});
