//! Dynamic probes: the words of people become places in files, with names and arguments.
//!
//! ```text
//! ./app:parse_*            every function whose name matches       -> app:parse_line, app:parse_word
//! ./app:parse%return       when it returns                         -> app:parse__return
//! ./app:parse(n, arg2:string)   these arguments
//! ./app:parse+0x10  ./app:0x1139   an instruction
//! ./app:PROVIDER:NAME      USDT                                    -> PROVIDER:NAME
//! ```
//!
//! All of this is done with the rights of the user. The helper receives places and names that it checks again.

mod names;
mod place;
mod words;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use kymo_filter::nearest;
use kymo_ftrace::ProbeFacts;
pub use kymo_probe::probes::ProbeRights;
use kymo_probe::probes::{PROBES_MAX, ProbeField, ProbeFieldKind, ProbeFieldSource, ProbePlace, ProbeRequest};
use kymo_schema::glob;
use kymo_sites::{
    DebugData, ElfFile, FunctionArgument, FunctionSite, Machine, ResultKind, Signature, UsdtSite, ValueKind, ValuePlace,
};
use serde::{Deserialize, Serialize};

use crate::probes::names::ProbeNames;
use crate::probes::words::{ArgumentWord, FunctionWords, ProbeTarget, UsdtWords};

/// Where distributions put debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";
/// Names of all functions of the kernel.
const KERNEL_SYMBOLS: &str = "/proc/kallsyms";
/// Notes that name functions at most.
const NOTES_MAX: usize = 3;
/// The field of a result.
const RESULT: &str = "ret";
/// Near names of an error.
const NEAR_MAX: usize = 3;

/// Probes that a command asks for, in its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeWords {
    /// Functions of programs and libraries.
    pub functions: Vec<String>,
    /// USDT probes of programs and libraries.
    pub usdt: Vec<String>,
    /// Functions of the kernel.
    pub kernel: Vec<String>,
}

/// Probes, as a recorder asks its helper for them, and the names of their events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// The probes.
    pub requests: Vec<ProbeRequest>,
    /// Their events.
    pub events: Vec<ProbeEvent>,
    /// Sentences about arguments that are not recorded.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// An event of probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeEvent {
    /// Its name in the kernel.
    pub event: String,
    /// Its name in the trace.
    pub name: String,
    /// Names of its fields in the kernel and in the trace, and whether each is an address.
    pub fields: Vec<(String, String, bool)>,
}

/// A value to record, with its name in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WantedField {
    name: String,
    source: ProbeFieldSource,
    kind: ProbeFieldKind,
}

impl ProbeWords {
    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.usdt.is_empty() && self.kernel.is_empty()
    }

    /// Where a helper may make probes for these words. It reads no file.
    ///
    /// # Errors
    ///
    /// A file is not there, or words are none.
    pub fn rights(&self) -> Result<ProbeRights, String> {
        let of_functions = self.functions.iter().map(|text| FunctionWords::parse(text).map(|words| words.path));
        let of_usdt = self.usdt.iter().map(|text| UsdtWords::parse(text).map(|words| words.path));
        let mut files = of_functions.chain(of_usdt).collect::<Result<Vec<PathBuf>, String>>()?;
        files.sort_unstable();
        files.dedup();
        Ok(ProbeRights { files, functions: !self.kernel.is_empty(), ..ProbeRights::default() })
    }

    /// Finds the places that the words mean.
    ///
    /// # Errors
    ///
    /// Words mean nothing, or too much.
    pub fn plan(&self) -> Result<ProbePlan, String> {
        let mut planner = ProbePlanner::default();
        for text in &self.functions {
            planner.functions(text)?;
        }
        for text in &self.usdt {
            planner.usdt(text)?;
        }
        for text in &self.kernel {
            planner.kernel(text)?;
        }
        let count = planner.plan.requests.len();
        if count > PROBES_MAX {
            return Err(format!(
                "these patterns mean {count} probes, and {PROBES_MAX} is the most of a recording\nhelp: longer patterns match fewer functions"
            ));
        }
        Ok(planner.plan)
    }
}

