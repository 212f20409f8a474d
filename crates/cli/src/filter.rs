//! `kymo filter`

use std::io::{self, Write};

use kymo_session::{ClassMeaning, ExplainedClasses, Explanation, Filter, Forms, Selection, Session, Verdict, Zone};
use serde_json::json;

use crate::CommandOutcome;
use crate::arguments::FilterArguments;
use crate::message::plain_output;
use crate::select::{parsed, told};
use crate::show::{self, bytes, counted};
use crate::stop::StopReason;

/// Names of classes that are shown before the rest is counted.
const NAMES_MAX: usize = 6;

/// Reports errors in an expression, without a trace.
pub(crate) fn check(arguments: &FilterArguments) -> Result<CommandOutcome, StopReason> {
    if let Some(option) = arguments.reading.given() {
        return Err(StopReason::Usage(format!(
            "{option} is of a trace that is named: kymo filter {option} ... EXPR TRACE"
        )));
    }
    let filter = parsed(&arguments.expression)?;
    if arguments.explain {
        writeln!(plain_output(), "{}", filter.tree().trim_end())?;
    }
    Ok(CommandOutcome::Complete)
}

/// Shows the meaning of an expression for traces.
pub(crate) fn run(session: &Session, arguments: &FilterArguments) -> Result<CommandOutcome, StopReason> {
    let filter = parsed(&arguments.expression)?;
    let selection = Selection { events: arguments.event.clone(), filter: Some(filter.clone()), zone: Zone::Local };
    let meaning = session.meaning(&selection);
    let explanation = session.explain(&selection);
    let mut out = plain_output();
    if arguments.json {
        writeln!(out, "{}", as_json(&explanation, &filter))?;
    } else {
        show(&explanation, &filter, arguments.explain, &mut out)?;
    }
    out.flush()?;
    let is_error = meaning.applies == 0;
    message_text!("{}{}", told(&meaning, &filter, is_error), show::unmatched(session, &arguments.event));
    Ok(if is_error { CommandOutcome::Incomplete } else { CommandOutcome::Complete })
}

fn show(explanation: &Explanation, filter: &Filter, all: bool, out: &mut impl Write) -> io::Result<()> {
    if all {
        writeln!(out, "expression\n{}", indented(&explanation.tree))?;
    }
    let order = |classes: &&ExplainedClasses| match &classes.meaning {
        ClassMeaning::Typed { verdict: Verdict::Depends, .. } => 0,
        ClassMeaning::Typed { verdict: Verdict::AlwaysTrue, .. } => 1,
        ClassMeaning::Untyped(_) => 2,
        ClassMeaning::Typed { verdict: Verdict::NeverTrue, .. } => 3,
    };
    let mut classes: Vec<&ExplainedClasses> = explanation.classes.iter().collect();
    classes.sort_by_key(order);
    let (never, others): (Vec<_>, Vec<_>) = classes.into_iter().partition(|classes| order(classes) == 3);
    for classes in others {
        show_classes(classes, filter, all, out)?;
    }
    let names: Vec<&str> = never.iter().flat_map(|classes| classes.names.iter().map(String::as_str)).collect();
    if !names.is_empty() {
        writeln!(out, "never applies: {}", some(&names))?;
    }
    show_packets(explanation, out)
}

fn show_classes(classes: &ExplainedClasses, filter: &Filter, all: bool, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<&str> = classes.names.iter().map(String::as_str).collect();
    let names = some(&names);
    match &classes.meaning {
        ClassMeaning::Untyped(problems) => {
            writeln!(out, "cannot be typed: {names}")?;
            problems.iter().try_for_each(|problem| write!(out, "{}", indented(&problem.render(filter.text()))))?;
        }
        ClassMeaning::Typed { verdict, predicate, notes, forms, .. } => {
            let verdict = if *verdict == Verdict::AlwaysTrue { "always true" } else { "applies" };
            writeln!(out, "{verdict}: {names}")?;
            for note in notes {
                writeln!(out, "    note: {}", note.text)?;
            }
            if all {
                writeln!(out, "  typed\n{}", indented(predicate))?;
                if let Some(forms) = forms {
                    show_forms(forms, out)?;
                }
            }
        }
    }
    Ok(())
}

