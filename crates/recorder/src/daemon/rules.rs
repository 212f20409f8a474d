//! Requests about rules.

use kymo_schema::definition::EventClass;

use super::{Daemon, SETTLE};
use crate::program::DrainTiming;
use crate::protocol::{Matched, RecorderReply, RuleChange, SessionOptions};
use crate::rule::{RULES_MAX, RuleOptions, RuleTest};
use crate::select::{SelectionRule, SessionSelection};
use crate::session::serve::rules::keys;

impl Daemon {
    pub(super) fn rule(&mut self, session: Option<&str>, change: RuleChange) -> Result<RecorderReply, String> {
        let at = self.named(session)?;
        self.find();
        let name = self.sessions[at].name.clone();
        let mut matched = Matched { session: name.clone(), ..Matched::default() };
        if let Some(reply) = self.change_of_kernel(at, &change) {
            return reply;
        }
        let mut all = self.sessions[at].rules.all().to_vec();
        if let RuleChange::Set(rule) = &change {
            all.retain(|known| known.name != rule.name);
            all.push((**rule).clone());
            check(&all, &self.sessions[at].kernel_rules())?;
            self.check_keys(rule, self.sessions[at].selection())?;
            let events = SelectionRule { events: rule.events.clone(), ..SelectionRule::default() };
            let found = self.matched(&events, &self.sessions[at]);
            matched = Matched { session: name.clone(), ..found };
        }
        let named = [&all[..], &self.sessions[at].kernel_rules()].concat();
        // Events recorded until now follow the old rules.
        self.drain(DrainTiming::Now);
        let is_limit = matches!(change, RuleChange::Limit { .. });
        self.count_rules(!is_limit);
        self.sessions[at].rule(|rules| match change {
            RuleChange::Set(rule) => {
                rules.set(*rule);
                Ok(())
            }
            RuleChange::Remove(rule) if rules.remove(&rule) => Ok(()),
            RuleChange::Remove(rule) => Err(unknown(&name, &rule, &named)),
            RuleChange::Limit { rule, kind, limit } => {
                let rule = match (rule, &all[..]) {
                    (Some(rule), _) => rule,
                    (None, [only]) => only.name.clone(),
                    (None, []) => return Err(format!("session `{name}` has no rules")),
                    (None, _) => return Err(format!("session `{name}` has several rules, and one has to be named")),
                };
                let options = rules.rule_mut(&rule).ok_or_else(|| unknown(&name, &rule, &named))?;
                options.set_limit(kind.as_deref(), limit.as_deref())
            }
        })?;
        self.sessions[at].keep(&self.folder);
        if is_limit {
            let Self { served, sessions, .. } = self;
            served.iter().for_each(|program| program.set_limits(&sessions[at]));
        } else {
            self.has_changed = true;
            self.find();
            // Threads that were asking a rule have done so after this.
            std::thread::sleep(SETTLE);
            let Self { served, sessions, clocks, .. } = self;
            served.iter().for_each(|program| program.retire_rules(&mut sessions[at], clocks));
            sessions[at].retire_others();
            self.give_room();
        }
        self.count_rules(false);
        let status = Box::new(self.session_statuses().swap_remove(at));
        Ok(RecorderReply::Ruled { matched, status })
    }
}

impl Daemon {
    /// Changes a rule that the kernel asks; `None`: it is none of these.
    fn change_of_kernel(&mut self, at: usize, change: &RuleChange) -> Option<Result<RecorderReply, String>> {
        let session = &mut self.sessions[at];
        let of_kernel = session.kernel_rules();
        let changed = match change {
            RuleChange::Limit { rule, kind, limit } => {
                let name = match (rule, &of_kernel[..]) {
                    (Some(rule), _) => rule,
                    (None, [only]) if session.rules.all().is_empty() => &only.name,
                    _ => return None,
                };
                session.limit_of_kernel(name, (kind.as_deref(), limit.as_deref()))?
            }
            RuleChange::Remove(rule) => {
                let its = of_kernel.iter().find(|known| known.name == *rule)?;
                let is_gate = matches!(its.asks.test, RuleTest::OfKernel { .. });
                let word = if is_gate { "closed` keeps nothing" } else { "1h` keeps next to nothing" };
                Err(format!("the kernel asks rule `{rule}` until the session ends: `kymo limit {rule} {word}"))
            }
            RuleChange::Set(_) => return None,
        };
        Some(changed.map(|()| {
            self.sessions[at].keep(&self.folder);
            let matched = Matched { session: self.sessions[at].name.clone(), ..Matched::default() };
            let status = Box::new(self.session_statuses().swap_remove(at));
            RecorderReply::Ruled { matched, status }
        }))
    }