impl ProbePlan {
    /// The facts about an event of the kernel.
    pub(crate) fn facts(&self, event: &str) -> ProbeFacts {
        let known = self.events.iter().find(|known| known.event == event);
        known.map_or_else(
            || ProbeFacts { name: event.to_owned(), fields: Vec::new() },
            |known| ProbeFacts { name: known.name.clone(), fields: known.fields.clone() },
        )
    }
}

#[derive(Debug, Default)]
struct ProbePlanner {
    plan: ProbePlan,
    names: ProbeNames,
}

/// A file with probes, and the debug information that is elsewhere.
struct ProbedFile {
    path: PathBuf,
    data: Vec<u8>,
    debug: Option<Vec<u8>>,
}

impl ProbedFile {
    fn read(path: &Path) -> Result<Self, String> {
        let data = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let debug = ElfFile::parse(&data).ok().and_then(|elf| elf.debug_path());
        let debug = debug.and_then(|debug| std::fs::read(Path::new(DEBUG_FOLDER).join(debug)).ok());
        Ok(Self { path: path.to_owned(), data, debug })
    }

    fn elf(&self) -> Result<ElfFile<'_>, String> {
        ElfFile::parse(&self.data).map_err(|problem| format!("{}: {problem}", self.path.display()))
    }

    fn debug(&self) -> Option<ElfFile<'_>> {
        ElfFile::parse(self.debug.as_deref()?).ok()
    }

    /// The path, as requests to the helper have it.
    fn path(&self) -> Result<String, String> {
        let path = self.path.to_str().map(str::to_owned);
        path.ok_or_else(|| format!("{}: probes are in files whose names are UTF-8", self.path.display()))
    }
}

impl ProbePlanner {
    fn functions(&mut self, text: &str) -> Result<(), String> {
        let words = FunctionWords::parse(text)?;
        let file = ProbedFile::read(&words.path)?;
        let (elf, debug, path) = (file.elf()?, file.debug(), file.path()?);
        let FunctionWords { app, target, is_return, arguments, .. } = &words;
        let add = |planner: &mut Self, name: &str, offset, fields: &[WantedField]| {
            let place = ProbePlace::File { path: path.clone(), offset, semaphore: None };
            planner.add(&format!("{app}:{name}"), place, *is_return, fields);
        };
        let functions = elf.functions(debug.as_ref());
        let pattern = match target {
            ProbeTarget::Address(address) => {
                let offset = elf.code_offset_of(*address);
                let offset = offset.ok_or_else(|| format!("{path} has no code at the address {address:#x}"))?;
                let fields = chosen(elf.machine(), arguments.as_deref(), None, text)?;
                add(self, &format!("{address:#x}"), offset, &fields);
                return Ok(());
            }
            ProbeTarget::Inside(symbol, more) => {
                let function = matching(&functions, symbol).map_err(|why| format!("{path} {why}"))?;
                let [function] = function[..] else {
                    return Err(format!("{path} has several functions `{symbol}`: an address tells which one"));
                };
                let offset = elf.code_offset_of(function.address.wrapping_add(*more));
                let offset = offset.ok_or_else(|| format!("{path} has no code at `{symbol}+{more:#x}`"))?;
                let fields = chosen(elf.machine(), arguments.as_deref(), None, text)?;
                add(self, &format!("{}+{more:#x}", function.name), offset, &fields);
                return Ok(());
            }
            ProbeTarget::Pattern(pattern) => pattern,
        };
        let found = matching(&functions, pattern).map_err(|why| format!("{path} {why}"))?;
        let data = DebugData::of(&elf).or_else(|| debug.as_ref().and_then(DebugData::of));
        let whole = found.iter().filter(|function| !function.is_clone());
        let addresses: Vec<(u64, bool)> =
            whole.map(|function| (function.address, is_local(&functions, function))).collect();
        let signatures = match arguments {
            // No argument is asked for.
            Some(none) if none.is_empty() => HashMap::new(),
            _ => data.as_ref().map(|data| data.signatures(&addresses)).unwrap_or_default(),
        };
        self.note_absent(app, (data.is_some(), arguments.is_some(), *is_return), &found, &signatures);
        for function in found {
            let signature = signatures.get(&function.address);
            let (name, fields) = match is_return {
                // The compiler may have left out the result of a copy.
                true if function.is_clone() && arguments.is_none() => {
                    (format!("{}__return", function.name), Vec::new())
                }
                true => (format!("{}__return", function.name), result(signature, arguments.as_deref(), text)?),
                false => (function.name.clone(), chosen(elf.machine(), arguments.as_deref(), signature, text)?),
            };
            add(self, &name, function.offset, &fields);
        }
        Ok(())
    }

