//! Random expressions as text, and the tree that the text must become, by a second, plainer idea of the grammar.

use kymo_random::RandomNumbers;

/// A random expression.
pub(super) struct Written {
    /// With no more parentheses than it needs, but now and then.
    pub(super) text: String,
    /// The expected text of [`crate::Filter::tree`].
    pub(super) tree: String,
    precedence: u8,
    /// The operator, if it is unary.
    unary: Option<char>,
}

/// Values, and their form in the tree.
const LEAVES: [(&str, &str); 34] = [
    ("small", "small"),
    ("small", "small"),
    ("signed", "signed"),
    ("wide", "wide"),
    ("state", "state"),
    ("took", "took"),
    ("ticks", "ticks"),
    ("temperature", "temperature"),
    ("comm", "comm"),
    ("word", "word"),
    ("fixed", "fixed"),
    ("named", "named"),
    ("a -> b [ 3 ] [0x1] . c", "a.b[3][1].c"),
    ("$ctx.vtid", "$ctx.vtid"),
    ("$app.one:two", "$app.one:two"),
    ("`it's here`.x", "`it's here`.x"),
    ("has(signed)", "has(signed)"),
    ("has ( $ctx.x )", "has($ctx.x)"),
    ("0", "0"),
    ("1", "1"),
    ("7u", "7"),
    ("0x1F", "31"),
    ("010", "8"),
    ("0b101", "5"),
    ("1_000LL", "1000"),
    ("18446744073709551615", "18446744073709551615"),
    ("1.5", "1.5"),
    ("2e2", "200.0"),
    ("5us", "5000 nanoseconds"),
    ("1.5KiB", "1536 bytes"),
    ("@12", "@12"),
    ("\"ab\"", "\"ab\""),
    ("'a*b'", "\"a*b\""),
    ("L\"a\\*\\x62**\"", "\"a\\*b*\""),
];

/// Operators with two operands, loosest first; those of one level are equals.
const OPERATORS: [(&str, u8); 16] = [
    ("==", 3),
    ("!=", 3),
    ("<", 4),
    ("<=", 4),
    (">", 4),
    (">=", 4),
    ("|", 5),
    ("^", 6),
    ("&", 7),
    ("<<", 8),
    (">>", 8),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// A random expression, at most this deep.
pub(super) fn expression(random: &mut RandomNumbers, depth: usize) -> Written {
    if depth == 0 || random.below(8) == 0 {
        let (text, tree) = LEAVES[random.below(LEAVES.len())];
        return Written { text: text.to_owned(), tree: format!("{tree}\n"), precedence: 12, unary: None };
    }
    match random.below(8) {
        0 => unary(random, depth),
        1 | 2 => chain(random, depth),
        3 => list(random, depth),
        4 => like(random, depth),
        _ => binary(random, depth),
    }
}

/// An operand that must not be looser than this.
fn operand(random: &mut RandomNumbers, inner: &Written, precedence: u8) -> String {
    let needed = inner.precedence < precedence;
    if needed || random.below(10) == 0 { format!("({})", inner.text) } else { inner.text.clone() }
}

fn indented(trees: &[&str]) -> String {
    trees.iter().flat_map(|tree| tree.lines()).map(|line| format!("  {line}\n")).collect()
}

fn unary(random: &mut RandomNumbers, depth: usize) -> Written {
    let symbol = ['-', '+', '!', '~'][random.below(4)];
    let inner = expression(random, depth - 1);
    // Chains are kept short by the parser; that is tested elsewhere.
    if inner.unary.is_some() {
        return inner;
    }
    let text = format!("{symbol}{}", operand(random, &inner, 11));
    Written { text, tree: format!("{symbol}\n{}", indented(&[&inner.tree])), precedence: 11, unary: Some(symbol) }
}

fn binary(random: &mut RandomNumbers, depth: usize) -> Written {
    let (symbol, precedence) = OPERATORS[random.below(OPERATORS.len())];
    let (left, right) = (expression(random, depth - 1), expression(random, depth - 1));
    let space = ["", " ", "\n", " /* - */ "][random.below(4)];
    // `a.` and `.5` would be numbers or members, `in` a longer name: the operator keeps them apart in any case.
    let text =
        format!("{}{space}{symbol} {}", operand(random, &left, precedence), operand(random, &right, precedence + 1));
    let tree = format!("{symbol}\n{}", indented(&[&left.tree, &right.tree]));
    Written { text, tree, precedence, unary: None }
}

fn chain(random: &mut RandomNumbers, depth: usize) -> Written {
    let (symbol, precedence) = [("||", 1), ("&&", 2)][random.below(2)];
    let members: Vec<Written> = (0..2 + random.below(3)).map(|_| expression(random, depth - 1)).collect();
    let texts: Vec<String> = members.iter().map(|member| operand(random, member, precedence + 1)).collect();
    let trees: Vec<&str> = members.iter().map(|member| member.tree.as_str()).collect();
    let tree = format!("{symbol}\n{}", indented(&trees));
    Written { text: texts.join(&format!(" {symbol} ")), tree, precedence, unary: None }
}

fn list(random: &mut RandomNumbers, depth: usize) -> Written {
    let value = expression(random, depth - 1);
    let (mut texts, mut trees) = (Vec::new(), vec![value.tree.clone()]);
    for _ in 0..=random.below(4) {
        let lowest = expression(random, depth.min(2) - 1);
        if random.below(4) > 0 {
            texts.push(lowest.text);
            trees.push(lowest.tree);
            continue;
        }
        let symbol = ["..", "..="][random.below(2)];
        let highest = expression(random, depth.min(2) - 1);
        texts.push(format!("{} {symbol} {}", lowest.text, highest.text));
        trees.push(format!("{symbol}\n{}", indented(&[&lowest.tree, &highest.tree])));
    }
    let trees: Vec<&str> = trees.iter().map(String::as_str).collect();
    let text = format!("{} in ({})", operand(random, &value, 4), texts.join(", "));
    Written { text, tree: format!("in\n{}", indented(&trees)), precedence: 4, unary: None }
}

fn like(random: &mut RandomNumbers, depth: usize) -> Written {
    let symbol = ["=~", "!~"][random.below(2)];
    let value = expression(random, depth - 1);
    let text = format!("{} {symbol} \"^a\\\"?.*b\"", operand(random, &value, 3));
    let tree = format!("{symbol} \"^a\\\"?.*b\"\n{}", indented(&[&value.tree]));
    Written { text, tree, precedence: 3, unary: None }
}
