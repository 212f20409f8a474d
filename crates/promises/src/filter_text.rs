//! Texts that are, nearly are, or are not at all expressions of the filter language.
//!
//! ```text
//! noise         any bytes
//! soup          words of the language in any order
//! expression    as the grammar has it; whether the types fit depends on the class it is bound for
//! damaged       an expression with some bytes changed
//! extreme       one construction over and over: deep, or long, around every limit
//! ```

use crate::random::RandomNumbers;

const WORDS: [&str; 74] = [
    "a",
    "b",
    "c",
    "d.e",
    "f[2]",
    "$ctx.vtid",
    "$event.name",
    "event.name",
    "$payload.a",
    "$app.p:t",
    "time",
    "cycles",
    "$time",
    "$cycles",
    "has(",
    "has(a)",
    "in",
    "not",
    "(",
    ")",
    "[",
    "]",
    "..",
    "..=",
    ",",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "=~",
    "!~",
    "&&",
    "||",
    "!",
    "~",
    "-",
    "+",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "0",
    "1",
    "-1",
    "0x7f",
    "017",
    "08",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "1.5",
    ".5",
    "5.",
    "1e308",
    "1e400",
    "0x1p4",
    "5ms",
    "10MiB",
    "1.5us",
    "7q",
    "@12:18:50.43",
    "\"\"",
    "\"a*\"",
    "\"*a*b\"",
    "\"a\\*\"",
    "'b'",
    "\"(a|b)+$\"",
    "/*",
];

/// A text of any of the sorts.
#[must_use]
pub fn text(random: &mut RandomNumbers) -> String {
    match random.below(16) {
        0 => {
            let count = random.below(200);
            String::from_utf8_lossy(&random.bytes(count)).into_owned()
        }
        1..=3 => soup(random),
        4 | 5 => {
            let whole = expression(random, 5);
            String::from_utf8_lossy(&random.damaged(whole.as_bytes())).into_owned()
        }
        6 => extreme(random),
        _ => expression(random, 5),
    }
}

fn soup(random: &mut RandomNumbers) -> String {
    let count = random.below(12);
    let spaces = if random.below(4) == 0 { "" } else { " " };
    let words: Vec<&str> = (0..count).map(|_| WORDS[random.below(WORDS.len())]).collect();
    words.join(spaces)
}

/// Statements with the same meaning in two forms, for any parts: unknown, false and true alike.
pub(crate) fn alike(random: &mut RandomNumbers) -> [String; 2] {
    let [a, b, c] = [(); 3].map(|()| expression(random, 2));
    match random.below(8) {
        0 => [format!("!(!({a}))"), a],
        1 => [format!("({a}) && ({b})"), format!("({b}) && ({a})")],
        2 => [format!("({a}) || ({b})"), format!("({b}) || ({a})")],
        3 => [format!("({a}) && ({b})"), format!("!(!({a}) || !({b}))")],
        4 => [format!("({a}) || ({b})"), format!("!(!({a}) && !({b}))")],
        5 => [format!("({a}) && (({b}) || ({c}))"), format!("({a}) && ({b}) || ({a}) && ({c})")],
        6 => [format!("({a}) || ({b}) && ({c})"), format!("(({a}) || ({b})) && (({a}) || ({c}))")],
        _ => [format!("({a}) == 1"), a],
    }
}

/// A statement that the grammar accepts.
fn expression(random: &mut RandomNumbers, depth: usize) -> String {
    const RELATIONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
    match random.below(if depth == 0 { 4 } else { 10 }) {
        0 => format!("has({})", name(random)),
        1 => format!("{} {} {}", name(random), ["==", "!="][random.below(2)], literal(random)),
        2 => format!("{} in ({})", name(random), list(random)),
        3 => format!("{} =~ {}", name(random), ["\"^a+b?\"", "\"a|(b\"", "\"(?i)X\""][random.below(3)]),
        4 => format!("!({})", expression(random, depth - 1)),
        5 | 6 => {
            let joint = [" && ", " || "][random.below(2)];
            let parts: Vec<String> = (0..=random.below(4)).map(|_| expression(random, depth - 1)).collect();
            format!("({})", parts.join(joint))
        }
        _ => {
            let relation = RELATIONS[random.below(RELATIONS.len())];
            format!("{} {relation} {}", number(random, depth - 1), number(random, depth - 1))
        }
    }
}

