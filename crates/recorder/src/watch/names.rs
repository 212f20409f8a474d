//! Names in a question, for one event: expressions are bound to values that the kernel can read there.

use std::cell::RefCell;

use kymo_filter::{
    Constant, Dimension, FieldResolver, Filter, FilterField, MissingName, NamePath, PathMeaning, Unit, Verdict,
    nearest, with_place,
};
use kymo_ftrace::{call_names, compat_call_name};
use kymo_ir::Encoding;
use kymo_ir::predicate::InputKind;
use kymo_probe::watch::{
    AnyInteger, COMPAT_CALL, ConditionNumber, ConditionTree, FoundPath, TracepointFields, WatchCondition, WatchKind,
    WatchMeaning, WatchPath, WatchedField,
};

use super::words::{of, path};

/// Calls of 32-bit programs have lower numbers.
const COMPAT_CALLS: u64 = 512;
/// JSON values inside each other that a helper takes.
const DEPTH_MAX: usize = 100;

/// A condition, as far as it is known before any event.
pub(crate) enum BoundCondition {
    Always,
    /// It is never true, for these reasons.
    Never(String),
    Depends(WatchCondition),
}

/// Resolves names for one event.
struct TracepointNames<'a> {
    name: &'a str,
    fields: &'a TracepointFields<'a>,
    /// Paths that the expression uses, by key.
    known: RefCell<Vec<WatchPath>>,
}

/// Binds an expression.
pub(crate) fn bind(filter: &Filter, name: &str, fields: &TracepointFields<'_>) -> Result<BoundCondition, String> {
    let names = TracepointNames { name, fields, known: RefCell::default() };
    let told = |problems: Vec<kymo_filter::FilterProblem>| -> String {
        problems.iter().map(|problem| problem.render(filter.text())).collect()
    };
    let binding = filter.bind(&names).map_err(told)?;
    match binding.verdict() {
        Verdict::AlwaysTrue => return Ok(BoundCondition::Always),
        Verdict::NeverTrue => {
            let missing = binding.missing.iter().map(|missing| told_missing(missing, filter.text(), fields));
            return Ok(BoundCondition::Never(missing.collect()));
        }
        Verdict::Depends => {}
    }
    let known = names.known.borrow();
    let inputs = binding.keys.iter().map(|key| known[*key as usize].clone()).collect();
    let tree = ConditionTree::of(&binding.predicate).map_err(|problem| format!("{problem}: {}", filter.text()))?;
    let message = serde_json::to_string(&tree).map_err(|problem| problem.to_string())?;
    if depth(&message) > DEPTH_MAX {
        return Err(format!("the kernel tests no more than {DEPTH_MAX} parts inside each other: {}", filter.text()));
    }
    Ok(BoundCondition::Depends(WatchCondition { inputs, tree }))
}

/// A condition that also asks for more time than this.
pub(crate) fn over(condition: BoundCondition, nanos: u64) -> Result<BoundCondition, String> {
    let (mut inputs, tree) = match condition {
        BoundCondition::Never(why) => return Ok(BoundCondition::Never(why)),
        BoundCondition::Always => (Vec::new(), None),
        BoundCondition::Depends(WatchCondition { inputs, tree }) => (inputs, Some(tree)),
    };
    let took = path("took")?;
    let number = inputs.iter().position(|input| *input == took).unwrap_or_else(|| {
        inputs.push(took);
        inputs.len() - 1
    });
    let relation = kymo_ir::predicate::Relation::Greater.into();
    let left = ConditionNumber::Input(number as u16);
    let is_over = ConditionTree::Compare(relation, left, ConditionNumber::Integer(AnyInteger(nanos.into())));
    let tree = ConditionTree::All(std::iter::once(is_over).chain(tree).collect());
    Ok(BoundCondition::Depends(WatchCondition { inputs, tree }))
}

