//! The words that name probes.

use std::path::PathBuf;

use kymo_probe::probes::ProbeFieldKind;

use crate::probes::place;

/// Words for a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionWords {
    /// The file, without links.
    pub(super) path: PathBuf,
    /// Its name, as it was written, without its folder.
    pub(super) app: String,
    pub(super) target: ProbeTarget,
    pub(super) is_return: bool,
    /// `None`: all that are known.
    pub(super) arguments: Option<Vec<ArgumentWord>>,
}

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProbeTarget {
    /// Functions of such names.
    Pattern(String),
    /// An instruction of a function.
    Inside(String, u64),
    /// An instruction.
    Address(u64),
}

/// Words for USDT probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsdtWords {
    pub(super) path: PathBuf,
    pub(super) app: String,
    pub(super) provider: String,
    pub(super) name: String,
    pub(super) arguments: Option<Vec<ArgumentWord>>,
}

/// An argument to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArgumentWord {
    pub(super) name: String,
    /// `None`: the known one.
    pub(super) kind: Option<ProbeFieldKind>,
}

impl FunctionWords {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (rest, arguments) = arguments(text)?;
        let (path, app, target) = file(rest, "FUNCTION")?;
        let (target, is_return) = target.strip_suffix("%return").map_or((target, false), |target| (target, true));
        let target = match target.rsplit_once('+') {
            _ if target.starts_with("0x") => ProbeTarget::Address(number(target, text)?),
            Some((symbol, more)) if more.starts_with(|first: char| first.is_ascii_digit()) => {
                ProbeTarget::Inside(symbol.to_owned(), number(more, text)?)
            }
            _ => ProbeTarget::Pattern(target.to_owned()),
        };
        if is_return && !matches!(target, ProbeTarget::Pattern(_)) {
            return Err(format!("`{text}`: functions return, and instructions do not: `%return` stands behind a name"));
        }
        Ok(Self { path, app, target, is_return, arguments })
    }
}

impl UsdtWords {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (rest, arguments) = arguments(text)?;
        let (path, app, probe) = file(rest, "PROVIDER:NAME")?;
        let (provider, name) = probe
            .split_once(':')
            .filter(|(provider, name)| !provider.is_empty() && !name.is_empty())
            .ok_or_else(|| format!("`{text}`: a USDT probe is PATH:PROVIDER:NAME, and all of a file are PATH:*:*"))?;
        let (provider, name) = (provider.to_owned(), name.to_owned());
        Ok(Self { path, app, provider, name, arguments })
    }
}

/// The file before a colon, its name, and the words behind that. Names of Rust and C++ have colons in pairs.
fn file<'t>(text: &'t str, what: &str) -> Result<(PathBuf, String, &'t str), String> {
    let bytes = text.as_bytes();
    let is_single =
        |at: &usize| bytes[*at] == b':' && bytes.get(at + 1) != Some(&b':') && (*at == 0 || bytes[at - 1] != b':');
    let mut first = None;
    for at in (0..bytes.len()).filter(is_single) {
        let (name, rest) = (&text[..at], &text[at + 1..]);
        if rest.is_empty() {
            continue;
        }
        if let Some(path) = place::locate(name) {
            let app = name.rsplit('/').next().unwrap_or(name).to_owned();
            return Ok((path, app, rest));
        }
        first = first.or(Some(name));
    }
    match first {
        Some(name) => Err(format!("`{text}`: {}", place::absent(name))),
        None => Err(format!("`{text}`: a probe is PATH:{what}, such as ./app:parse_*")),
    }
}

fn number(digits: &str, text: &str) -> Result<u64, String> {
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    value.map_err(|_| format!("`{text}`: `{digits}` is no number, such as 16 or 0x10"))
}

/// The words before a list of arguments in parentheses, and that.
fn arguments(text: &str) -> Result<(&str, Option<Vec<ArgumentWord>>), String> {
    let Some((rest, list)) = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) else {
        return Ok((text, None));
    };
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    let words = words.map(|word| {
        let (name, kind) = word.split_once(':').map_or((word, None), |(name, kind)| (name.trim(), Some(kind.trim())));
        let kind = kind.map(|kind| kind_of(kind).ok_or_else(|| no_type(text, kind))).transpose()?;
        Ok(ArgumentWord { name: name.to_owned(), kind })
    });
    Ok((rest, Some(words.collect::<Result<_, String>>()?)))
}

fn kind_of(word: &str) -> Option<ProbeFieldKind> {
    let bytes =
        |word: &str| matches!(word, "8" | "16" | "32" | "64").then(|| word.parse::<u8>().ok().map(|bits| bits / 8));
    match word {
        "string" => Some(ProbeFieldKind::Text),
        "x64" => Some(ProbeFieldKind::Address),
        _ => match word.split_at_checked(1)? {
            ("s", bits) => Some(ProbeFieldKind::Signed(bytes(bits)??)),
            ("u", bits) => Some(ProbeFieldKind::Unsigned(bytes(bits)??)),
            _ => None,
        },
    }
}

fn no_type(text: &str, kind: &str) -> String {
    format!(
        "`{text}`: `{kind}` is no type: there are s8, s16, s32, s64, u8, u16, u32, u64, x64 (an address) and string"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(text: &str) -> (ProbeTarget, bool, Option<Vec<ArgumentWord>>) {
        let words = FunctionWords::parse(text).expect("it is one");
        assert_eq!(words.app, "sh");
        (words.target, words.is_return, words.arguments)
    }

    #[test]
    fn functions_are_named_by_words() {
        let pattern = |text: &str| ProbeTarget::Pattern(text.to_owned());
        let word = |name: &str, kind| ArgumentWord { name: name.to_owned(), kind };
        assert_eq!(function("sh:parse_*"), (pattern("parse_*"), false, None));
        assert_eq!(function("/bin/sh:a::b::parse%return"), (pattern("a::b::parse"), true, None));
        assert_eq!(function("sh:parse+0x10"), (ProbeTarget::Inside("parse".to_owned(), 16), false, None));
        assert_eq!(function("sh:0x1139"), (ProbeTarget::Address(0x1139), false, None));
        assert_eq!(
            function("sh:parse(n, arg2:string, arg3:u16)"),
            (
                pattern("parse"),
                false,
                Some(vec![
                    word("n", None),
                    word("arg2", Some(ProbeFieldKind::Text)),
                    word("arg3", Some(ProbeFieldKind::Unsigned(2)))
                ])
            )
        );
        assert_eq!(function("sh:parse()").2, Some(Vec::new()));
    }

    #[test]
    fn words_that_name_nothing_are_told() {
        let of = |text: &str| FunctionWords::parse(text).expect_err("it names nothing");
        assert_eq!(of("parse"), "`parse`: a probe is PATH:FUNCTION, such as ./app:parse_*");
        assert!(of("./nothing-here:parse").contains("there is no file ./nothing-here"));
        assert!(of("nothing-here:parse").contains("there is no program or library `nothing-here`"));
        assert!(of("sh:f(a:u3)").contains("`u3` is no type"));
        assert!(of("sh:0xzz").contains("`0xzz` is no number"));
        assert!(of("sh:0x10%return").contains("%return"));
        let usdt = UsdtWords::parse("sh:provider").expect_err("it has no name");
        assert!(usdt.contains("PATH:PROVIDER:NAME"), "{usdt}");
    }
}
