//! A file of policies in TOML, with everything that is wrong with it.

use kymo_recorder::packets::{self, PacketOptions};
use kymo_recorder::protocol::{Keep, TraceDialect};
use kymo_recorder::rule::RuleOptions;
use kymo_recorder::trigger::TriggerOptions;
use kymo_recorder::{filters, nearest};
use kymo_schema::glob::event_pattern;
use kymo_schema::level::LogLevel;
use toml::de::{DeTable, DeValue};

use super::file::{
    NAME_BYTES_MAX, POLICIES_MAX, Policy, PolicyFile, PolicyFormat, PolicyMeans, PolicyProblem, PolicyWriters,
    plain_name,
};
use super::tree;
use crate::quantity;

type TomlValue<'t> = toml::Spanned<DeValue<'t>>;

const WHO: [&str; 8] = ["process", "label", "label_prefix", "label_suffix", "label_glob", "user", "cgroup", "thread"];
const WHAT: [&str; 7] = ["name", "record", "events", "level", "filter", "triggers", "only"];
const HOW: [&str; 7] = ["mode", "buffer", "lane", "period", "context", "format", "writers"];
/// Bytes of a thread's name.
const THREAD_BYTES: usize = 15;
const FILE: [&str; 5] = ["enabled", "output", "defaults", "packets", "policy"];
const PACKETS: [&str; 4] = ["interfaces", "filter", "snap_length", "writers"];
/// The policy about packets of network interfaces.
const PACKETS_NAME: &str = "packets";
const PERIOD_MS_LEAST: u64 = 100;
const POOL_BYTES_MAX: u64 = 128 << 20;

/// Reads policies.
///
/// # Errors
///
/// All that is wrong, in the order of the text.
pub(super) fn policies(text: &str) -> Result<PolicyFile, Vec<PolicyProblem>> {
    let mut reader = PolicyReader { text, problems: Vec::new() };
    let mut file = PolicyFile::default();
    match DeTable::parse(text) {
        Ok(table) => file = reader.file(table.get_ref()),
        Err(error) => {
            reader.problem(error.span().unwrap_or(0..0).start, format!("this is no TOML: {}", error.message()));
        }
    }
    let mut problems = reader.problems;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    if problems.is_empty() { Ok(file) } else { Err(problems) }
}

struct PolicyReader<'t> {
    text: &'t str,
    problems: Vec<PolicyProblem>,
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn get<'v, 't>(table: &'v DeTable<'t>, word: &str) -> Option<&'v TomlValue<'t>> {
    table.iter().find(|(key, _)| key.get_ref().as_ref() == word).map(|(_, value)| value)
}

