//! The query parameters of a URL, as values. A parameter that is unknown, repeated or out of range
//! is refused by name, so that a typo does not select everything.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::http::Uri;

use crate::refusal::RequestRefusal;

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct RequestParameters {
    pairs: Vec<(String, String)>,
}

/// Parameters that every request may have.
const ALWAYS: [&str; 1] = ["token"];

impl RequestParameters {
    /// Takes these parameters and no others.
    pub(crate) fn new(uri: &Uri, known: &[&str]) -> Result<Self, RequestRefusal> {
        let pairs = pairs(uri);
        let is_known = |name: &str| known.contains(&name) || ALWAYS.contains(&name);
        match pairs.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => {
                let there_are = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(RequestRefusal::parameter(
                    name,
                    format!("there is no parameter `{name}` here; there are: {there_are}"),
                ))
            }
            None => Ok(Self { pairs }),
        }
    }

    /// A parameter that stands there once at most.
    pub(crate) fn text<'a>(&'a self, name: &'a str) -> Result<Option<&'a str>, RequestRefusal> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            Some(_) => Err(RequestRefusal::parameter(name, format!("`{name}` stands there more than once"))),
            None => Ok(first),
        }
    }

    /// A parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |pair| pair.0 == name).map(|pair| pair.1.as_str())
    }

    /// A whole number of a range.
    pub(crate) fn number<N>(&self, name: &str, range: RangeInclusive<N>) -> Result<Option<N>, RequestRefusal>
    where
        N: FromStr + PartialOrd + Display,
    {
        self.text(name)?.map(|text| number(name, text, &range)).transpose()
    }

    /// The same, which must be there.
    pub(crate) fn needed<N>(&self, name: &str, range: RangeInclusive<N>) -> Result<N, RequestRefusal>
    where
        N: FromStr + PartialOrd + Display,
    {
        self.number(name, range)?.ok_or_else(|| RequestRefusal::parameter(name, format!("`{name}` is missing")))
    }

    /// Numbers with commas between them.
    pub(crate) fn numbers<N>(
        &self,
        name: &str,
        range: &RangeInclusive<N>,
        most: usize,
    ) -> Result<Vec<N>, RequestRefusal>
    where
        N: FromStr + PartialOrd + Display,
    {
        let text = self.text(name)?.unwrap_or_default();
        let count = if text.is_empty() { 0 } else { text.split(',').count() };
        if count > most {
            return Err(RequestRefusal::parameter(name, format!("`{name}` has {count} numbers; {most} are the most")));
        }
        text.split(',').filter(|_| count > 0).map(|text| number(name, text, range)).collect()
    }

    /// Numbers and ranges of them (`7,100-2150`) with commas between them, none of them below 0.
    pub(crate) fn ranges<N>(
        &self,
        name: &str,
        range: &RangeInclusive<N>,
        most: usize,
    ) -> Result<Vec<RangeInclusive<N>>, RequestRefusal>
    where
        N: FromStr + PartialOrd + Display + Copy,
    {
        let text = self.text(name)?.unwrap_or_default();
        let count = if text.is_empty() { 0 } else { text.split(',').count() };
        if count > most {
            return Err(RequestRefusal::parameter(name, format!("`{name}` has {count} ranges; {most} are the most")));
        }
        let parse = |text: &str| {
            let (low, high) = text.split_once('-').unwrap_or((text, text));
            let (low, high) = (number(name, low, range)?, number(name, high, range)?);
            match low <= high {
                true => Ok(low..=high),
                false => {
                    Err(RequestRefusal::parameter(name, format!("`{name}` has `{low}-{high}`, which is no range")))
                }
            }
        };
        text.split(',').filter(|_| count > 0).map(parse).collect()
    }
}

/// The token, if the URL has one.
pub(crate) fn token(uri: &Uri) -> Option<String> {
    pairs(uri).into_iter().find(|(name, _)| name == "token").map(|(_, value)| value)
}

fn pairs(uri: &Uri) -> Vec<(String, String)> {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect()
}

fn number<N>(name: &str, text: &str, range: &RangeInclusive<N>) -> Result<N, RequestRefusal>
where
    N: FromStr + PartialOrd + Display,
{
    let (low, high) = (range.start(), range.end());
    // Rust takes `+5`, too; JSON and schemas do not.
    let is_plain = !text.starts_with('+');
    match text.parse::<N>().ok().filter(|number| is_plain && range.contains(number)) {
        Some(number) => Ok(number),
        None => {
            let text: String = text.chars().take(40).collect();
            let message = format!("`{name}` is `{text}`; it is a whole number from {low} to {high}");
            Err(RequestRefusal::parameter(name, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn query(text: &str) -> Result<RequestParameters, RequestRefusal> {
        RequestParameters::new(&format!("/x?{text}").parse().unwrap(), &["level", "tracks", "filter"])
    }

    fn refused<T: std::fmt::Debug>(result: Result<T, RequestRefusal>, expected: &Expect) {
        let error = result.expect_err("it is refused").as_json();
        expected.assert_eq(&format!("{} ({})", error["message"].as_str().unwrap(), error["parameter"]));
    }

    #[test]
    fn values_are_taken() {
        let all = query("level=7&tracks=1,2,3&filter=a%20%3D%3D+%22%C3%A4%22&token=x").unwrap();
        assert_eq!(all.needed("level", 0..=62_u8), Ok(7));
        assert_eq!(all.numbers("tracks", &(0..=u32::MAX), 3), Ok(vec![1, 2, 3]));
        assert_eq!(all.ranges("tracks", &(0..=9_u32), 3), Ok(vec![1..=1, 2..=2, 3..=3]));
        assert_eq!(query("tracks=1-2,7").unwrap().ranges("tracks", &(0..=9_u32), 2), Ok(vec![1..=2, 7..=7]));
        assert_eq!(all.text("filter"), Ok(Some("a == \"ä\"")));
        let none = query("").unwrap();
        assert_eq!((none.number("level", 0..=62_u8), none.numbers("tracks", &(0..=9_u32), 3)), (Ok(None), Ok(vec![])));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        refused(
            query("levle=7"),
            &expect![[r#"there is no parameter `levle` here; there are: level, tracks, filter ("levle")"#]],
        );
        let of = |text: &str| query(text).unwrap();
        refused(of("level=7&level=8").text("level"), &expect![[r#"`level` stands there more than once ("level")"#]]);
        let level = |text: &str| of(text).needed("level", 0..=62_u8);
        refused(level(""), &expect![[r#"`level` is missing ("level")"#]]);
        refused(level("level=63"), &expect![[r#"`level` is `63`; it is a whole number from 0 to 62 ("level")"#]]);
        refused(level("level=%2B5"), &expect![[r#"`level` is `+5`; it is a whole number from 0 to 62 ("level")"#]]);
        refused(level("level=-1"), &expect![[r#"`level` is `-1`; it is a whole number from 0 to 62 ("level")"#]]);
        let tracks = |text: &str| of(text).numbers("tracks", &(0..=9_u32), 3);
        refused(tracks("tracks=1,2,3,4"), &expect![[r#"`tracks` has 4 numbers; 3 are the most ("tracks")"#]]);
        refused(tracks("tracks=1,,2"), &expect![[r#"`tracks` is ``; it is a whole number from 0 to 9 ("tracks")"#]]);
    }
}
