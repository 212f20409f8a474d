//! Triggers in words, as `--trigger` takes them.
//!
//! ```text
//! end: stop on net:lost, net:late after 3 when port == 80
//! name effect  patterns           options      expression: the whole rest
//! ```

use std::ops::Range;

use kymo_filter::{Filter, nearest};

use crate::rule::words as rule;
use crate::select::SelectionRule;
use crate::trigger::{EXCLUDED, GATE_ALWAYS, TriggerEffect, TriggerOptions, TriggerScope};
use crate::words::{OptionWords, PlacedWord, WordsProblem, WordsProblemKind, count, free_name, patterns, time};

/// Words that may stand behind the patterns.
const OPTIONS: [&str; 8] = ["over", "after", "last", "for", "repeat", "every", "in", "when"];
const OPTIONS_EXPECTED: &str =
    "`over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`";
/// Words that others use for `when`.
const CONDITIONS: [&str; 4] = ["if", "where", "filter", "unless"];

impl TriggerOptions {
    /// A trigger in words: `[NAME:] EFFECT on GLOB[,GLOB...] [over LIMIT since GLOB[,GLOB...] [by FIELD]] [after
    /// COUNT] [last COUNT] [for TIME] [repeat [every TIME]] [in program] [when EXPR]`. Without a name it has that of its effect.
    ///
    /// # Errors
    ///
    /// Which word is wrong.
    ///
    /// ```
    /// use kymo_recorder::trigger::{TriggerEffect, TriggerOptions};
    /// let trigger = TriggerOptions::parse("end: stop on net:lost after 3 when port == 80").unwrap();
    /// assert_eq!((trigger.name.as_str(), trigger.effect, trigger.after), ("end", TriggerEffect::Stop, Some(3)));
    /// ```
    pub fn parse(text: &str) -> Result<Self, WordsProblem> {
        parse(text).map(|(trigger, _)| trigger)
    }

    /// Several triggers: those without a name get one that no other has.
    ///
    /// # Errors
    ///
    /// The number of the text that is none, and which of its words is wrong.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, (usize, WordsProblem)> {
        let mut all: Vec<Self> = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let (mut trigger, name) = parse(text).map_err(|problem| (number, problem))?;
            let known: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            trigger.name = free_name(&trigger.name, name, &known).map_err(|problem| (number, problem))?;
            all.push(trigger);
        }
        Ok(all)
    }
}

/// A trigger, and the place of its name, if it has one.
fn parse(text: &str) -> Result<(TriggerOptions, Option<Range<usize>>), WordsProblem> {
    let mut words = OptionWords::of(text);
    let name = name(&mut words)?;
    let effect = effect(&mut words)?;
    let gate = if effect.is_gate() { Some(gate(&mut words, effect)?) } else { None };
    match words.take() {
        Some(word) if word.text == "on" => {}
        other => {
            let event = other.as_ref().filter(|word| word.text.contains(':'));
            let before =
                gate.as_ref().map_or_else(|| effect.word().to_owned(), |rule| format!("{} {rule}", effect.word()));
            let help = event.map(|event| format!("`{before} on {}`", event.text));
            return Err(words.expected("`on`", other.as_ref(), help));
        }
    }
    let events = patterns(&mut words, &OPTIONS)?;
    let mut trigger = TriggerOptions {
        name: name.as_ref().map_or(effect.word(), |name| name.text).to_owned(),
        rule: SelectionRule { events, ..SelectionRule::default() },
        effect,
        scope: TriggerScope::Session,
        repeats: gate.is_some(),
        interval_ns: None,
        for_ns: None,
        after: None,
        asks: None,
        last: None,
        gate,
    };
    options(&mut words, &mut trigger)?;
    Ok((trigger, name.map(|name| name.span)))
}

/// The name, with a colon behind it.
fn name<'t>(words: &mut OptionWords<'t>) -> Result<Option<PlacedWord<'t>>, WordsProblem> {
    let Some(first) = words.peek() else { return Ok(None) };
    // `NAME: EFFECT`, `NAME:EFFECT`, `NAME : EFFECT`
    let length = match first.text.rsplit_once(':') {
        Some((name, effect)) if effect.is_empty() || TriggerEffect::of(effect).is_some() => name.len(),
        Some(_) => return Ok(None),
        None => {
            let behind = OptionWords { at: first.span.end, ..*words }.peek();
            let Some(colon) = behind.filter(|word| word.text == ":") else { return Ok(None) };
            words.at = colon.span.end;
            first.text.len()
        }
    };
    let name = PlacedWord { text: &first.text[..length], span: first.span.start..first.span.start + length };
    words.at = words.at.max(name.span.end + usize::from(first.text.len() > length));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match name.text.len() {
        1..=64 if name.text.bytes().all(is_plain) => Ok(Some(name)),
        _ => Err(first.problem(WordsProblemKind::Name)),
    }
}