impl PolicyReader<'_> {
    fn problem(&mut self, byte: usize, what: String) {
        self.problems.push(PolicyProblem::at(self.text, byte, what));
    }

    fn unexpected(&mut self, value: &TomlValue<'_>, expected: &str) {
        self.problem(value.span().start, format!("found {}, expected {expected}", kind(value.get_ref())));
    }

    /// Reports unknown words.
    fn words(&mut self, table: &DeTable<'_>, place: &str, known: &[&str]) {
        for (key, _) in table {
            let word = key.get_ref().as_ref();
            if known.contains(&word) {
                continue;
            }
            let help = match nearest(word, known.iter().copied()).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            self.problem(key.span().start, format!("{place} has no `{word}`; {help}"));
        }
    }

    fn text(&mut self, value: &TomlValue<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => return Some(text.to_string()),
            DeValue::String(_) => self.problem(value.span().start, "the text is empty: leave the word out".to_owned()),
            _ => self.unexpected(value, "a text"),
        }
        None
    }

    /// Texts, or one of them, with where each is.
    fn texts(&mut self, table: &DeTable<'_>, word: &str) -> Vec<(usize, String)> {
        let Some(value) = get(table, word) else { return Vec::new() };
        let values: Vec<&TomlValue<'_>> = match value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            _ => vec![value],
        };
        if values.is_empty() {
            self.problem(value.span().start, format!("`{word}` has no text: leave the word out"));
        }
        values.into_iter().filter_map(|value| Some((value.span().start, self.text(value)?))).collect()
    }

    fn word(&mut self, table: &DeTable<'_>, word: &str) -> Option<String> {
        get(table, word).and_then(|value| self.text(value))
    }

    fn truth(&mut self, table: &DeTable<'_>, word: &str, default: bool) -> bool {
        match get(table, word).map(|value| (value, value.get_ref())) {
            Some((_, DeValue::Boolean(truth))) => *truth,
            Some((value, _)) => {
                self.unexpected(value, "`true` or `false`");
                default
            }
            None => default,
        }
    }

    /// One of some words.
    fn choice<T: Copy>(&mut self, table: &DeTable<'_>, word: &str, choices: &[(&str, T)]) -> Option<T> {
        let value = get(table, word)?;
        let text = self.text(value)?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
        if found.is_none() {
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
            self.problem(value.span().start, format!("`{word}` is {}, and not `{text}`", names.join(" or ")));
        }
        found
    }

    /// A quantity, as a text.
    fn quantity(
        &mut self,
        table: &DeTable<'_>,
        word: &str,
        read: fn(&str) -> Result<u64, &'static str>,
    ) -> Option<u64> {
        let value = get(table, word)?;
        let text = self.text(value)?;
        read(&text).map_err(|why| self.problem(value.span().start, format!("`{word}`: {why}"))).ok()
    }

    fn file(&mut self, table: &DeTable<'_>) -> PolicyFile {
        self.words(table, "a file of policies", &FILE);
        let is_enabled = self.truth(table, "enabled", true);
        let output = self.word(table, "output").map(Into::into);
        let mut defaults = Policy { is_recorded: true, ..Policy::default() };
        if let Some(value) = get(table, "defaults") {
            match value.get_ref() {
                DeValue::Table(table) => {
                    let what: Vec<&str> =
                        WHAT.into_iter().filter(|word| *word != "name" && *word != "record").collect();
                    self.words(table, "`defaults`", &[&what[..], &HOW[..]].concat());
                    self.what_and_how(table, &mut defaults);
                }
                _ => self.unexpected(value, "a table: `[defaults]`"),
            }
        }
        let mut policies: Vec<Policy> = Vec::new();
        let values = match get(table, "policy").map(|value| (value, value.get_ref())) {
            Some((_, DeValue::Array(values))) => values.iter().collect(),
            Some((value, _)) => {
                self.unexpected(value, "tables: `[[policy]]`");
                Vec::new()
            }
            None => Vec::new(),
        };
        if let Some(value) = values.get(POLICIES_MAX) {
            self.problem(value.span().start, format!("a file has at most {POLICIES_MAX} policies"));
        }
        for value in values {
            match value.get_ref() {
                DeValue::Table(table) => {
                    let policy = self.policy(table, &defaults, &policies);
                    if let Some(other) = policies.iter().find(|other| are_mixed_up(&policy, other)) {
                        let what = format!(
                            "the packets of a policy that writes both are recorded as `{}`: another policy has this name",
                            if policy.name.len() < other.name.len() { &other.name } else { &policy.name }
                        );
                        self.problem(value.span().start, what);
                    }
                    policies.push(policy);
                }
                _ => self.unexpected(value, "a table: `[[policy]]`"),
            }
        }
        let packets = get(table, "packets").and_then(|value| self.packets(value, &defaults, &mut policies));
        PolicyFile { is_enabled, output, policies, packets, notes: Vec::new() }
    }

    /// Packets of network interfaces, and a policy about them.
    fn packets(
        &mut self,
        value: &TomlValue<'_>,
        defaults: &Policy,
        policies: &mut Vec<Policy>,
    ) -> Option<PacketOptions> {
        let DeValue::Table(table) = value.get_ref() else {
            self.unexpected(value, "a table: `[packets]`");
            return None;
        };
        self.words(table, "`packets`", &PACKETS);
        let interfaces = self.texts(table, "interfaces");
        for (at, name) in &interfaces {
            if let Err(why) = packets::check_interface(name) {
                self.problem(*at, why.to_string());
            }
        }
        let interfaces = interfaces.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        if get(table, "interfaces").is_none() {
            let what = "`packets` lacks `interfaces`: `interfaces = [\"eth0\"]`, or `\"any\"`";
            self.problem(value.span().start, what.to_owned());
        }
        let filter = self.texts(table, "filter").pop();
        if let Some((at, filter)) = &filter
            && let Err(why) = packets::check_filter(filter)
        {
            self.problem(*at, format!("the filter is wrong\n{why}"));
        }
        let most = packets::SNAP_LENGTH_MAX;
        let snap = get(table, "snap_length").map(|value| match value.get_ref() {
            DeValue::Integer(number) => (value.span().start, number.as_str().parse().ok()),
            _ => (value.span().start, None),
        });
        let snap_length = match snap {
            None => packets::SNAP_LENGTH,
            Some((_, Some(bytes))) if (1..=most).contains(&bytes) => bytes,
            Some((at, _)) => {
                self.problem(at, format!("`snap_length` is a number of bytes from 1 to {most}"));
                packets::SNAP_LENGTH
            }
        };
        if policies.iter().any(|policy| policy.name == PACKETS_NAME) {
            let what = format!("`[packets]` is recorded as policy `{PACKETS_NAME}`: another policy has this name");
            self.problem(value.span().start, what);
        }
        let mut policy =
            Policy { name: PACKETS_NAME.to_owned(), place: policies.len(), is_recorded: true, ..Policy::default() };
        policy.events = packets::EVENTS.map(str::to_owned).to_vec();
        policy.subject.processes = vec![std::process::id().to_string()];
        policy.how = PolicyMeans { keep: Keep::Oldest, period_ms: None, ..defaults.how.clone() };
        if policy.how.format == PolicyFormat::Genode {
            policy.how.format = PolicyFormat::Trace(TraceDialect::Tsdl);
        }
        policy.how.writers = self.writers(table).unwrap_or(policy.how.writers);
        // It has packets alone: they are in one of these.
        policy.how.writers.ctf &= !policy.how.writers.pcapng;
        policies.push(policy);
        Some(PacketOptions { interfaces, filter: filter.map(|(_, filter)| filter), snap_length, file: None })
    }

    fn policy(&mut self, table: &DeTable<'_>, defaults: &Policy, others: &[Policy]) -> Policy {
        self.words(table, "a policy", &[&WHAT[..], &WHO[..], &HOW[..]].concat());
        let is_recorded = self.truth(table, "record", true);
        let mut policy = Policy { is_recorded, place: others.len(), ..defaults.clone() };
        self.who(table, &mut policy);
        self.what_and_how(table, &mut policy);
        let is_taken = |name: &str| others.iter().any(|other| other.name == name);
        policy.name = match get(table, "name").and_then(|value| Some((value.span().start, self.text(value)?))) {
            Some((at, name)) => {
                if plain_name(&name) != name || name.len() > NAME_BYTES_MAX {
                    let what = "a policy's name has 1 to 40 letters of ASCII, digits, `-`, `_` and `.`, and begins with no `.`";
                    self.problem(at, what.to_owned());
                } else if is_taken(&name) {
                    self.problem(at, format!("there are two policies `{name}`"));
                }
                name
            }
            None => {
                let subject = &policy.subject;
                let labels = [&subject.label, &subject.label_prefix, &subject.label_suffix, &subject.label_glob];
                let parts = labels.into_iter().flatten().chain(&subject.processes).chain(&subject.thread);
                let parts: Vec<&str> = parts.map(String::as_str).collect();
                let plain = if parts.is_empty() { "all".to_owned() } else { plain_name(&parts.join("-")) };
                let numbered = (2..).map(|number| format!("{plain:.36}-{number}"));
                let mut names = std::iter::once(plain.clone()).filter(|name| !name.is_empty()).chain(numbered);
                names.find(|name| !is_taken(name)).expect("numbers do not end")
            }
        };
        policy
    }

    fn who(&mut self, table: &DeTable<'_>, policy: &mut Policy) {
        let subject = &mut policy.subject;
        let plain = |texts: Vec<(usize, String)>| texts.into_iter().map(|(_, text)| text).collect();
        subject.processes = match get(table, "process").map(TomlValue::get_ref) {
            Some(DeValue::Integer(number)) => vec![number.as_str().to_owned()],
            _ => plain(self.texts(table, "process")),
        };
        let is_wrong = |process: &String| process.parse::<u32>() == Ok(0);
        let no_process = subject.processes.iter().any(is_wrong);
        subject.cgroups = plain(self.texts(table, "cgroup"));
        subject.label = self.word(table, "label");
        subject.label_prefix = self.word(table, "label_prefix");
        subject.label_suffix = self.word(table, "label_suffix");
        subject.label_glob = self.word(table, "label_glob");
        subject.thread = self.word(table, "thread");
        let has_label = subject.label.is_some();
        let is_too_long = |thread: &String| thread.len() > THREAD_BYTES && !thread.contains(['*', '?']);
        let is_never = subject.thread.as_ref().is_some_and(is_too_long);
        subject.users = self.users(table);
        let at = |word: &str| get(table, word).map_or(0, |value| value.span().start);
        if no_process {
            self.problem(at("process"), "no process has the number 0".to_owned());
        }
        if is_never {
            let what = format!("the system keeps {THREAD_BYTES} bytes of a thread's name: none is so long");
            self.problem(at("thread"), what);
        }
        for word in ["label_prefix", "label_suffix", "label_glob"] {
            if has_label && get(table, word).is_some() {
                self.problem(at(word), format!("`label` is the whole label: leave `{word}` out"));
            }
        }
    }

    /// Users by number or name.
    fn users(&mut self, table: &DeTable<'_>) -> Vec<u32> {
        const EXPECTED: &str = "a user's name or number, or a list of these";
        let Some(value) = get(table, "user") else { return Vec::new() };
        let values: Vec<&TomlValue<'_>> = match value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            _ => vec![value],
        };
        let mut users = Vec::new();
        for value in values {
            let number = match value.get_ref() {
                DeValue::Integer(number) => number.as_str().parse().ok(),
                DeValue::String(name) => number_of(name),
                _ => {
                    self.unexpected(value, EXPECTED);
                    continue;
                }
            };
            match number {
                Some(number) => users.push(number),
                None => {
                    let name = value.get_ref().as_str().map_or_else(String::new, |name| format!(" `{name}`"));
                    self.problem(value.span().start, format!("there is no such user{name} in /etc/passwd"));
                }
            }
        }
        users
    }

    fn what_and_how(&mut self, table: &DeTable<'_>, policy: &mut Policy) {
        let events = self.texts(table, "events");
        if !events.is_empty() {
            let checked = events
                .into_iter()
                .filter_map(|(at, event)| event_pattern(&event).map_err(|why| self.problem(at, why)).ok());
            policy.events = checked.collect();
        }
        policy.level = self.level(table).or(policy.level);
        if let Some((at, filter)) = self.texts(table, "filter").pop() {
            if let Err(refusal) = filters::check(&filter, &[]) {
                self.problem(at, format!("the filter is wrong\n{}", refusal.0));
            }
            policy.filter = Some(filter);
        }
        let how = &mut policy.how;
        let modes = [("discard", Keep::Oldest), ("overwrite", Keep::Newest)];
        how.keep = self.choice(table, "mode", &modes).unwrap_or(how.keep);
        how.pool_bytes = self.quantity(table, "buffer", quantity::some_size).or(how.pool_bytes);
        how.lane_bytes = self.quantity(table, "lane", quantity::some_size).or(how.lane_bytes);
        let period = self.quantity(table, "period", quantity::seconds).map(|nanos| nanos.div_ceil(1_000_000));
        how.period_ms = period.or(how.period_ms);
        let formats = [
            ("ctf1.8", PolicyFormat::Trace(TraceDialect::Tsdl)),
            ("ctf2", PolicyFormat::Trace(TraceDialect::Ctf2)),
            ("genode", PolicyFormat::Genode),
        ];
        how.format = self.choice(table, "format", &formats).unwrap_or(how.format);
        how.writers = self.writers(table).unwrap_or(how.writers);
        self.contexts(table, how);
        self.acts(table, policy);
        self.means(table, policy);
    }

    /// Words that depend on the mode and the format.
    fn means(&mut self, table: &DeTable<'_>, policy: &mut Policy) {
        let at = |word: &str| get(table, word).map(|value| value.span().start);
        let how = &policy.how;
        if let (Some(at), Keep::Oldest) = (at("period"), how.keep) {
            let what = "`period` is for `mode = \"overwrite\"`: otherwise events are written at once";
            self.problem(at, what.to_owned());
        }
        if let (Some(at), Some(0..PERIOD_MS_LEAST)) = (at("period"), how.period_ms) {
            self.problem(at, "`period` is at least 100ms: each snapshot copies the memory of programs".to_owned());
        }
        if let (Some(at), Some(bytes)) = (at("buffer"), how.pool_bytes)
            && bytes > POOL_BYTES_MAX
        {
            self.problem(at, "a program has at most 128MiB".to_owned());
        }
        if how.format == PolicyFormat::Genode {
            let marks = tree::marks(&policy.events);
            if marks.is_empty() {
                let at = at("events").or_else(|| at("format")).unwrap_or(0);
                let known = tree::MARKS.join(", ");
                self.problem(at, format!("no event of these has a name in Genode's traces; there are {known}"));
            }
            policy.events = marks;
            // Marks have the least level.
            policy.level = policy.level.filter(|_| at("level").is_some());
        }
    }

    fn level(&mut self, table: &DeTable<'_>) -> Option<u8> {
        let value = get(table, "level")?;
        let found = match value.get_ref() {
            DeValue::String(text) => LogLevel::number(text),
            DeValue::Integer(number) => {
                number.as_str().parse().ok().filter(|level: &u8| LogLevel::of((*level).into()).is_some())
            }
            _ => None,
        };
        if found.is_none() {
            let what = format!("a level is a number up to 14, or one of {}", LogLevel::names());
            self.problem(value.span().start, what);
        }
        found
    }

    fn writers(&mut self, table: &DeTable<'_>) -> Option<PolicyWriters> {
        get(table, "writers")?;
        let mut writers = PolicyWriters { ctf: false, pcapng: false };
        for (at, writer) in self.texts(table, "writers") {
            match writer.as_str() {
                "ctf" => writers.ctf = true,
                "pcapng" => writers.pcapng = true,
                other => self.problem(at, format!("there is no writer `{other}`: there are `ctf` and `pcapng`")),
            }
        }
        Some(writers)
    }

    fn contexts(&mut self, table: &DeTable<'_>, how: &mut PolicyMeans) {
        let names = self.texts(table, "context");
        let Some((at, _)) = names.first().cloned() else { return };
        let names: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
        match super::super::session::contexts(&names) {
            Ok(contexts) => how.contexts = contexts,
            Err(stop) => self.problem(at, stop.text()),
        }
    }

    /// Triggers and rules, in the words of `--trigger` and `--only`.
    fn acts(&mut self, table: &DeTable<'_>, policy: &mut Policy) {
        let triggers = self.texts(table, "triggers");
        let texts: Vec<String> = triggers.iter().map(|(_, text)| text.clone()).collect();
        match TriggerOptions::parse_all(&texts) {
            Ok(_) if texts.is_empty() => {}
            Ok(all) => {
                for (trigger, (at, _)) in all.iter().zip(&triggers) {
                    if let Some(fault) = trigger.fault() {
                        self.problem(*at, fault.to_owned());
                    }
                }
                policy.triggers = all;
            }
            Err((number, problem)) => self.problem(triggers[number].0, problem.render(&texts[number])),
        }
        let rules = self.texts(table, "only");
        if rules.is_empty() {
            return;
        }
        policy.rules.clear();
        for (at, text) in rules {
            match RuleOptions::parse(&text) {
                Ok(rule) if policy.rules.iter().any(|known| known.name == rule.name) => {
                    self.problem(at, format!("there are two rules `{}`: `NAME: ...` gives it another name", rule.name));
                }
                Ok(rule) => policy.rules.push(rule),
                Err(why) => self.problem(at, why.render(&text)),
            }
        }
    }
}