fn number(random: &mut RandomNumbers, depth: usize) -> String {
    const OPERATIONS: [&str; 10] = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"];
    match random.below(if depth == 0 { 2 } else { 6 }) {
        0 => name(random),
        1 => integer(random),
        2 => format!("{}{}", ["-", "~", "!"][random.below(3)], name(random)),
        3 => format!("({})", expression(random, depth - 1)),
        _ => {
            let operation = OPERATIONS[random.below(OPERATIONS.len())];
            format!("({} {operation} {})", number(random, depth - 1), number(random, depth - 1))
        }
    }
}

fn name(random: &mut RandomNumbers) -> String {
    const GLOBAL: [&str; 6] = ["$ctx.vtid", "event.name", "$payload.a", "time", "cycles", "$env.hostname"];
    let letter = char::from(b'a' + random.below(26) as u8);
    match random.below(10) {
        0 => GLOBAL[random.below(GLOBAL.len())].into(),
        1 => format!("{letter}.{}", name(random)),
        2 => format!("{letter}[{}]", random.below(9)),
        _ => letter.into(),
    }
}

fn integer(random: &mut RandomNumbers) -> String {
    match random.below(6) {
        0 => random.any().to_string(),
        1 => format!("{:#x}", random.any()),
        2 => format!("{}{}", random.below(2000), ["ns", "us", "ms", "s", "KiB", "MB"][random.below(6)]),
        3 => format!("{}.{}", random.below(100), random.below(1000)),
        _ => random.below(8).to_string(),
    }
}

fn literal(random: &mut RandomNumbers) -> String {
    const TEXTS: [&str; 8] = ["\"a\"", "\"a*\"", "\"*\"", "\"a*b*\"", "\"\"", "\"b c\"", "\"\\\"\"", "'d'"];
    if random.below(2) == 0 { TEXTS[random.below(TEXTS.len())].into() } else { integer(random) }
}

fn list(random: &mut RandomNumbers) -> String {
    let item = |random: &mut RandomNumbers| match random.below(4) {
        0 => format!("{}..{}", integer(random), integer(random)),
        1 => literal(random),
        _ => integer(random),
    };
    let items: Vec<String> = (0..=random.below(5)).map(|_| item(random)).collect();
    items.join(", ")
}

/// The texts repeated before, in the middle, and as often behind.
const REPEATED: [(&str, &str, &str); 30] = [
    ("(", "a", ")"),
    ("(", "a", ""),
    ("", "a", ")"),
    ("!", "a", ""),
    ("!(", "a", ")"),
    ("-", "a", ""),
    ("~", "a", ""),
    ("+", "a", ""),
    ("1 == (", "1", ")"),
    ("a && (b || (", "c", "))"),
    ("a + (", "1", ") == 2"),
    ("a & (", "1", ")"),
    ("", "a", " && a != 1000003"),
    ("", "a", " || a == 7 && b"),
    ("", "1", " == 1"),
    ("", "a", " + 1"),
    ("", "a", " << 1"),
    ("", "a", ".b"),
    ("", "a", "[0]"),
    ("a[", "0", "]"),
    ("has(", "a", ")"),
    ("/*", "a", "*/"),
    ("// a\n", "a", ""),
    ("\"", "a", "\""),
    ("'a' ==", "'b'", ""),
    ("a in (", "1", ")"),
    ("", "a in (1", ", 3)"),
    ("", "a == \"", "*b"),
    ("", "a =~ \"", "(a*){9}"),
    ("\u{1F4A5}", "\0", "\u{FEFF}"),
];

/// One construction over and over.
fn extreme(random: &mut RandomNumbers) -> String {
    let (before, middle, behind) = REPEATED[random.below(REPEATED.len())];
    let count = match random.below(5) {
        0 => random.below(20),
        1 => 60 + random.below(80),
        2 => 240 + random.below(40),
        3 => 1000 + random.below(100),
        _ => (1 << 16) / (before.len() + behind.len()) - 20 + random.below(40),
    };
    repeated((before, middle, behind), count)
}

/// Every construction, as often as is asked for.
pub fn extremes(count: usize) -> impl Iterator<Item = String> {
    REPEATED.into_iter().map(move |parts| repeated(parts, count))
}

fn repeated((before, middle, behind): (&str, &str, &str), count: usize) -> String {
    let closing = if middle.ends_with('"') { "\"" } else { "" };
    format!("{}{middle}{}{closing}", before.repeat(count), behind.repeat(count))
}