    /// Why a rule cannot be about the events that it names; events that no program has yet may have the fields.
    pub(super) fn check_keys(&self, rule: &RuleOptions, selection: &SessionSelection) -> Result<(), String> {
        let classes = self.classes();
        let its = classes.iter().filter(|(who, _)| selection.takes_program(&who.candidate()));
        let names: Vec<(&EventClass, String)> = its.map(|(_, class)| (*class, class.full_name())).collect();
        for (is_begin, patterns) in [(false, &rule.events[..]), (true, rule.asks.begins().unwrap_or_default())] {
            // Another event that matches a pattern with `*` may have them.
            if patterns.iter().any(|pattern| pattern.contains(['*', '?'])) {
                continue;
            }
            let takes = |name: &str| if is_begin { rule.asks.begins_at(name) } else { rule.takes_name(name) };
            let matching = names.iter().filter(|(_, name)| takes(name));
            let misfits = matching.map(|(class, _)| keys(&rule.asks, class, is_begin).err());
            if let Some(why) = misfits.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next()) {
                return Err(format!("rule `{}`: {why}", rule.name));
            }
        }
        Ok(())
    }

    /// Rules that found no number in a program may have one now, as others have gone.
    pub(super) fn give_room(&mut self) {
        if self.sessions.iter().any(|session| session.rules.lacks_numbers()) {
            self.has_changed = true;
            self.find();
        }
    }

    /// Sessions learn what programs have counted for their rules by now; their traces, too, if these counts may be the last.
    pub(super) fn count_rules(&mut self, is_last: bool) {
        let Self { served, sessions, clocks, .. } = self;
        served.iter_mut().for_each(|program| program.tell_rules(sessions, clocks, is_last));
    }
}

/// Why these cannot be the rules of a session, and those that the kernel asks for it.
pub(super) fn check(rules: &[RuleOptions], of_kernel: &[RuleOptions]) -> Result<(), String> {
    if rules.len() > RULES_MAX || of_kernel.len() > RULES_MAX {
        return Err(format!("a session has at most {RULES_MAX} rules, and as many about events of the kernel"));
    }
    if let Some(fault) = rules.iter().find_map(RuleOptions::fault) {
        return Err(fault.to_owned());
    }
    let mut names = std::collections::BTreeSet::new();
    match rules.iter().chain(of_kernel).find(|rule| !names.insert(&rule.name)) {
        Some(rule) => Err(format!("there are two rules `{}`: `NAME: ...` names one", rule.name)),
        None => Ok(()),
    }
}

/// Why the objects of a session are none, or its rules none of their programs.
pub(super) fn check_objects(options: &SessionOptions) -> Result<(), String> {
    let mut known = Vec::new();
    for object in &options.objects {
        known.extend(object.rules()?.into_iter().map(|rule| rule.asks.test));
    }
    let is_unknown =
        |rule: &&RuleOptions| matches!(rule.asks.test, RuleTest::Program { .. }) && !known.contains(&rule.asks.test);
    match options.rules.iter().find(is_unknown) {
        Some(rule) => Err(format!("rule `{}` is a program of no object", rule.name)),
        None => Ok(()),
    }
}

fn unknown(session: &str, rule: &str, all: &[RuleOptions]) -> String {
    let names: Vec<&str> = all.iter().map(|rule| rule.name.as_str()).collect();
    let its = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    format!("session `{session}` has no rule `{rule}`: {its}")
}
