//! Definitions as `pleco` writes them: JSON, and its forms before that.
//!
//! ```text
//! from 2013-03   0 : { "name" : "kernel", "events" : { 0 : "Context Switch", 1 : "BZERO" } }
//! from 2014-04   0 : { "name" : "kernel", "events" : { 0 : ["CSWITCH", "Context Switch" ] } }
//! from 2017-10   "0" : the same
//! ```
//!
//! Texts were never escaped: a quote ends a text if a comma, a colon or a bracket follows.

use std::collections::BTreeMap;

use super::names::SubsystemNames;

/// The subsystems in a text.
///
/// # Errors
///
/// The first error, with its line and column.
pub(super) fn parse(text: &str) -> Result<BTreeMap<u16, SubsystemNames>, String> {
    let mut parser = JsonParser { text, at: 0 };
    let mut subsystems = BTreeMap::new();
    parser.object(|parser, key| {
        let names = parser.subsystem()?;
        // Messages have negative numbers, and names of their own.
        if let Ok(number) = u16::try_from(key) {
            subsystems.insert(number, names);
        }
        Ok(())
    })?;
    parser.space();
    match parser.rest().is_empty() {
        true => Ok(subsystems),
        false => Err(parser.error("the end of the file")),
    }
}

struct JsonParser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> JsonParser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, expected: &str) -> String {
        let before = &self.text[..self.at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        let found = match self.rest().chars().next() {
            None => "the end of the file".to_owned(),
            Some(first) => format!("`{}`", first.escape_debug()),
        };
        format!("{line}:{column}: expected {expected}, found {found}")
    }

    fn is_next(&mut self, symbol: char) -> bool {
        self.space();
        let is_there = self.rest().starts_with(symbol);
        self.at += if is_there { symbol.len_utf8() } else { 0 };
        is_there
    }

    fn expect(&mut self, symbol: char) -> Result<(), String> {
        if self.is_next(symbol) { Ok(()) } else { Err(self.error(&format!("`{symbol}`"))) }
    }

    /// An object whose keys are numbers, with quotes or without.
    fn object(&mut self, mut member: impl FnMut(&mut Self, i64) -> Result<(), String>) -> Result<(), String> {
        self.expect('{')?;
        while !self.is_next('}') {
            let key = self.number()?;
            self.expect(':')?;
            member(self, key)?;
            if !self.is_next(',') {
                return self.expect('}');
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<i64, String> {
        let is_quoted = self.is_next('"');
        let digits = self.rest().strip_prefix('-').unwrap_or(self.rest());
        let sign = self.rest().len() - digits.len();
        let length = sign + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let number = self.rest()[..length].parse().map_err(|_| self.error("a number"))?;
        self.at += length;
        if is_quoted {
            self.expect('"')?;
        }
        Ok(number)
    }

    fn subsystem(&mut self) -> Result<SubsystemNames, String> {
        let mut names = SubsystemNames::default();
        self.expect('{')?;
        while !self.is_next('}') {
            match self.string()? {
                "name" => {
                    self.expect(':')?;
                    self.string()?.clone_into(&mut names.name);
                }
                "events" => {
                    self.expect(':')?;
                    self.object(|parser, key| {
                        let name = parser.event()?;
                        names.events.extend(u16::try_from(key).ok().map(|number| (number, name.to_owned())));
                        Ok(())
                    })?;
                }
                _ => return Err(self.error("\"name\" or \"events\" before it")),
            }
            if !self.is_next(',') {
                self.expect('}')?;
                break;
            }
        }
        Ok(names)
    }

    /// The name of an event: the first text of a list, or the only one.
    fn event(&mut self) -> Result<&'t str, String> {
        if !self.is_next('[') {
            return self.string();
        }
        let name = self.string()?;
        while self.is_next(',') {
            self.string()?;
        }
        self.expect(']').map(|()| name)
    }

    /// A text, up to the quote behind which something else begins.
    fn string(&mut self) -> Result<&'t str, String> {
        self.expect('"')?;
        let rest = self.rest();
        let is_end = |after: &str| after.trim_start().starts_with([',', ']', '}', ':']) || after.trim().is_empty();
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let end = line.match_indices('"').map(|(at, _)| at).find(|at| is_end(&line[at + 1..]));
        let Some(end) = end else { return Err(self.error("a text that ends in its line")) };
        self.at += end + 1;
        Ok(&rest[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<(u16, String)> {
        parse(text).unwrap().remove(&0).unwrap().events.into_iter().collect()
    }

    #[test]
    fn all_dialects_are_understood() {
        let of = |key: &str, event: &str| {
            format!(
                "{{\n{key} : {{\n\t\"name\" : \"kernel\",\n\t\"events\" : {{\n\t\t{event}\n\t}}\n}},\n\
                 -5632 : {{\n\t\"name\" : \"ump send\"\n}}\n}}"
            )
        };
        let one = |name: &str| vec![(0, name.to_owned())];
        assert_eq!(events(&of("0", "0 : \"Context Switch\"")), one("Context Switch"));
        assert_eq!(events(&of("0", "0 : [\"CSWITCH\", \"Context Switch\" ]")), one("CSWITCH"));
        let quoted = of("\"0\"", "\"0\" : [\"CSWITCH\", \"Context Switch\" ]").replace("-5632", "\"-5632\"");
        assert_eq!(events(&quoted), one("CSWITCH"));
        assert_eq!(events(&of("0", "0 : [\"A\", \"says \"no\" and \\\" ]")), one("A"));
        assert_eq!(
            events("{\"0\":{\"name\":\"kernel\",\"events\":{\"0\":[\"A\",\"a\"],\"1\":[\"B\",\"b\"]}}}").len(),
            2
        );
        assert_eq!(parse("{}").unwrap().len(), 0);
        assert_eq!(parse(&of("0", "0 : \"A\"")).unwrap()[&0].name, "kernel");
    }

    #[test]
    fn errors_have_a_place() {
        for (text, error) in [
            ("", "1:1: expected `{`, found the end of the file"),
            ("{ x", "1:3: expected a number, found `x`"),
            ("{ 0 : {\n \"nam\" : 1 } }", "2:7: expected \"name\" or \"events\" before it, found ` `"),
            ("{ 0 : { \"name\" : \"a\n\" } }", "1:19: expected a text that ends in its line, found `a`"),
            ("{ 0 : { } } }", "1:13: expected the end of the file, found `}`"),
            ("{ \"0 : { } }", "1:6: expected `\"`, found `:`"),
            ("{ 99999999999999999999 : {} }", "1:3: expected a number, found `9`"),
        ] {
            assert_eq!(parse(text).unwrap_err(), error, "{text}");
        }
    }
}
