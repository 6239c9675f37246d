//! Which context entries an expression mentions.

/// Whether `text` mentions `name` as a word: not preceded by a letter, a digit or `.`, and not continued by a word
/// character. Upstream searches the text, string literals included, and so do we: an entry loads exactly
/// when a user of the reference would see it load.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices(name).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        let after = bytes.get(at + name.len());
        let ends_in_word = name.as_bytes().last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        before.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'.')
            && !(ends_in_word && after.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for (text, want) in [
            ("c", true),
            ("c.x", true),
            ("zz || 'c'", true),
            ("zz || '_c'", true),
            ("zz || '-c'", true),
            ("zz || 'xc'", false),
            ("zz || '.c'", false),
            ("cc", false),
            ("c_", false),
            ("a.c", false),
            ("f(c)", true),
        ] {
            assert_eq!(mentions(text, "c"), want, "{text}");
        }
        assert!(mentions("\"my-c\"", "my-c"));
    }
}
