//! The secret that each request must have: it stands in the URL that `kymo view` prints and opens. It
//! is a new one for each server, unless the caller has one that stays.

use std::fmt;
use std::hint::black_box;

/// 128 random bits as hexadecimal digits, or a text of the user's that is as hard to guess.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// The length of a token: shorter ones can be guessed, longer ones do not fit into URLs.
const LENGTHS: std::ops::RangeInclusive<usize> = 32..=128;

/// It says nothing: logs are read by others.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}

impl Token {
    /// A new one that cannot be guessed.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// A text as a token; `None` if it is not 32 to 128 letters, digits, `-` and `_`, which stand in URLs as they are.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
        (LENGTHS.contains(&text.len()) && text.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    /// The token as it stands in a URL.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a text is the token. The comparison takes equally long however much of it is right,
    /// so that an attacker cannot find it out digit by digit.
    pub(crate) fn is(&self, said: &str) -> bool {
        let (own, said) = (self.0.as_bytes(), said.as_bytes());
        let differs = own.iter().zip(said).fold(0, |differs, (own, said)| black_box(differs | (own ^ said)));
        own.len() == said.len() && black_box(differs) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_tokens_if_they_are_long_and_plain() {
        for text in ["0123456789abcdef0123456789abcdef".to_owned(), "a-Z_9".repeat(25)] {
            assert_eq!(Token::of(&text).unwrap().text(), text);
        }
        for text in [
            String::new(),
            "a".repeat(31),
            "a".repeat(129),
            "a b".repeat(20),
            "é".repeat(20),
            format!("{}\n", "a".repeat(32)),
        ] {
            assert!(Token::of(&text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn only_all_of_it_is_right() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(token.text().len(), 32);
        assert!(token.is(token.text()) && !token.is(other.text()));
        for wrong in ["", &token.text()[..31], &format!("{}0", token.text()), &token.text().to_uppercase().repeat(2)] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(...)");
    }
}
