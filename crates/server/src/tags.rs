//! Tags of responses (`ETag`): a client with a tag that is still right is not sent the response
//! again.

use axum::http::HeaderValue;

/// Whether one of the client's tags is this one.
pub(crate) fn matches(known: &HeaderValue, tag: &str) -> bool {
    let is_tag = |one: &str| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag;
    known.to_str().is_ok_and(|known| known.split(',').any(|one| is_tag(one.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_whole() {
        let known = |text: &str| matches(&HeaderValue::from_str(text).unwrap(), "\"ab\"");
        assert!(known("\"ab\"") && known("\"x\", W/\"ab\"") && known("*"));
        assert!(!known("\"a\"") && !known("ab"));
    }
}
