import { expect, test } from "vitest";
import { Shape, ShapeFault, parseJson } from "./json.ts";
import { levelText, lossTexts, matchedText, patternsIn, ratesOf, readMatched, readRecording, readSnapshot, sentenceOf, sparkline, triggerState, uncounted, whereText, withSample, type RecordedClass, type Sample } from "./recording.ts";

const SESSION = `{"session":"server","output":"/tmp/traces","state":"recording","mode":"write","command":"./server 1","milliseconds":1500,"events":12345678901234,"bytes":7,
  "programs":2,"lost":{"full":1,"no_lane":2,"unwritten":3,"undefined":4},"late_programs":2,"late_folders":["/a","/b"],"has_gap":true,"filtered":4,"problems":["the disk is full"],
  "classes":[{"name":"net:sent","level":6,"programs":2,"on":true,"filters":["port == 443"],"runs":["native"],"why":null}],
  "snapshots":null,"more_classes":3}`;

const read = (text: string): unknown => readRecording(new Shape(parseJson(text), "recording"));

test("what the server says of a session is read", () => {
  expect(read(`{"recording":${SESSION}}`)).toEqual({
    session: "server",
    output: "/tmp/traces",
    state: "recording",
    mode: "write",
    isOn: true,
    triggers: [],
    rules: [],
    command: "./server 1",
    milliseconds: 1_500,
    events: 12_345_678_901_234,
    bytes: 7,
    programs: 2,
    lost: { full: 1, noLane: 2, unwritten: 3, undefined: 4 },
    latePrograms: 2,
    lateFolders: ["/a", "/b"],
    hasGap: true,
    filtered: 4,
    problems: ["the disk is full"],
    classes: [{ name: "net:sent", level: 6, programs: 2, isOn: true, filters: ["port == 443"], runs: ["native"], why: null }],
    moreClasses: 3,
    snapshots: null,
    problem: null,
  });
  expect(read(`{"recording":${SESSION.replace('"snapshots":null,"more_classes":3', '"snapshots":2')},"problem":"the recorder is stopped"}`)).toMatchObject({ snapshots: 2, moreClasses: 0, problem: "the recorder is stopped" });
  expect(read('{"recording":null,"problem":"the recorder is stopped"}')).toBeNull();
  expect(read('{"recording":null}')).toBeNull();
  expect([read("{}"), read("[]")]).toEqual([null, null]);
  // What a newer one says is read as far as it is known.
  const newer = SESSION.replace('"write"', '"both"').replace('"state":"recording"', '"state":"resting","mood":"good"').replace('"./server 1"', "null");
  expect(read(`{"recording":${newer}}`)).toMatchObject({ state: "ended", mode: "write", command: null });
});

test("triggers of a session are read, and told in words", () => {
  const trigger = (more: string): string => `{"name":"stop","effect":"stop","events":["net:lost"],"filter":"port == 80","repeats":false,"suppressed":0,${more}}`;
  const fired = trigger('"armed":false,"firings":1,"last":{"ns":"1795789830118920835","event":"net:lost","program":"server","pid":7,"tid":9},"watched":1,"why":"it is old"');
  const armed = trigger('"armed":true,"firings":0,"last":null,"watched":0,"why":null').replace('"effect":"stop"', '"effect":"start"').replace('"repeats":false', '"repeats":true');
  const { isOn, triggers } = readRecording(new Shape(parseJson(`{"recording":${SESSION.replace('"programs":2,"lost"', `"on":false,"triggers":[${fired},${armed}],"programs":2,"lost"`)}}`), "recording")) ?? { isOn: true, triggers: [] };
  expect(isOn).toBe(false);
  expect(triggers).toMatchObject([
    { name: "stop", effect: "stop", events: ["net:lost"], filter: "port == 80", isArmed: false, last: "net:lost of server (process 7, thread 9)", watched: 1, why: "it is old" },
    { effect: "start", repeats: true, isArmed: true, last: null, why: null },
  ]);
  expect(triggers.map(triggerState)).toEqual(["has fired once", "armed"]);
  const [first] = triggers;
  expect(first === undefined ? [] : [{ ...first, isArmed: true }, { ...first, firings: 0 }, { ...first, repeats: true, firings: 1_200 }].map(triggerState)).toEqual(["armed; has fired once", "disarmed", "disarmed; has fired 1,200 times"]);
});

