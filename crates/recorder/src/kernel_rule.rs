//! Rules about events of the kernel in words, as `--kernel-only` takes them.
//!
//! ```text
//! slow: syscalls over 5ms per name when comm == "app"
//! disk: block_rq_complete over p99 since block_rq_issue by rq per disk
//! name  name patterns     limit    name patterns        key   kinds    condition
//! ```

use std::collections::BTreeMap;

use kymo_filter::{Filter, nearest};

use crate::kernel_pairs::{CALLS, since_help};
use crate::rule::words::{key, limit, name, plain};
use crate::rule::{KEYS_MAX, KernelTest, KeyField, RuleOptions, RuleQuestion, RuleTest};
use crate::tracepoints::patterns;
use crate::watch::words::list;
use crate::words::{self, OptionWords, PlacedWord, WordsProblem, WordsProblemKind};

const KEYS_EXPECTED: &str = "`by FIELD`, `per FIELD`, `when EXPRESSION` or the end";
const BETWEEN_EXPECTED: &str = "`by FIELD`, `closed`, `when EXPRESSION` or the end";

impl RuleOptions {
    /// Rules about events of the kernel: `[NAME:] EVENTS over LIMIT since EVENTS [by FIELD[,FIELD]] [per FIELD] [when EXPRESSION]`,
    /// `... between EVENTS and EVENTS [by FIELD[,FIELD]] [closed] [when EXPRESSION]`, or `... [closed] when EXPRESSION`. Those without a name get one that no other has.
    ///
    /// # Errors
    ///
    /// The problem, with its place underlined.
    ///
    /// ```
    /// use kymo_recorder::rule::RuleOptions;
    /// let rules = RuleOptions::parse_of_kernel(&["syscalls over 5ms per name".to_owned()]).unwrap();
    /// assert_eq!(rules[0].words(), "raw_syscalls:sys_exit over 5ms since raw_syscalls:sys_enter by thread per name");
    /// ```
    pub fn parse_of_kernel(texts: &[String]) -> Result<Vec<Self>, String> {
        let mut all: Vec<Self> = Vec::new();
        for text in texts {
            let mut words = OptionWords::of(text);
            let rendered = |problem: WordsProblem| problem.render(text).trim_end().to_owned();
            let (mut rule, place) = times(&mut words).map_err(rendered)?;
            if words.next_if("when").is_some() {
                rule.condition = Some(condition(words.take_rest(), text)?);
            } else if let Some(other) = words.take() {
                return Err(rendered(unexpected(&words, &other, &rule.asks.test)));
            }
            let known: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            rule.name = words::free_name(&rule.name, place, &known).map_err(rendered)?;
            all.push(rule);
        }
        Ok(all)
    }
}

/// A word stands where the rule ends, or its condition begins.
fn unexpected(words: &OptionWords<'_>, other: &PlacedWord<'_>, test: &RuleTest) -> WordsProblem {
    let (expected, known) = match test {
        RuleTest::OfKernel { test: KernelTest::Between { .. }, .. } => {
            (BETWEEN_EXPECTED, &["by", "closed", "when"][..])
        }
        RuleTest::OfKernel { .. } => ("`when EXPRESSION` or the end", &["when"][..]),
        _ => (KEYS_EXPECTED, &["by", "per", "when"][..]),
    };
    let help = match other.text {
        "per" => {
            Some("kinds have limits of their own, which only `over` has; `by FIELD` tells values apart".to_owned())
        }
        text => nearest(text, known.iter().copied()).first().map(|near| format!("did you mean `{near}`?")),
    };
    words.expected(expected, Some(other), help)
}

/// All of a rule but its condition, and the place of its name, if it has one.
fn times(words: &mut OptionWords<'_>) -> Result<(RuleOptions, Option<std::ops::Range<usize>>), WordsProblem> {
    let name = name(words)?;
    let behind = ["over", "between", "since", "by", "per", "closed", "when"];
    let written = list(words, &behind, "an event, such as `block_rq_complete`")?;
    let mut asked = match words.peek().map(|word| word.text) {
        Some("over") => over(words, &written)?,
        Some("between") => between(words)?,
        Some("when" | "closed") => {
            let test = RuleTest::OfKernel { test: KernelTest::Each, is_closed: false };
            RuleQuestion { test, keys: Vec::new() }
        }
        _ => {
            let help = "`syscalls over 5ms`, `kmalloc between sys_enter and sys_exit`, `netif_receive_skb when skb->dev->name == \"lo\"`";
            let other = words.peek();
            let expected = "`over LIMIT`, `between EVENT and EVENT` or `when EXPRESSION`";
            return Err(words.expected(expected, other.as_ref(), Some(help.to_owned())));
        }
    };
    if let RuleTest::OfKernel { is_closed, .. } = &mut asked.test {
        *is_closed = words.next_if("closed").is_some();
    }
    let events = match &asked.test {
        RuleTest::Over { since, .. } if written == [CALLS] && *since == pair("sys_enter") => pair("sys_exit"),
        _ => events(&written),
    };
    let (name, span) = name.map_or_else(|| (plain(&written), None), |name| (name.text.to_owned(), Some(name.span)));
    Ok((RuleOptions { name, events, asks: asked, set: None, limits: BTreeMap::new(), condition: None }, span))
}