/// How deep the brackets of a message are inside each other.
fn depth(message: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for byte in message.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// A field that a question names outside of its expression.
pub(crate) fn field(path: &WatchPath, name: &str, fields: &TracepointFields<'_>) -> Result<WatchedField, String> {
    match fields.find(path) {
        FoundPath::Field(field) => Ok(field),
        FoundPath::Compound(kind) => Err(format!("`{path}` of {name} is {kind}, which has no single value")),
        FoundPath::Missing(names) => {
            let written = path.to_string();
            let last = written.rsplit('.').next().unwrap_or_default();
            let near = nearest(last, names.iter().map(String::as_str));
            let help = match near.first() {
                Some(near) => format!("there is `{near}`"),
                None => format!("there are {}", listed(&fields.names())),
            };
            Err(format!("{name} has no field `{path}`\nhelp: {help}"))
        }
    }
}

/// A name in an expression that the event has not, for people: those that there are, if none is like it.
fn told_missing(missing: &MissingName, text: &str, fields: &TracepointFields<'_>) -> String {
    let MissingName { path, span, near, .. } = missing;
    let before = text.get(..span.start).unwrap_or_default().trim_end();
    let is_word = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let help = match is_word && (before.ends_with("==") || before.ends_with("!=")) {
        true => format!("a text stands in quotes: `\"{path}\"`"),
        false if near.is_empty() && is_word => format!("there are {}", listed(&fields.names())),
        false => return missing.render(text),
    };
    with_place(&format!("there is no `{path}`"), text, span, Some(&help))
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Names of the numbers of a field.
pub(crate) fn labels(meaning: &WatchMeaning) -> Vec<(String, i64)> {
    match meaning {
        WatchMeaning::Call => calls(),
        WatchMeaning::Labels(labels) => labels.clone(),
        _ => Vec::new(),
    }
}

/// Numbers of system calls with their names; those of 32-bit programs are called `compat_NAME`.
fn calls() -> Vec<(String, i64)> {
    let native = call_names().into_iter().map(|(number, name)| (name.to_owned(), number));
    let compat = (0..COMPAT_CALLS).filter_map(|number| {
        let name = compat_call_name(number)?;
        Some((format!("compat_{name}"), number as i64 | COMPAT_CALL))
    });
    let compat = compat.filter(|_| cfg!(target_arch = "x86_64"));
    native.chain(compat).collect()
}

impl FieldResolver for TracepointNames<'_> {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let found = match self.fields.find(&of(path)) {
            FoundPath::Field(found) => found,
            FoundPath::Compound(what) => return PathMeaning::Compound { what },
            FoundPath::Missing(names) => {
                let written = path.to_string();
                let last = written.rsplit('.').next().unwrap_or_default();
                return PathMeaning::Missing { near: nearest(last, names.iter().map(String::as_str)) };
            }
        };
        if found.meaning == WatchMeaning::Event {
            return PathMeaning::Constant(Constant::Text(self.name.to_owned()));
        }
        let kind = match found.kind {
            WatchKind::Integer { bits, is_signed } => InputKind::Integer { signed: is_signed, bits },
            WatchKind::Text { .. } => InputKind::Text(Encoding::Utf8),
        };
        let unit = |dimension| Some(Unit { dimension, multiply: 1, divide: 1 });
        let unit = match found.meaning {
            WatchMeaning::Nanos => unit(Dimension::Time),
            WatchMeaning::Bytes => unit(Dimension::Size),
            _ => None,
        };
        let base = if found.meaning == WatchMeaning::Address { 16 } else { 10 };
        let labels = labels(&found.meaning).into_iter().map(|(name, value)| (name, vec![(value.into(), value.into())]));
        let mut known = self.known.borrow_mut();
        let wanted = of(path);
        let key = known.iter().position(|have| *have == wanted).unwrap_or_else(|| {
            known.push(wanted);
            known.len() - 1
        });
        let (key, labels) = (key as u32, labels.collect());
        PathMeaning::Field(FilterField { key, name: path.to_string(), kind, optional: false, labels, unit, base })
    }

    /// Only traces have times.
    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}
