//! Anchors: keys of patterns and patches that carry a condition, such as `(name)` or `=(spec)`.

/// What an anchored key asks for. The meaning differs between patterns and strategic merge patches; there, only
/// [`Anchor::Condition`], [`Anchor::Global`] and [`Anchor::AddIfAbsent`] are anchors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// `(key)`: the surroundings count only if the key's value matches.
    Condition,
    /// `<(key)`: the whole rule counts only if the key's value matches.
    Global,
    /// `=(key)`: if the key is there, its value must match.
    Equality,
    /// `^(key)`: some item of the list must match.
    Existence,
    /// `X(key)`: the key must not be there.
    Negation,
    /// `+(key)`: add the value if the key is not there.
    AddIfAbsent,
}

impl Anchor {
    /// What stands before the parenthesis.
    pub fn prefix(self) -> &'static str {
        match self {
            Anchor::Condition => "",
            Anchor::Global => "<",
            Anchor::Equality => "=",
            Anchor::Existence => "^",
            Anchor::Negation => "X",
            Anchor::AddIfAbsent => "+",
        }
    }
}

/// Splits an anchored key into its anchor and the plain key; `None` for a plain key. Blanks around the whole are
/// ignored, those inside the parentheses belong to the key; `()` is a plain key.
pub fn parse_anchor(key: &str) -> Option<(Anchor, &str)> {
    let (prefix, name) = key.trim().strip_suffix(')')?.split_once('(')?;
    let anchor = match prefix {
        "" => Anchor::Condition,
        "<" => Anchor::Global,
        "=" => Anchor::Equality,
        "^" => Anchor::Existence,
        "X" => Anchor::Negation,
        "+" => Anchor::AddIfAbsent,
        _ => return None,
    };
    (!name.is_empty()).then_some((anchor, name))
}

/// The key without its anchor, if it has one.
pub fn strip_anchor(key: &str) -> &str {
    parse_anchor(key).map_or(key, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchored_keys_are_split() {
        for (key, want) in [
            ("(a)", Some((Anchor::Condition, "a"))),
            ("<(a)", Some((Anchor::Global, "a"))),
            ("=(a)", Some((Anchor::Equality, "a"))),
            ("^(a)", Some((Anchor::Existence, "a"))),
            ("X(a)", Some((Anchor::Negation, "a"))),
            ("+(a)", Some((Anchor::AddIfAbsent, "a"))),
            (" =(a b) ", Some((Anchor::Equality, "a b"))),
            ("((a))", Some((Anchor::Condition, "(a)"))),
            ("(é)", Some((Anchor::Condition, "é"))),
            ("()", None),
            (")", None),
            ("", None),
            ("a", None),
            ("a(b)", None),
            ("(a", None),
            ("= (a)", None),
            ("x(a)", None),
        ] {
            assert_eq!(parse_anchor(key), want, "{key}");
            if let Some((anchor, name)) = want {
                assert_eq!(format!("{}({name})", anchor.prefix()), key.trim());
            }
        }
        assert_eq!(strip_anchor("=(a)"), "a");
        assert_eq!(strip_anchor("a"), "a");
    }
}
