//! The `<config>` of Genode's trace recorder as policies, as far as its words have a meaning here.

use kymo_recorder::select::SubjectRule;
use roxmltree::{Attribute, Document, Node, ParsingOptions};

use super::file::{POLICIES_MAX, Policy, PolicyFile, PolicyFormat, PolicyProblem, PolicyWriters, plain_name};
use super::tree;
use crate::quantity;

/// Attributes of `<config>` without a meaning here, and why.
const CONFIG_WITHOUT: [(&str, &str); 4] = [
    ("period_ms", "events are written at once, a quiet program's within a quarter of a second"),
    ("target_root", "it is a path inside of Genode's `<vfs>`: `--output` names the folder"),
    ("session_ram", "a recorder's memory needs no quota"),
    ("session_arg_buffer", "there is no limit to the number of threads"),
];
const CONFIG: [&str; 2] = ["enable", "default_buffer"];
const POLICY: [&str; 6] = ["label", "label_prefix", "label_suffix", "thread", "buffer", "policy"];
/// Names of Genode's trace policies.
const TRACE_POLICIES: [&str; 5] = ["ctf0", "ctf0_pcapng", "rpc_name", "pcapng", "null"];
/// Marks that `rpc_name` records.
const RPC: &str = "kymo:rpc_*";

/// Whether a text is meant as such a configuration.
pub(super) fn is_config(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

/// Genode's newer form of configurations, which looks like none of ours.
pub(super) fn is_node(text: &str) -> bool {
    let first = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with("//"));
    let rest = first.and_then(|line| line.strip_prefix("config")).map(str::trim_start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
}

/// Reads a configuration.
///
/// # Errors
///
/// All that is wrong, in the order of the text.
pub(super) fn policies(text: &str) -> Result<PolicyFile, Vec<PolicyProblem>> {
    let options = ParsingOptions { nodes_limit: 100_000, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            let (line, column) = (error.pos().row as usize, error.pos().col as usize);
            // The message ends with the place.
            let what = error.to_string();
            let what = what.rsplit_once(" at ").map_or(what.as_str(), |(what, _)| what);
            return Err(vec![PolicyProblem { line, column, text: format!("this is no XML: {what}") }]);
        }
    };
    let mut reader = ConfigReader { text, problems: Vec::new(), notes: Vec::new() };
    let file = reader.config(document.root_element());
    let ConfigReader { mut problems, notes, .. } = reader;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    if problems.is_empty() { Ok(PolicyFile { notes, ..file }) } else { Err(problems) }
}

struct ConfigReader<'t> {
    text: &'t str,
    problems: Vec<PolicyProblem>,
    notes: Vec<String>,
}