test("parts of a recording that are missing without a count are problems of the traces", () => {
  const told = (text: string): readonly string[] => uncounted(readRecording(new Shape(parseJson(`{"recording":${text}}`), "recording"))).map(({ rule, message, place }) => `${place}: ${rule}: ${message}`);
  expect(told(SESSION)).toEqual([
    "session server: recorder-gap: no recorder ran for a while: programs that came and went meanwhile are not recorded",
    "session server: late-programs: events of 2 programs from before the recorder found them are not recorded",
    "session server: late-folders: programs in /a and 1 other folder that ended before the recorder found that folder are not recorded, if there were any",
  ]);
  const one = SESSION.replace('"late_programs":2,"late_folders":["/a","/b"],"has_gap":true', '"late_programs":1,"late_folders":[],"has_gap":false');
  expect(told(one)).toEqual(["session server: late-programs: events of 1 program from before the recorder found it are not recorded"]);
  const older = SESSION.replace('"late_programs":2,"late_folders":["/a","/b"],"has_gap":true,', "");
  expect([told(older), uncounted(null)]).toEqual([[], []]);
});

test.each([
  ['{"recording":5}', "recording.recording: found 5, expected an object"],
  ['{"recording":{}}', "recording.recording.session: found nothing, expected a text"],
  [`{"recording":${SESSION.replace('"lost":{', '"lost":[{').replace('"unwritten":3,"undefined":4}', '"unwritten":3,"undefined":4}]')}}`, "recording.recording.lost.full: found nothing, expected a number"],
  [`{"recording":${SESSION.replace('"on":true', '"on":1')}}`, "recording.recording.classes[0].on: found 1, expected true or false"],
  [`{"recording":${SESSION.replace('["port == 443"]', "null")}}`, "recording.recording.classes[0].filters: found null, expected a list"],
  [`{"recording":${SESSION.replace('["the disk is full"]', "[7]")}}`, "recording.recording.problems[0]: found 7, expected a text"],
])("%s is refused", (text, message) => {
  expect(() => read(text)).toThrow(ShapeFault);
  expect(() => read(text)).toThrow(message);
});

test("what was matched, and a snapshot, are read", () => {
  const matched = '{"events":2,"programs":1,"all_programs":3,"unmatched":[{"pattern":"nett:*","near":["net:*"]}],"notes":["a\\nb"]}';
  expect(readMatched(new Shape(parseJson(matched), "matched"))).toEqual({ sentence: null, events: 2, programs: 1, allPrograms: 3, unmatched: [{ pattern: "nett:*", near: ["net:*"] }], notes: ["a\nb"] });
  expect(() => readMatched(new Shape(parseJson(matched.replace('["net:*"]', '"net:*"')), "matched"))).toThrow("matched.unmatched[0].near: found \"net:*\", expected a list");
  expect(readSnapshot(new Shape({ output: "/a", events: 5 }, "snapshot"))).toEqual({ output: "/a", events: 5, problems: [] });
  expect(readSnapshot(new Shape({ output: "/a", events: 5, problems: ["too late"] }, "snapshot")).problems).toEqual(["too late"]);
  expect(() => readSnapshot(new Shape({ output: "/a", events: "many" }, "snapshot"))).toThrow("snapshot.events");
});

