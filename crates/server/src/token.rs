//! The secret that each request must have: it stands in the URL that `kymo view` prints and opens.

use std::fmt;
use std::hint::black_box;

/// 128 random bits as hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

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
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn text(&self) -> &str {
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
