//! Replacement templates: `$1`, `${1}`, `$name`, `${name}`, `$$`.

use regex::Captures;

/// Appends the template to `out`, references replaced by what the groups caught.
///
/// As in Go a bare name is as long as possible (`$1x` is the group named `1x`), an unknown or unmatched group is
/// empty, `$$` is `$`, and a `$` that starts no reference stays.
pub fn expand_replacement(captures: &Captures<'_>, template: &str, out: &mut String) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = reference(rest) {
            rest = after;
            let group = match name.parse::<usize>() {
                // With a leading zero it is a name.
                Ok(index) if name.len() == 1 || !name.starts_with('0') => captures.get(index),
                _ => captures.name(name),
            };
            out.push_str(group.map_or("", |m| m.as_str()));
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
}

/// Splits the name of a reference from what follows; `text` is what comes after the `$`.
fn reference(text: &str) -> Option<(&str, &str)> {
    let name_length = |text: &str| text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = match text.strip_prefix('{') {
        Some(inner) => {
            let (name, after) = inner.split_at_checked(name_length(inner))?;
            (name, after.strip_prefix('}')?)
        }
        None => text.split_at_checked(name_length(text))?,
    };
    (!name.is_empty()).then_some((name, rest))
}