    /// Tells of arguments that are not recorded.
    fn note_absent(
        &mut self,
        app: &str,
        (has_data, is_chosen, is_return): (bool, bool, bool),
        found: &[&FunctionSite],
        signatures: &HashMap<u64, Signature>,
    ) {
        if is_chosen || is_return && !has_data {
            return;
        }
        if !has_data {
            self.plan.notes.push(format!(
                "{app} has no debug information (`cc -g`): its probes record where they are, and no arguments; `(arg1, arg2:string)` behind a \
                function records those of a position"
            ));
            return;
        }
        let mut notes = Vec::new();
        for function in found {
            let Some(signature) = signatures.get(&function.address) else {
                notes
                    .push(format!("the debug information of {app} does not tell the arguments of `{}`", function.name));
                continue;
            };
            let absent = signature.absent.iter().map(String::as_str).filter(|name| (*name == RESULT) == is_return);
            let absent = absent.collect::<Vec<_>>().join(", ");
            if !absent.is_empty() {
                notes.push(format!(
                    "`{app}:{}` does not record {absent}: the kernel reads no floating-point numbers and structures, or the debug \
                    information does not say where it is",
                    function.name
                ));
            }
        }
        let more = notes.len().saturating_sub(NOTES_MAX);
        self.plan.notes.extend(notes.into_iter().take(NOTES_MAX));
        if more > 0 {
            self.plan.notes.push(format!("{more} more functions of {app} have arguments that are not recorded"));
        }
    }

    fn usdt(&mut self, text: &str) -> Result<(), String> {
        let words = UsdtWords::parse(text)?;
        let file = ProbedFile::read(&words.path)?;
        let (elf, path) = (file.elf()?, file.path()?);
        let (sites, problems) = elf.usdt();
        self.plan.notes.extend(problems.into_iter().map(|problem| format!("{}: {problem}", words.app)));
        let is_meant =
            |site: &&UsdtSite| glob::matches(&words.provider, &site.provider) && glob::matches(&words.name, &site.name);
        let found: Vec<&UsdtSite> = sites.iter().filter(is_meant).collect();
        if found.is_empty() {
            let names: Vec<String> = sites.iter().map(|site| format!("{}:{}", site.provider, site.name)).collect();
            let wanted = format!("{}:{}", words.provider, words.name);
            let help = if names.is_empty() { "; it has no USDT probes".to_owned() } else { near(&wanted, &names) };
            return Err(format!("{path} has no USDT probe `{wanted}`{help}"));
        }
        for site in found {
            let name = format!("{}:{}", site.provider, site.name);
            let fields = self.operands(site, words.arguments.as_deref(), &name)?;
            let (offset, semaphore) = (site.offset, site.semaphore);
            self.add(&name, ProbePlace::File { path: path.clone(), offset, semaphore }, false, &fields);
        }
        Ok(())
    }

    fn operands(
        &mut self,
        site: &UsdtSite,
        wanted: Option<&[ArgumentWord]>,
        event: &str,
    ) -> Result<Vec<WantedField>, String> {
        let all = site.operands.iter().enumerate().map(|(at, operand)| (format!("arg{}", at + 1), operand));
        let mut fields = Vec::new();
        for (name, operand) in all.clone() {
            let word = wanted.map(|words| words.iter().find(|word| word.name == name));
            let Some(word) = word.map_or(Some(None), |word| word.map(Some)) else { continue };
            let Some((kind, place)) = &operand.value else {
                let note = format!("{event} does not record `{name}`: the kernel cannot read `{}`", operand.text);
                if !self.plan.notes.contains(&note) {
                    self.plan.notes.push(note);
                }
                continue;
            };
            let kind = word.and_then(|word| word.kind).unwrap_or(field_kind(*kind));
            fields.push(WantedField { name, source: field_source(place), kind });
        }
        if let Some(unknown) = wanted.into_iter().flatten().find(|word| !all.clone().any(|(name, _)| name == word.name))
        {
            let count = site.operands.len();
            return Err(format!(
                "{event} has no argument `{}`: it has {count}, and the first one is `arg1`",
                unknown.name
            ));
        }
        Ok(fields)
    }

