//! The 16 bytes that name a trace, in their usual text form.

use core::fmt;
use core::str::FromStr;

/// A universally unique identifier.
///
/// ```
/// use kymo_units::Uuid;
/// let uuid: Uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564".parse().unwrap();
/// assert_eq!(uuid.0[0], 0x2a);
/// assert_eq!(uuid.to_string(), "2a6422d0-6cee-11e0-8c08-cb07d7b3a564");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// That of nothing: zeros.
    pub const NIL: Self = Self([0; 16]);
}

/// The text is not `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseUuidError;

impl fmt::Display for ParseUuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a UUID has the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, in hexadecimal digits")
    }
}

impl core::error::Error for ParseUuidError {}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.as_bytes();
        if text.len() != 36 {
            return Err(ParseUuidError);
        }
        let mut bytes = [0; 16];
        let mut at = 0;
        for (index, byte) in bytes.iter_mut().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                if text[at] != b'-' {
                    return Err(ParseUuidError);
                }
                at += 1;
            }
            *byte = hex(text[at])? << 4 | hex(text[at + 1])?;
            at += 2;
        }
        Ok(Self(bytes))
    }
}

fn hex(digit: u8) -> Result<u8, ParseUuidError> {
    let value = (digit as char).to_digit(16).ok_or(ParseUuidError)?;
    Ok(value as u8)
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_shapes_are_refused() {
        for text in [
            "",
            "2a6422d0",
            "2a6422d0-6cee-11e0-8c08-cb07d7b3a56",
            "2a6422d0x6cee-11e0-8c08-cb07d7b3a564",
            "2a6422d0-6cee-11e0-8c08-cb07d7b3a5gg",
        ] {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError), "{text}");
        }
    }
}