/// Whether one of them has the name that the other one has for its packets.
fn are_mixed_up(policy: &Policy, other: &Policy) -> bool {
    let takes = |policy: &Policy, other: &Policy| policy.how.writers.pcapng && policy.captures_name() == other.name;
    takes(policy, other) || takes(other, policy)
}

/// The number of a user.
fn number_of(name: &str) -> Option<u32> {
    let all = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = all.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines.find(|line| line.first() == Some(&name)).and_then(|line| line.get(2)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let problems = policies(text).expect_err("something is wrong");
        let line =
            |problem: &PolicyProblem| format!("{}:{}: {}\n", problem.line, problem.column, problem.text.trim_end());
        expected.assert_eq(&problems.iter().map(line).collect::<String>());
    }

    #[test]
    fn all_that_is_wrong_is_told_with_its_place() {
        check(
            "enabled = 1\noutputs = \"a\"\n[[policy]]\nlable = \"init\"\nmode = \"overwritten\"\nuser = \"no such one\"\n\
             [[policy]]\nname = \"a b\"\nlevel = \"infos\"\nevents = [\"net\", \"net:*\"]\ncontext = [\"cpu\", \"tids\"]\n\
             buffer = \"1GiB\"\nperiod = \"1s\"\nwriters = [\"pcapng\", \"log\"]\n",
            &expect![[r#"
                1:11: found an integer, expected `true` or `false`
                2:1: a file of policies has no `outputs`; did you mean `output`?
                4:1: a policy has no `lable`; did you mean `label`?
                5:8: `mode` is `discard` or `overwrite`, and not `overwritten`
                6:8: there is no such user `no such one` in /etc/passwd
                8:8: a policy's name has 1 to 40 letters of ASCII, digits, `-`, `_` and `.`, and begins with no `.`
                9:9: a level is a number up to 14, or one of emergency, alert, critical, error, warning, notice, info, debug_system, debug_program, debug_process, debug_module, debug_unit, debug_function, debug_line, debug
                10:11: an event is called PROVIDER:NAME; `net:*` is all of a provider, `*:net` one of this name of any
                11:12: there is no context `tids`; did you mean `tid`?
                  there are cpu_id, pid, tid, procname, ip, stack, namespaces (or one of cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns), `none`, and contexts of programs, as `app.tids`
                12:10: a program has at most 128MiB
                13:10: `period` is for `mode = "overwrite"`: otherwise events are written at once
                14:22: there is no writer `log`: there are `ctf` and `pcapng`
            "#]],
        );
        check(
            "[packets]\ninterfaces = \"any\"\nfilter = \"ip.source == '300.1.1.1'\"\n[[policy]]\nprocess = 0\nlabel = \"a\"\nlabel_glob = \"b*\"\nthread = \"a-name-of-17-bytes\"\n",
            &expect![[r#"
                3:10: the filter is wrong
                error: no packet has this address
                    ip.source == '300.1.1.1'
                                  ^^^^^^^^^
                help: an address is `"10.0.0.1"` or `"fe80::1"`; `"10.*"` is a pattern
                5:11: no process has the number 0
                7:14: `label` is the whole label: leave `label_glob` out
                8:10: the system keeps 15 bytes of a thread's name: none is so long
            "#]],
        );
        check(
            "[packets]\nfilter = \"tcp.port = 1\"\nsnap_length = 0\nwriters = \"pcap\"\n[[policy]]\nname = \"packets\"\n\
             [[policy]]\nname = \"a-packets\"\n[[policy]]\nname = \"a\"\nwriters = [\"ctf\", \"pcapng\"]\n",
            &expect![[r#"
                1:1: `packets` lacks `interfaces`: `interfaces = ["eth0"]`, or `"any"`
                1:1: `[packets]` is recorded as policy `packets`: another policy has this name
                2:10: the filter is wrong
                error: found `=`, expected an operator or the end
                    tcp.port = 1
                             ^
                help: equality is `==`
                3:15: `snap_length` is a number of bytes from 1 to 16000
                4:11: there is no writer `pcap`: there are `ctf` and `pcapng`
                9:1: the packets of a policy that writes both are recorded as `a-packets`: another policy has this name
            "#]],
        );
        check(
            "[[policy]\n",
            &expect![[r#"
            1:10: this is no TOML: unclosed array table, expected `]`
        "#]],
        );
        check(
            "[defaults]\nname = \"a\"\nfilter = \"port = = 1\"\n[[policy]]\ntriggers = [\"stop in net:lost\"]\nonly = \"net:poll evry 3\"\n\
             [[policy]]\nname = \"x\"\n[[policy]]\nname = \"x\"\nformat = \"genode\"\nevents = \"net:*\"\n",
            &expect![[r#"
                2:1: `defaults` has no `name`; there are events, level, filter, triggers, only, mode, buffer, lane, period, context, format, writers
                3:10: the filter is wrong
                found `=`, expected an operator or the end
                    port = = 1
                         ^
                help: equality is `==`
                5:13: expected `on`, found `in`
                    stop in net:lost
                         ^^
                6:8: expected `over LIMIT since EVENT`, `every N` or `at most N in TIME`, found `evry`
                    net:poll evry 3
                             ^^^^
                help: did you mean `every`?
                10:8: there are two policies `x`
                12:10: no event of these has a name in Genode's traces; there are kymo:rpc_call, kymo:rpc_return, kymo:rpc_dispatch, kymo:rpc_reply, kymo:signal_submit, kymo:signal_receive, kymo:checkpoint, kymo:begin, kymo:end
            "#]],
        );
    }

    #[test]
    fn defaults_are_those_of_policies_that_say_nothing() {
        let text = "[defaults]\nbuffer = \"1MiB\"\nevents = \"a:*\"\n[[policy]]\nlabel = \"init -> ping\"\n[[policy]]\nname = \"b\"\n\
                    buffer = \"2MiB\"\nevents = [\"b:*\"]\nformat = \"ctf2\"\n[[policy]]\n";
        let file = policies(text).expect("it is right");
        assert!(file.is_enabled);
        let told: Vec<_> =
            file.policies.iter().map(|it| (it.name.as_str(), it.events[0].as_str(), it.how.pool_bytes)).collect();
        let (one, two) = (Some(1 << 20), Some(2 << 20));
        assert_eq!(told, [("init.ping", "a:*", one), ("b", "b:*", two), ("all", "a:*", one)]);
    }
}