    fn kernel(&mut self, text: &str) -> Result<(), String> {
        let (pattern, is_return) = text.strip_suffix("%return").map_or((text, false), |pattern| (pattern, true));
        let symbols = std::fs::read_to_string(KERNEL_SYMBOLS).map_err(|error| format!("{KERNEL_SYMBOLS}: {error}"))?;
        let names = symbols.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let is_code = matches!(words.next(), Some("t" | "T"));
            words.next().filter(|name| is_code && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        });
        let mut found: Vec<&str> = names.clone().filter(|name| glob::matches(pattern, name)).collect();
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            let all: Vec<String> = names.map(str::to_owned).collect();
            return Err(format!("the kernel has no function `{pattern}`{}", near(pattern, &all)));
        }
        for name in found {
            let (event, fields) = match is_return {
                true => (format!("kernel:{name}__return"), result(None, None, text)?),
                false => (format!("kernel:{name}"), Vec::new()),
            };
            self.add(&event, ProbePlace::Function { name: name.to_owned() }, is_return, &fields);
        }
        Ok(())
    }

    /// Adds a probe: to the event of its name, if its fields agree.
    fn add(&mut self, name: &str, place: ProbePlace, is_return: bool, wanted: &[WantedField]) {
        let wanted = &wanted[..wanted.len().min(kymo_probe::probes::FIELDS_MAX)];
        let shape: Vec<(&str, ProbeFieldKind)> = wanted.iter().map(|field| (field.name.as_str(), field.kind)).collect();
        let (event, is_new) = self.names.event(name, &shape, is_return);
        let kernel_names = names::fields(wanted.iter().map(|field| field.name.as_str()));
        if is_new {
            let fields = kernel_names.iter().zip(wanted);
            let fields = fields.map(|(kernel, field)| {
                (kernel.clone(), field.name.clone(), matches!(field.kind, ProbeFieldKind::Address))
            });
            self.plan.events.push(ProbeEvent { event: event.clone(), name: name.to_owned(), fields: fields.collect() });
        }
        let fields = kernel_names.into_iter().zip(wanted);
        let fields = fields.map(|(name, field)| ProbeField { name, source: field.source.clone(), kind: field.kind });
        let request = ProbeRequest { event, place, is_return, fields: fields.collect() };
        let is_there = |known: &ProbeRequest| {
            known.place == request.place && known.is_return == request.is_return && known.event == request.event
        };
        if !self.plan.requests.iter().any(is_there) {
            self.plan.requests.push(request);
        }
    }
}

/// The functions that a pattern means, each once.
fn matching<'f>(functions: &'f [FunctionSite], pattern: &str) -> Result<Vec<&'f FunctionSite>, String> {
    let is_meant = |function: &&FunctionSite| {
        let names = [function.symbol.as_str(), &function.name, function.plain_name()];
        let is_whole = function.symbol == pattern;
        is_whole || !function.is_fragment() && names.iter().any(|name| glob::matches(pattern, name))
    };
    let mut found: Vec<&FunctionSite> = functions.iter().filter(is_meant).collect();
    if !found.is_empty() && found.iter().all(|function| function.is_indirect) {
        return Err(format!(
            "chooses the function `{pattern}` when a program starts, by the processor: name the one that is chosen, such as `{pattern}_*`"
        ));
    }
    found.retain(|function| !function.is_indirect);
    // Of several names, the one that was asked for, or one that people call.
    let rank = |function: &FunctionSite| {
        let is_asked = function.symbol == pattern || function.name == pattern;
        (!is_asked, function.name.starts_with('_'), function.name.len())
    };
    found.sort_by_key(|function| (function.address, rank(function)));
    found.dedup_by_key(|function| function.address);
    if found.is_empty() {
        if functions.is_empty() {
            return Err("has no names of functions (it is stripped): name an address, as 0x1139".to_owned());
        }
        let names: Vec<String> =
            functions.iter().flat_map(|function| [function.name.clone(), function.symbol.clone()]).collect();
        return Err(format!("has no function `{pattern}`{}", near(pattern, &names)));
    }
    Ok(found)
}