impl ConfigReader<'_> {
    fn problem(&mut self, byte: usize, what: String) {
        self.problems.push(PolicyProblem::at(self.text, byte, what));
    }

    /// A word that has no meaning here.
    fn without(&mut self, byte: usize, word: &str, why: &str) {
        let PolicyProblem { line, column, .. } = PolicyProblem::at(self.text, byte, String::new());
        self.notes.push(format!("{line}:{column}: {word} has no meaning here: {why}"));
    }

    fn unknown(&mut self, attribute: Attribute<'_, '_>, place: &str, known: &[&str]) {
        let name = attribute.name();
        let help = match kymo_recorder::nearest(name, known.iter().copied()).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        self.problem(attribute.range().start, format!("{place} has no `{name}`; {help}"));
    }

    fn size(&mut self, attribute: Attribute<'_, '_>) -> Option<u64> {
        // Genode counts K, M and G in powers of 1024.
        let text = attribute.value().trim();
        let text = match text.strip_suffix(['K', 'M', 'G']) {
            Some(number) => format!("{number}{}iB", &text[number.len()..]),
            None => text.to_owned(),
        };
        let size = quantity::some_size(&text).ok();
        if size.is_none() {
            self.problem(
                attribute.range_value().start,
                "a size is a number, which may have K, M or G: `64K`".to_owned(),
            );
        }
        size
    }

    fn config(&mut self, root: Node<'_, '_>) -> PolicyFile {
        let mut file = PolicyFile::default();
        if root.tag_name().name() != "config" {
            let what = format!("found <{}>, expected Genode's <config>", root.tag_name().name());
            self.problem(root.range().start, what);
            return file;
        }
        let mut buffer = None;
        for attribute in root.attributes() {
            match attribute.name() {
                "enable" => match truth(attribute.value()) {
                    Some(is_enabled) => file.is_enabled = is_enabled,
                    None => {
                        let what = "`enable` is `yes` or `no` (`true`, `on`, `false`, `off`)".to_owned();
                        self.problem(attribute.range_value().start, what);
                    }
                },
                "default_buffer" => buffer = self.size(attribute),
                name => match CONFIG_WITHOUT.iter().find(|(known, _)| *known == name) {
                    Some((_, why)) => self.without(attribute.range().start, &format!("`{name}`"), why),
                    None => {
                        let known = CONFIG_WITHOUT.iter().map(|(name, _)| *name).chain(CONFIG);
                        self.unknown(attribute, "<config>", &known.collect::<Vec<_>>());
                    }
                },
            }
        }
        for child in root.children().filter(Node::is_element) {
            let at = child.range().start;
            match child.tag_name().name() {
                name @ ("policy" | "default-policy") => {
                    let number = file.policies.len() + 1;
                    let policy = self.policy(child, name == "policy", buffer, number);
                    file.policies.extend(policy);
                    if file.policies.len() == POLICIES_MAX + 1 {
                        self.problem(at, format!("there are at most {POLICIES_MAX} policies"));
                    }
                }
                "vfs" => self.without(at, "<vfs>", "traces are files of this system, in `--output`"),
                name => {
                    let near = kymo_recorder::nearest(name, ["policy", "default-policy", "vfs"]);
                    let near = near.first().map_or(String::new(), |near| format!("; did you mean <{near}>?"));
                    self.problem(at, format!("<config> has no <{name}>{near}"));
                }
            }
        }
        file
    }

    fn policy(&mut self, node: Node<'_, '_>, has_subject: bool, buffer: Option<u64>, number: usize) -> Option<Policy> {
        let place = if has_subject { "<policy>" } else { "<default-policy>" };
        let mut policy = Policy { is_recorded: true, place: number - 1, ..Policy::default() };
        (policy.how.lane_bytes, policy.how.format) = (buffer, PolicyFormat::Genode);
        let (mut kind, mut subject) = (None, SubjectRule::default());
        for attribute in node.attributes() {
            let value = Some(attribute.value().to_owned());
            match attribute.name() {
                "label" if has_subject => subject.label = value,
                "label_prefix" if has_subject => subject.label_prefix = value,
                "label_suffix" if has_subject => subject.label_suffix = value,
                // The name is meant as it is.
                "thread" if has_subject => subject.thread = value.map(|name| name.replace('*', "\\*")),
                "buffer" => policy.how.lane_bytes = self.size(attribute),
                "policy" => kind = Some(attribute),
                _ => self.unknown(attribute, place, if has_subject { &POLICY } else { &POLICY[4..] }),
            }
        }
        let Some(kind) = kind else {
            self.problem(node.range().start, format!("{place} lacks `policy`: `policy=\"ctf0\"` records"));
            return None;
        };
        match kind.value() {
            "ctf0" | "ctf0_pcapng" | "pcapng" => policy.events = tree::marks(&[]),
            "rpc_name" => policy.events = tree::marks(&[RPC.to_owned()]),
            "null" => policy.is_recorded = false,
            other => {
                let near = kymo_recorder::nearest(other, TRACE_POLICIES);
                let near = near.first().map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let what = format!("no policy `{other}` is known{near}\n  there are {}", TRACE_POLICIES.join(", "));
                self.problem(kind.range_value().start, what);
            }
        }
        self.writers(node, (place, kind.value()), &mut policy);
        let labels = [&subject.label, &subject.label_prefix, &subject.label_suffix, &subject.thread];
        let parts: Vec<&str> = labels.into_iter().flatten().map(String::as_str).collect();
        policy.name =
            format!("{number}-{:.32}", plain_name(&if parts.is_empty() { "default".into() } else { parts.join("-") }));
        policy.subject = subject;
        Some(policy)
    }

    fn writers(&mut self, node: Node<'_, '_>, (place, kind): (&str, &str), policy: &mut Policy) {
        let mut has = PolicyWriters { ctf: false, pcapng: false };
        for writer in node.children().filter(Node::is_element) {
            let at = writer.range().start;
            match writer.tag_name().name() {
                "ctf" => has.ctf = true,
                "pcapng" => has.pcapng = true,
                "log" => self.without(at, "<log>", "Genode's recorder has no such writer either"),
                name => self.problem(at, format!("{place} has no writer <{name}>: there are <ctf/> and <pcapng/>")),
            }
        }
        let gives = PolicyWriters { ctf: kind != "pcapng", pcapng: kind.ends_with("pcapng") };
        policy.how.writers = PolicyWriters { ctf: has.ctf && gives.ctf, pcapng: has.pcapng && gives.pcapng };
        if !policy.is_recorded {
            return;
        }
        let PolicyProblem { line, column, .. } = PolicyProblem::at(self.text, node.range().start, String::new());
        if !policy.how.writers.ctf && !policy.how.writers.pcapng {
            let lacks = match (gives.ctf, gives.pcapng) {
                (true, true) => "neither <ctf/> nor <pcapng/>",
                (true, false) => "no <ctf/>",
                _ => "no <pcapng/>",
            };
            self.notes.push(format!("{line}:{column}: {place} has {lacks}: nothing is written for it"));
            policy.is_recorded = false;
        } else if (has.ctf && !gives.ctf) || (has.pcapng && !gives.pcapng) {
            let (writer, what) = if gives.ctf { ("pcapng", "packets") } else { ("ctf", "events other than packets") };
            self.notes.push(format!("{line}:{column}: {place}: `policy=\"{kind}\"` gives <{writer}/> no {what}"));
        }
    }
}