fn effect(words: &mut OptionWords<'_>) -> Result<TriggerEffect, WordsProblem> {
    let word = words.take();
    word.as_ref().and_then(|word| TriggerEffect::of(word.text)).ok_or_else(|| {
        let found = word.as_ref().map_or("", |word| word.text);
        let near = nearest(found, TriggerEffect::ALL.map(TriggerEffect::word));
        let help = match (near.first(), found.contains(':')) {
            (Some(near), _) => Some(format!("did you mean `{near}`?")),
            (None, true) => Some(format!("`stop on {found}`")),
            (None, false) => None,
        };
        words.expected("`start`, `stop`, `snapshot`, `open RULE` or `close RULE`", word.as_ref(), help)
    })
}

/// The rule that is opened or closed.
fn gate(words: &mut OptionWords<'_>, effect: TriggerEffect) -> Result<String, WordsProblem> {
    let word = words.take();
    match word {
        Some(word) if word.text != "on" => Ok(word.text.to_owned()),
        other => {
            let help = format!("`{} RULE on EVENT`: a rule of `--kernel-only 'RULE: EVENTS closed'`", effect.word());
            Err(words.expected("the name of a rule about the kernel", other.as_ref(), Some(help)))
        }
    }
}

fn options(words: &mut OptionWords<'_>, trigger: &mut TriggerOptions) -> Result<(), WordsProblem> {
    let mut every = None;
    let mut seen: Vec<&str> = Vec::new();
    while let Some(word) = words.take() {
        if OPTIONS.contains(&word.text) && seen.contains(&word.text) {
            return Err(word.problem(WordsProblemKind::Twice(word.text.to_owned())));
        }
        if ["over", "after"].contains(&word.text) && seen.iter().any(|known| ["over", "after"].contains(known)) {
            return Err(word.problem(WordsProblemKind::Excluded(EXCLUDED)));
        }
        seen.push(word.text);
        match word.text {
            "over" => {
                words.at = word.span.start;
                trigger.asks = Some(rule::question(words)?);
            }
            "after" | "in" if trigger.effect.is_gate() => {
                return Err(word.problem(WordsProblemKind::Excluded(GATE_ALWAYS)));
            }
            "after" => trigger.after = Some(count(words, u32::MAX)?),
            "last" if trigger.effect != TriggerEffect::Snapshot => {
                return Err(word.problem(WordsProblemKind::Excluded("only a snapshot has the last events")));
            }
            "last" => trigger.last = Some(count(words, u32::MAX)?),
            "for" if trigger.effect != TriggerEffect::Start => {
                return Err(word.problem(WordsProblemKind::ForWithoutStart));
            }
            "for" => trigger.for_ns = Some(time(words)?),
            "every" => (trigger.interval_ns, every) = (Some(time(words)?), Some(word)),
            "repeat" => trigger.repeats = true,
            "in" => match words.take() {
                Some(word) if word.text == "program" => trigger.scope = TriggerScope::Program,
                other => return Err(words.expected("`program`", other.as_ref(), Some("`in program`".to_owned()))),
            },
            "when" => match words.take_rest() {
                "" => return Err(word.problem(WordsProblemKind::NoExpression)),
                filter => match option_behind(words.text, word.span.end, filter) {
                    Some(problem) => return Err(problem),
                    None => trigger.rule.filter = Some(filter.to_owned()),
                },
            },
            found => return Err(words.expected(OPTIONS_EXPECTED, Some(&word), option_help(found))),
        }
    }
    match every.filter(|_| !trigger.repeats) {
        Some(every) => Err(every.problem(WordsProblemKind::EveryWithoutRepeat)),
        None => Ok(()),
    }
}

/// An option that stands behind the expression, which begins behind `at`.
fn option_behind(text: &str, at: usize, filter: &str) -> Option<WordsProblem> {
    if Filter::parse(filter).is_ok() {
        return None;
    }
    let mut words = OptionWords { text, at };
    while let Some(word) = words.take() {
        let is_option = OPTIONS.contains(&word.text) && Filter::parse(&text[at..word.span.start]).is_ok();
        if is_option {
            let help =
                format!("an expression is the last: `{}` stands before `when`", text[word.span.start..].trim_end());
            return Some(words.expected("an operator or the end", Some(&word), Some(help)));
        }
    }
    None
}

