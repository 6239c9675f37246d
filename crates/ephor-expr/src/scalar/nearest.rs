//! "Did you mean": the known word nearest to a misspelt one.

/// Words longer than this are not compared.
const LONGEST: usize = 64;

/// The known word that needs the fewest edits (insert, delete, replace, swap neighbours) to become `word`; the first
/// of equals. `None` when even that one differs by more than a third of the letters, or by anything but case when
/// the word has fewer than three.
///
/// A difference in case alone is nearer than any edit.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let folded: Vec<char> = word.iter().map(char::to_ascii_lowercase).collect();
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in known {
        let letters: Vec<char> = candidate.chars().take(LONGEST + 1).collect();
        let cutoff = word.len().max(letters.len()) / 3;
        if letters.len() > LONGEST || letters.len().abs_diff(word.len()) > cutoff {
            continue;
        }
        let lowered: Vec<char> = letters.iter().map(char::to_ascii_lowercase).collect();
        let edits = distance(&folded, &lowered);
        if edits > cutoff {
            continue;
        }
        // Among equally distant words the one in the same case wins.
        let rank = edits * 2 + usize::from(edits > 0 && distance(&word, &letters) > edits);
        if best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut least = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x);
            if swapped {
                least = least.min(at(&before_last, j - 1) + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let known = ["validate", "validationFailureAction", "mutate", "match", "name", "Pod", "to_upper", "to_lower"];
        for (word, expected) in [
            ("validat", Some("validate")),
            ("Validate", Some("validate")),
            ("validationfailureAction", Some("validationFailureAction")),
            ("mathc", Some("match")),
            ("pod", Some("Pod")),
            ("Pods", Some("Pod")),
            ("to_uper", Some("to_upper")),
            ("nmae", Some("name")),
            ("generate", None),
            ("x", None),
            ("", None),
            ("zzzzzz", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("x".repeat(1000).as_str(), known), None);
    }

    proptest! {
        #[test]
        fn a_known_word_is_nearest_to_itself(word in "[a-zé]{1,12}", others in prop::collection::vec("[a-zé]{1,12}", 0..4)) {
            let known = others.iter().map(String::as_str).chain([word.as_str()]);
            prop_assert_eq!(nearest(&word, known), Some(word.as_str()));
        }
    }
}