fn show_forms(forms: &Forms, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "  read program\n{}", indented(&forms.program))?;
    match &forms.bytecode {
        Ok((size, text)) => {
            writeln!(out, "  bytecode for programs: {}\n{}", counted(*size as u64, "byte"), indented(text))?;
        }
        Err(refusal) => writeln!(out, "  bytecode for programs: none, {refusal}")?,
    }
    match &forms.native_bytes {
        Ok(size) => writeln!(out, "  machine code for programs: {}", counted(*size as u64, "byte"))?,
        Err(refusal) => writeln!(out, "  machine code for programs: none, {refusal}")?,
    }
    match &forms.bpf {
        Ok(code) => writeln!(out, "  eBPF for the kernel: {}", counted(code.len() as u64, "instruction")),
        Err(refusal) => writeln!(out, "  eBPF for the kernel: none, {refusal}"),
    }
}

fn show_packets(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let packets = &explanation.packets;
    let part = |count: u64, size: u64| format!("{} ({})", counted(count, "packet"), bytes(size));
    write!(out, "of {}", part(packets.all, packets.all_bytes))?;
    write!(out, ", {} are not read", part(packets.unread, packets.unread_bytes))?;
    writeln!(out, ", of {} only the head", part(packets.by_context, packets.by_context_bytes))
}

/// The first few names, and how many more there are.
fn some(names: &[&str]) -> String {
    let mut text = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(NAMES_MAX).filter(|more| *more > 0) {
        text += &format!(" and {more} more");
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn as_json(explanation: &Explanation, filter: &Filter) -> serde_json::Value {
    let classes = |classes: &ExplainedClasses| match &classes.meaning {
        ClassMeaning::Untyped(problems) => json!({
            "classes": classes.names,
            "verdict": "untyped",
            "problems": problems.iter().map(|problem| problem.render(filter.text())).collect::<Vec<_>>(),
        }),
        ClassMeaning::Typed { verdict, predicate, missing, notes, forms } => json!({
            "classes": classes.names,
            "verdict": match verdict {
                Verdict::AlwaysTrue => "always",
                Verdict::NeverTrue => "never",
                Verdict::Depends => "applies",
            },
            "typed": predicate,
            "missing": missing.iter().map(|name| &name.path).collect::<Vec<_>>(),
            "notes": notes.iter().map(|note| &note.text).collect::<Vec<_>>(),
            "read_program": forms.as_ref().map(|forms| &forms.program),
            "bytecode": forms.as_ref().map(|forms| match &forms.bytecode {
                Ok((size, text)) => json!({ "size": size, "text": text }),
                Err(refusal) => json!({ "refused": refusal.to_string() }),
            }),
            "machine_code": forms.as_ref().map(|forms| match &forms.native_bytes {
                Ok(size) => json!({ "size": size }),
                Err(refusal) => json!({ "refused": refusal.to_string() }),
            }),
            "ebpf": forms.as_ref().map(|forms| match &forms.bpf {
                Ok(code) => json!({ "instructions": code }),
                Err(refusal) => json!({ "refused": refusal.to_string() }),
            }),
        }),
    };
    let packets = &explanation.packets;
    json!({
        "expression": filter.text(),
        "tree": explanation.tree,
        "classes": explanation.classes.iter().map(classes).collect::<Vec<_>>(),
        "packets": { "all": packets.all, "not_read": packets.unread, "head_only": packets.by_context },
        "packets_bytes": {
            "all": packets.all_bytes, "not_read": packets.unread_bytes, "head_only": packets.by_context_bytes,
        },
    })
}