/// How to write a word that is no option.
fn option_help(found: &str) -> Option<String> {
    if CONDITIONS.contains(&found) || found.contains(['=', '<', '>']) {
        return Some("an expression stands behind `when`, as the last: `when port == 80`".to_owned());
    }
    if found.contains(':') {
        return Some("a comma stands between two events: `stop on net:lost,net:late`".to_owned());
    }
    nearest(found, OPTIONS).first().map(|near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> TriggerOptions {
        TriggerOptions::parse(text).unwrap_or_else(|problem| panic!("{}", problem.render(text)))
    }

    #[test]
    fn triggers_are_words() {
        let trigger = parsed("stop on net:lost,!net:lost_too when port == 80 && host == \" when \"");
        assert_eq!((trigger.name.as_str(), trigger.effect), ("stop", TriggerEffect::Stop));
        assert_eq!(trigger.rule.events, ["net:lost", "!net:lost_too"]);
        assert_eq!(trigger.rule.filter.as_deref(), Some("port == 80 && host == \" when \""));
        let trigger = parsed("first: start on bench:* for 5ms repeat every 1s in program");
        assert_eq!(
            (trigger.name.as_str(), trigger.for_ns, trigger.interval_ns),
            ("first", Some(5_000_000), Some(1_000_000_000))
        );
        assert!(trigger.repeats && trigger.scope == TriggerScope::Program && trigger.rule.filter.is_none());
        let trigger = parsed("  stop\ton bench:*   after 1000 ");
        assert_eq!((trigger.after, trigger.repeats), (Some(1000), false));
    }

    #[test]
    fn spaces_may_stand_at_commas_and_colons() {
        for text in ["stop on a:b,c:d", "stop on a:b, c:d", "stop on a:b ,c:d", "stop on a:b , c:d"] {
            assert_eq!(parsed(&format!("{text} after 2")).rule.events, ["a:b", "c:d"], "{text}");
        }
        for text in ["end: stop on a:b", "end:stop on a:b", "end : stop on a:b"] {
            assert_eq!((parsed(text).name, parsed(text).effect), ("end".to_owned(), TriggerEffect::Stop), "{text}");
        }
    }

    #[test]
    fn names_differ() {
        let all = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let all = TriggerOptions::parse_all(&texts).map_err(|(at, problem)| (at, problem.render(&texts[at])));
            all.map(|all| all.into_iter().map(|trigger| trigger.name).collect::<Vec<_>>())
        };
        assert_eq!(all(&["stop on a:b", "stop on a:c"]), Ok(vec!["stop".to_owned(), "stop-2".to_owned()]));
        let lines = "another one is called `x`\n    x: stop on a:c\n    ^\nhelp: names differ\n";
        assert_eq!(all(&["x: stop on a:b", "x: stop on a:c"]), Err((1, lines.to_owned())));
    }

    #[test]
    fn each_problem_has_its_place_and_its_remedy() {
        let texts = [
            "begin on a:b",
            "stpo on a:b",
            "start on a:b when n == 3 for 20ms",
            "net:lost",
            "stop",
            "stop net:lost",
            "stop on",
            "stop on lost",
            "stop on a:b,,c:d",
            "stop on a:b, after 2",
            "stop on a:b,",
            "stop on ,a:b",
            "stop on a:b c:d",
            "stop on a:b for 5",
            "start on a:b for 0s",
            "start on a:b for soon",
            "start on a:b for",
            "start on a:b every 5s",
            "start on a:b soon",
            "start on a:b reepat",
            "stop on a:b if port == 80",
            "stop on a:b after 0",
            "stop on a:b after",
            "stop on a:b after 2 after 3",
            "stop on a:b over 5ms since a:c after 2",
            "stop on a:b last 5",
            "stop on a:b in session",
            "stop on a:b when",
            "x/y: stop on a:b",
            ": stop on a:b",
        ];
        let told = |text: &&str| {
            let problem = TriggerOptions::parse(text).expect_err(text);
            format!("--- {text}\n{}", problem.render(text))
        };
        expect_test::expect![[r#"
            --- begin on a:b
            expected `start`, `stop`, `snapshot`, `open RULE` or `close RULE`, found `begin`
                begin on a:b
                ^^^^^
            --- stpo on a:b
            expected `start`, `stop`, `snapshot`, `open RULE` or `close RULE`, found `stpo`
                stpo on a:b
                ^^^^
            help: did you mean `stop`?
            --- start on a:b when n == 3 for 20ms
            expected an operator or the end, found `for`
                start on a:b when n == 3 for 20ms
                                         ^^^
            help: an expression is the last: `for 20ms` stands before `when`
            --- net:lost
            expected `start`, `stop`, `snapshot`, `open RULE` or `close RULE`, found `net:lost`
                net:lost
                ^^^^^^^^
            help: `stop on net:lost`
            --- stop
            expected `on`, found the end
                stop
                    ^
            --- stop net:lost
            expected `on`, found `net:lost`
                stop net:lost
                     ^^^^^^^^
            help: `stop on net:lost`
            --- stop on
            expected an event `PROVIDER:NAME`, found the end
                stop on
                       ^
            --- stop on lost
            an event is called PROVIDER:NAME; `lost:*` is all of a provider, `*:lost` one of this name of any
                stop on lost
                        ^^^^
            --- stop on a:b,,c:d
            there is no event at this comma
                stop on a:b,,c:d
                            ^
            help: `stop on net:lost,net:late`
            --- stop on a:b, after 2
            there is no event at this comma
                stop on a:b, after 2
                           ^
            help: `stop on net:lost,net:late`
            --- stop on a:b,
            there is no event at this comma
                stop on a:b,
                           ^
            help: `stop on net:lost,net:late`
            --- stop on ,a:b
            there is no event at this comma
                stop on ,a:b
                        ^
            help: `stop on net:lost,net:late`
            --- stop on a:b c:d
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `c:d`
                stop on a:b c:d
                            ^^^
            help: a comma stands between two events: `stop on net:lost,net:late`
            --- stop on a:b for 5
            only a trigger that starts can say for how long
                stop on a:b for 5
                            ^^^
            help: `start on bench:begin for 5s` stops after that time
            --- start on a:b for 0s
            a time is more than 0
                start on a:b for 0s
                                 ^^
            help: leave the option out, or write `1ms`
            --- start on a:b for soon
            `soon` is no time
                start on a:b for soon
                                 ^^^^
            help: a duration is a number and one of ns, us, ms, s, min, h, d: `1.5ms`
            --- start on a:b for
            expected a time, such as `5s`, found the end
                start on a:b for
                                ^
            --- start on a:b every 5s
            only a trigger that repeats has a least time between two firings
                start on a:b every 5s
                             ^^^^^
            help: `repeat every 1min`
            --- start on a:b soon
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `soon`
                start on a:b soon
                             ^^^^
            --- start on a:b reepat
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `reepat`
                start on a:b reepat
                             ^^^^^^
            help: did you mean `repeat`?
            --- stop on a:b if port == 80
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `if`
                stop on a:b if port == 80
                            ^^
            help: an expression stands behind `when`, as the last: `when port == 80`
            --- stop on a:b after 0
            `0` is no number of events
                stop on a:b after 0
                                  ^
            help: a number of events is at least 1, and at most 4294967295
            --- stop on a:b after
            expected a number of events, found the end
                stop on a:b after
                                 ^
            --- stop on a:b after 2 after 3
            `after` stands here for the second time
                stop on a:b after 2 after 3
                                    ^^^^^
            help: leave one out
            --- stop on a:b over 5ms since a:c after 2
            a trigger has one of `after` and `over`: it fires at the first event that took so long
                stop on a:b over 5ms since a:c after 2
                                               ^^^^^
            --- stop on a:b last 5
            only a snapshot has the last events
                stop on a:b last 5
                            ^^^^
            --- stop on a:b in session
            expected `program`, found `session`
                stop on a:b in session
                               ^^^^^^^
            help: `in program`
            --- stop on a:b when
            there is no expression behind `when`
                stop on a:b when
                            ^^^^
            help: `when port == 80`
            --- x/y: stop on a:b
            a name has 1 to 64 letters, digits, `-`, `_` and `.`
                x/y: stop on a:b
                ^^^^
            help: it stands before the rest, with a colon: `end: ...`
            --- : stop on a:b
            a name has 1 to 64 letters, digits, `-`, `_` and `.`
                : stop on a:b
                ^
            help: it stands before the rest, with a colon: `end: ...`
        "#]]
        .assert_eq(&texts.iter().map(told).collect::<String>());
    }
}