/// A truth value of Genode.
fn truth(text: &str) -> Option<bool> {
    match text {
        "yes" | "true" | "on" => Some(true),
        "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn words_that_have_a_meaning_are_taken_and_others_told() {
        let text = "<config period_ms=\"5000\" target_root=\"/\" enable=\"yes\" default_buffer=\"64K\">\n  <vfs> <fs/> </vfs>\n  \
                    <policy label=\"init -> ping\" thread=\"ep\" policy=\"ctf0\" buffer=\"1M\"> <ctf/> </policy>\n  \
                    <policy label_suffix=\"nic_router\" policy=\"ctf0_pcapng\"> <pcapng/> <ctf/> </policy>\n  \
                    <policy label_prefix=\"init\" policy=\"null\"> <log/> </policy>\n  \
                    <default-policy policy=\"rpc_name\"> <ctf/> </default-policy>\n</config>\n";
        let file = policies(text).expect("it is right");
        let told: Vec<String> = file
            .policies
            .iter()
            .map(|it| format!("{} {} {:?} {}\n", it.name, it.is_recorded, it.how.lane_bytes, it.events.len()))
            .collect();
        expect![[r#"
            1-init.ping-ep true Some(1048576) 9
            2-nic_router true Some(65536) 9
            3-init false Some(65536) 0
            4-default true Some(65536) 4
        "#]]
        .assert_eq(&told.concat());
        expect![[r#"
            1:9: `period_ms` has no meaning here: events are written at once, a quiet program's within a quarter of a second
            1:26: `target_root` has no meaning here: it is a path inside of Genode's `<vfs>`: `--output` names the folder
            2:3: <vfs> has no meaning here: traces are files of this system, in `--output`
            5:46: <log> has no meaning here: Genode's recorder has no such writer either"#]].assert_eq(&file.notes.join("\n"));
        assert!(file.is_enabled);
        assert_eq!(file.policies[0].subject.thread.as_deref(), Some("ep"));
    }

    #[test]
    fn all_that_is_wrong_is_told_with_its_place() {
        let check = |text: &str| {
            let problems = policies(text).expect_err("something is wrong");
            let line = |problem: &PolicyProblem| format!("{}:{}: {}\n", problem.line, problem.column, problem.text);
            problems.iter().map(line).collect::<String>()
        };
        let wrong = check(
            "<config enabled=\"yes\" enable=\"maybe\">\n  <polcy/>\n  <policy label=\"a\"/>\n  <policy policy=\"ctf\" lable=\"a\" \
             buffer=\"x\"><ctf/><cft/></policy>\n</config>\n",
        );
        expect![[r#"
            1:9: <config> has no `enabled`; did you mean `enable`?
            1:31: `enable` is `yes` or `no` (`true`, `on`, `false`, `off`)
            2:3: <config> has no <polcy>; did you mean <policy>?
            3:3: <policy> lacks `policy`: `policy="ctf0"` records
            4:19: no policy `ctf` is known; did you mean `ctf0`?
              there are ctf0, ctf0_pcapng, rpc_name, pcapng, null
            4:24: <policy> has no `lable`; did you mean `label`?
            4:42: a size is a number, which may have K, M or G: `64K`
            4:51: <policy> has no writer <cft>: there are <ctf/> and <pcapng/>
        "#]]
        .assert_eq(&wrong);
        expect![[r#"
            3:1: this is no XML: invalid name token
        "#]]
        .assert_eq(&check("<config>\n  <policy\n</config>\n"));
        expect![[r#"
            1:1: found <conf>, expected Genode's <config>
        "#]]
        .assert_eq(&check("<conf/>"));
        assert!(!policies("<config/>").expect("it is right").is_enabled, "as Genode has it");
    }
}
