//! Addresses as packets have them in texts.

use std::net::IpAddr;

/// Form of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressForm {
    Mac,
    Ip,
}

impl AddressForm {
    /// Why a text is none of these addresses, as packets have them; `None`: it is one.
    pub(crate) fn fault(self, text: &str) -> Option<String> {
        match self {
            Self::Mac if mac_of(text).is_none() => {
                Some("an address of Ethernet is six numbers of two digits: `\"02:42:ac:11:00:02\"`".to_owned())
            }
            Self::Mac => None,
            Self::Ip => match text.parse::<IpAddr>() {
                Ok(address) if address.to_string() == text => None,
                Ok(address) => Some(format!("packets have this address as `\"{address}\"`")),
                Err(_) => Some("an address is `\"10.0.0.1\"` or `\"fe80::1\"`; `\"10.*\"` is a pattern".to_owned()),
            },
        }
    }
}

/// The address that a text is, as packets have it.
pub(crate) fn mac_of(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2)?;
        let is_written_so = part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        *byte = u8::from_str_radix(part, 16).ok().filter(|_| is_written_so)?;
    }
    parts.next().is_none().then_some(bytes)
}