fn pair(name: &str) -> Vec<String> {
    vec![format!("raw_syscalls:{name}")]
}

/// `over LIMIT since EVENTS [by FIELD[,FIELD]] [per FIELD]`
fn over(words: &mut OptionWords<'_>, written: &[String]) -> Result<RuleQuestion, WordsProblem> {
    words.take();
    let limit = limit(words)?;
    let since = match words.next_if("since") {
        Some(_) => events(&list(words, &["by", "per", "when"], "an event, where the time begins")?),
        // Calls are pairs by nature.
        None if *written == [CALLS] => pair("sys_enter"),
        None => {
            let (found, help) = (words.peek(), since_help(written, &limit.words()));
            return Err(words.expected("`since EVENT`, where the time begins", found.as_ref(), help));
        }
    };
    let (mut keys, mut per) = (Vec::new(), None);
    loop {
        if words.next_if("by").is_some() {
            keys.extend(key_words(words)?.text.split(',').map(key));
        } else if words.next_if("per").is_some() {
            let Some(field) = words.take() else { return Err(words.expected("a field", None, None)) };
            per = Some(field.text.to_owned());
        } else {
            break;
        }
    }
    if keys.is_empty() {
        keys.push(KeyField::Thread);
    }
    Ok(RuleQuestion { test: RuleTest::Over { limit, since, per, with_begins: false }, keys })
}

/// `between EVENTS and EVENTS [by FIELD[=FIELD[=FIELD]],...]`: fields of the event, of the one that begins, and of the one that ends.
fn between(words: &mut OptionWords<'_>) -> Result<RuleQuestion, WordsProblem> {
    words.take();
    let begin = list(words, &["and"], "an event that begins")?;
    if words.next_if("and").is_none() {
        let found = words.peek();
        return Err(words.expected("`and EVENT`, which ends what has begun", found.as_ref(), None));
    }
    let end = list(words, &["by", "closed", "when"], "an event that ends what has begun")?;
    let (mut keys, mut end_keys) = (Vec::new(), Vec::new());
    if words.next_if("by").is_some() {
        for text in key_words(words)?.text.split(',') {
            let mut fields = text.splitn(3, '=');
            let own = fields.next().unwrap_or_default();
            let begin = fields.next().unwrap_or(own);
            let end = fields.next().unwrap_or(begin).to_owned();
            let is_thread = own == "thread" && begin == "thread";
            let field = KeyField::Field { end: own.to_owned(), begin: begin.to_owned() };
            keys.push(if is_thread { KeyField::Thread } else { field });
            end_keys.push(end);
        }
    } else {
        (keys, end_keys) = (vec![KeyField::Thread], vec!["thread".to_owned()]);
    }
    // Calls are pairs by nature.
    let side = |words: &[String], name| if *words == [CALLS] { pair(name) } else { events(words) };
    let test = KernelTest::Between { begin: side(&begin, "sys_enter"), end: side(&end, "sys_exit"), end_keys };
    Ok(RuleQuestion { test: RuleTest::OfKernel { test, is_closed: false }, keys })
}

/// Fields with commas between them.
fn key_words<'t>(words: &mut OptionWords<'t>) -> Result<PlacedWord<'t>, WordsProblem> {
    let Some(fields) = words.take() else { return Err(words.expected("a field, or `thread`", None, None)) };
    match fields.text.split(',').count() {
        ..=KEYS_MAX => Ok(fields),
        _ => Err(fields.problem(WordsProblemKind::ManyFields(KEYS_MAX))),
    }
}

fn events(words: &[String]) -> Vec<String> {
    patterns(words.iter().map(String::as_str))
}