test.each([
  ["enable", 1, 1, 2, "1 event of 1 program is recorded."],
  ["enable", 1_200, 2, 2, "1,200 events of 2 programs are recorded."],
  ["disable", 2, 1, 2, "2 events of 1 program are not recorded any more."],
  ["filter", 1, 1, 2, "1 event of 1 program has this filter, where it is recorded."],
  ["enable", 0, 0, 0, "No program runs that records; it holds for those that begin."],
  ["filter", 0, 0, 3, "No event of 3 programs matches; it holds for those that come."],
] as const)("to %s %d events of %d of %d programs is said so", (act, events, programs, allPrograms, text) => {
  expect(matchedText(act, { sentence: null, events, programs, allPrograms, unmatched: [], notes: [] })).toBe(text);
});

test("the recorder's own words go before those of the page", () => {
  expect(matchedText("enable", { sentence: "2 events of 1 program are recorded", events: 0, programs: 0, allPrograms: 0, unmatched: [], notes: [] })).toBe("2 events of 1 program are recorded.");
  expect([sentenceOf("no room"), sentenceOf("What?"), sentenceOf("found the end\n  a ==\n      ^\n")]).toEqual(["No room.", "What?", "Found the end\n  a ==\n      ^"]);
});

test("patterns stand between spaces or commas, each once", () => {
  expect(patternsIn("  net:*, server:request_begin net:* ")).toEqual(["net:*", "server:request_begin"]);
  expect(patternsIn(" , ")).toEqual([]);
});

test("a class says its level, and where its filter runs", () => {
  const one: RecordedClass = { name: "a:b", level: 6, programs: 1, isOn: true, filters: [], runs: [], why: null };
  expect([levelText(0), levelText(6), levelText(14), levelText(99), levelText(-1)]).toEqual(["emergency", "info", "debug", "level 99", "level -1"]);
  expect(whereText(one)).toBeNull();
  const filtered = { ...one, filters: ["x == 1"] };
  expect(whereText(filtered)).toBe("is put into the program");
  expect(whereText({ ...filtered, runs: ["native"] })).toBe("runs in the program, as machine code");
  expect(whereText({ ...filtered, runs: ["native", "recorder"], why: "the program runs on another machine" })).toBe("runs in the program, as machine code; in the recorder (the program runs on another machine)");
  expect(whereText({ ...filtered, runs: ["elsewhere"] })).toBe("runs elsewhere");
});

test("what is lost is said by its reasons", () => {
  expect(lossTexts({ full: 0, noLane: 0, unwritten: 0, undefined: 0 })).toEqual([]);
  expect(lossTexts({ full: 1_234, noLane: 0, unwritten: 1, undefined: 0 })).toEqual(["1,234 found no room in memory", "1 could not be written to the disk"]);
});

test("events a second are those between what was told, for a minute", () => {
  let samples: readonly Sample[] = [];
  for (let step = 0; step <= 300; step++) {
    samples = withSample(samples, { milliseconds: step * 500, events: step * step });
  }
  const rates = ratesOf(samples);
  expect([samples.length, rates.length, rates.at(-1)]).toEqual([121, 120, (300 ** 2 - 299 ** 2) * 2]);
  // The same told twice is nothing new; less is another session.
  expect(withSample(samples, { milliseconds: 150_000, events: 90_000 })).toBe(samples);
  expect(withSample(samples, { milliseconds: 500, events: 3 })).toEqual([{ milliseconds: 500, events: 3 }]);
  expect(ratesOf([])).toEqual([]);
});

test("the line of rates ends at the right, and is as high as the box", () => {
  expect(sparkline([], 119, 20)).toBe("");
  expect(sparkline([0, 5, 10], 119, 20)).toBe("117.0,20.0 118.0,10.0 119.0,0.0");
  expect(sparkline([0, 0], 119, 20)).toBe("118.0,20.0 119.0,20.0");
});

test("one lost event is told as one", () => {
  expect(lossTexts({ full: 1, noLane: 1, unwritten: 0, undefined: 1 })).toEqual(["1 found no room in memory", "1 was of a thread that had no memory at all", "1 has a definition that cannot be used"]);
  expect(lossTexts({ full: 0, noLane: 2, unwritten: 1, undefined: 2 })).toEqual(["2 were of threads that had no memory at all", "1 could not be written to the disk", "2 have definitions that cannot be used"]);
});