/// Whether a function has no name by which other files could call it.
fn is_local(functions: &[FunctionSite], function: &FunctionSite) -> bool {
    functions.iter().filter(|other| other.address == function.address).all(|other| other.is_local)
}

/// Names that may have been meant.
fn near(wanted: &str, names: &[String]) -> String {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let near: Vec<String> = nearest(wanted, names).into_iter().take(NEAR_MAX).map(|name| format!("`{name}`")).collect();
    match near[..] {
        [] => String::new(),
        _ => format!("; did you mean {}?", near.join(" or ")),
    }
}

/// The arguments that are recorded: those of the signature, or those that the words choose.
fn chosen(
    machine: Machine,
    wanted: Option<&[ArgumentWord]>,
    signature: Option<&Signature>,
    text: &str,
) -> Result<Vec<WantedField>, String> {
    let known = signature.map_or(&[][..], |signature| &signature.arguments);
    let Some(wanted) = wanted else {
        return Ok(known.iter().map(|argument| argument_field(argument, None)).collect());
    };
    let one = |word: &ArgumentWord| {
        if let Some(argument) = known.iter().find(|argument| argument.name == word.name) {
            return Ok(argument_field(argument, word.kind));
        }
        let number = word.name.strip_prefix("arg").and_then(|number| number.parse().ok());
        let register = number.and_then(|number| machine.argument(number));
        let register = register.ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|argument| argument.name.as_str()).collect();
            let has = if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) };
            format!(
                "`{text}`: there is no argument `{}`{has}; `arg1` is the first one that is an integer or an address",
                word.name
            )
        })?;
        let (name, source) = (word.name.clone(), ProbeFieldSource::Register(register.to_owned()));
        Ok(WantedField { name, source, kind: word.kind.unwrap_or(ProbeFieldKind::Address) })
    };
    wanted.iter().map(one).collect()
}

/// The result that is recorded.
fn result(
    signature: Option<&Signature>,
    wanted: Option<&[ArgumentWord]>,
    text: &str,
) -> Result<Vec<WantedField>, String> {
    let of = |kind| vec![WantedField { name: RESULT.to_owned(), source: ProbeFieldSource::Result, kind }];
    let known = match signature.map_or(ResultKind::Unknown, |signature| signature.result) {
        ResultKind::Nothing => None,
        ResultKind::Value(kind) => Some(field_kind(kind)),
        ResultKind::Unknown => Some(ProbeFieldKind::Address),
    };
    match wanted {
        None => Ok(known.map(of).unwrap_or_default()),
        Some([]) => Ok(Vec::new()),
        Some([ArgumentWord { name, kind }]) if name == RESULT => {
            Ok(of(kind.or(known).unwrap_or(ProbeFieldKind::Address)))
        }
        Some(_) => Err(format!("`{text}`: when a function returns, there is its result `ret`, and no argument")),
    }
}

fn argument_field(argument: &FunctionArgument, kind: Option<ProbeFieldKind>) -> WantedField {
    let kind = kind.unwrap_or(field_kind(argument.kind));
    WantedField { name: argument.name.clone(), source: field_source(&argument.place), kind }
}

fn field_kind(kind: ValueKind) -> ProbeFieldKind {
    match kind {
        ValueKind::Signed(bytes) => ProbeFieldKind::Signed(bytes),
        ValueKind::Unsigned(bytes) => ProbeFieldKind::Unsigned(bytes),
        ValueKind::Address => ProbeFieldKind::Address,
        ValueKind::Text => ProbeFieldKind::Text,
    }
}

fn field_source(place: &ValuePlace) -> ProbeFieldSource {
    match place {
        ValuePlace::Register(name) => ProbeFieldSource::Register((*name).to_owned()),
        ValuePlace::Memory { base, offset } => ProbeFieldSource::Memory { base: (*base).to_owned(), offset: *offset },
        ValuePlace::Mapped(offset) => ProbeFieldSource::Mapped(*offset),
        ValuePlace::Constant(value) => ProbeFieldSource::Constant(*value),
    }
}