fn condition(text: &str, of: &str) -> Result<String, String> {
    if text.is_empty() {
        let end = of.trim_end().len();
        let problem = WordsProblem { span: end - "when".len()..end, kind: WordsProblemKind::NoExpression };
        return Err(problem.render(of).trim_end().to_owned());
    }
    match Filter::parse(text) {
        Ok(_) => Ok(text.trim_end().to_owned()),
        Err(problems) => {
            Err(problems.iter().map(|problem| problem.render(text)).collect::<String>().trim_end().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let words = match RuleOptions::parse_of_kernel(&[text.to_owned()]) {
            Ok(rules) => format!("{}: {}", rules[0].name, rules[0].words()),
            Err(problem) => problem,
        };
        format!("--- {text}\n{words}\n")
    }

    #[test]
    fn rules_about_the_kernel_are_words() {
        let all = [
            "syscalls over 5ms",
            "slow: syscalls over p99 per name when comm == \"dd\"",
            "disk: block_rq_complete over 10ms since block_rq_issue,block_rq_insert by rq",
            "sched_switch over 1ms since sched_waking by next_tid=tid per next_comm",
            "lo: netif_receive_skb when skb->dev->name == \"lo\"",
            "kmalloc between sys_enter and sys_exit",
            "sched_switch between sched_process_exec and sched_process_exit by prev_tid=tid=tid,cpu_id closed when prev_prio > 3",
            "sched_switch closed",
            "sched_switch",
            "kmalloc between sys_enter",
            "syscalls every 10",
            "block_rq_complete over 5ms",
            "syscalls over much",
            "syscalls over 5ms bye rq",
            "syscalls over 5ms when",
            "syscalls over 5ms when x >",
            "a/b: syscalls over 5ms",
            "syscall over 5ms",
            "openat over p99",
            "kmalloc between sys_enter and sys_exit per name",
            "irq when comm == \"dd\"",
            "sched_waking,irq over 5ms since ?none:x",
            "kmalloc between irq_handler_entry and irq_handler_exit by cpu_id",
            "kmalloc between a and b by x=y",
        ];
        expect_test::expect![[r#"
            --- syscalls over 5ms
            syscalls: raw_syscalls:sys_exit over 5ms since raw_syscalls:sys_enter by thread
            --- slow: syscalls over p99 per name when comm == "dd"
            slow: raw_syscalls:sys_exit over p99 since raw_syscalls:sys_enter by thread per name when comm == "dd"
            --- disk: block_rq_complete over 10ms since block_rq_issue,block_rq_insert by rq
            disk: block_rq_complete over 10ms since block_rq_issue,block_rq_insert by rq
            --- sched_switch over 1ms since sched_waking by next_tid=tid per next_comm
            sched_switch: sched_switch over 1ms since sched_waking by next_tid=tid per next_comm
            --- lo: netif_receive_skb when skb->dev->name == "lo"
            lo: netif_receive_skb when skb->dev->name == "lo"
            --- kmalloc between sys_enter and sys_exit
            kmalloc: kmalloc between sys_enter and sys_exit by thread
            --- sched_switch between sched_process_exec and sched_process_exit by prev_tid=tid=tid,cpu_id closed when prev_prio > 3
            sched_switch: sched_switch between sched_process_exec and sched_process_exit by prev_tid=tid,cpu_id closed when prev_prio > 3
            --- sched_switch closed
            sched_switch: sched_switch closed
            --- sched_switch
            expected `over LIMIT`, `between EVENT and EVENT` or `when EXPRESSION`, found the end
                sched_switch
                            ^
            help: `syscalls over 5ms`, `kmalloc between sys_enter and sys_exit`, `netif_receive_skb when skb->dev->name == "lo"`
            --- kmalloc between sys_enter
            expected `and EVENT`, which ends what has begun, found the end
                kmalloc between sys_enter
                                         ^
            --- syscalls every 10
            expected `over LIMIT`, `between EVENT and EVENT` or `when EXPRESSION`, found `every`
                syscalls every 10
                         ^^^^^
            help: `syscalls over 5ms`, `kmalloc between sys_enter and sys_exit`, `netif_receive_skb when skb->dev->name == "lo"`
            --- block_rq_complete over 5ms
            expected `since EVENT`, where the time begins, found the end
                block_rq_complete over 5ms
                                          ^
            help: `block_rq_complete over 5ms since block_rq_issue by rq`
            --- syscalls over much
            `much` is no limit
                syscalls over much
                              ^^^^
            help: a limit is a time, such as `5ms`, or a percentile with at most four digits behind the point, such as `p99.9`
            --- syscalls over 5ms bye rq
            expected `by FIELD`, `per FIELD`, `when EXPRESSION` or the end, found `bye`
                syscalls over 5ms bye rq
                                  ^^^
            help: did you mean `by`?
            --- syscalls over 5ms when
            there is no expression behind `when`
                syscalls over 5ms when
                                  ^^^^
            help: `when port == 80`
            --- syscalls over 5ms when x >
            found the end, expected a value: a field, a number, a text, or `(`
                x >
                   ^
            --- a/b: syscalls over 5ms
            a name has 1 to 64 letters, digits, `-`, `_` and `.`
                a/b: syscalls over 5ms
                ^^^^
            help: it stands before the rest, with a colon: `end: ...`
            --- syscall over 5ms
            expected `since EVENT`, where the time begins, found the end
                syscall over 5ms
                                ^
            help: did you mean `syscalls`?
            --- openat over p99
            expected `since EVENT`, where the time begins, found the end
                openat over p99
                               ^
            help: `syscalls over p99 when name == "openat"`
            --- kmalloc between sys_enter and sys_exit per name
            expected `by FIELD`, `closed`, `when EXPRESSION` or the end, found `per`
                kmalloc between sys_enter and sys_exit per name
                                                       ^^^
            help: kinds have limits of their own, which only `over` has; `by FIELD` tells values apart
            --- irq when comm == "dd"
            irq: irq when comm == "dd"
            --- sched_waking,irq over 5ms since ?none:x
            sched_waking: sched_waking,irq:irq_handler_*,irq:softirq_* over 5ms since ?none:x by thread
            --- kmalloc between irq_handler_entry and irq_handler_exit by cpu_id
            kmalloc: kmalloc between irq_handler_entry and irq_handler_exit by cpu_id
            --- kmalloc between a and b by x=y
            kmalloc: kmalloc between a and b by x=y
        "#]].assert_eq(&all.map(told).concat());
    }
}
