//! Texts of users as output may show them.
//!
//! Names and messages come from policies and objects of strangers. Invisible characters are written as escapes,
//! so that they neither steer a terminal nor change the order of what is read, and no line of theirs is taken for a
//! workflow command.

use std::borrow::Cow;
use std::fmt::Write as _;

use ephor_expr::Value;
use ephor_expr::scalar::unseen::is_unseen;

/// A text of several lines. Line breaks and tabs stay. A line that would be a workflow command of GitHub Actions
/// begins with a backslash.
pub fn text(text: &str) -> Cow<'_, str> {
    let shown = escaped(text, |c| matches!(c, '\n' | '\t'));
    if !shown.lines().any(is_command) {
        return shown;
    }
    let guarded = |line: &str| match line.trim_start() {
        command if is_command(command) => line.replacen("::", "\\::", 1),
        _ => line.to_owned(),
    };
    Cow::Owned(shown.split_inclusive('\n').map(guarded).collect())
}

/// The runner takes a line for a command whatever white space is before it.
fn is_command(line: &str) -> bool {
    line.trim_start().starts_with("::")
}

/// A text on one line, such as a name.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// A text of several lines below one another: all but the first are indented, so that none of them looks like a line
/// of the output itself.
pub fn block(message: &str, indent: &str) -> String {
    text(message.trim_end()).replace('\n', &format!("\n{indent}"))
}

/// JSON in which such characters are escapes: it says the same.
pub fn json(value: &Value) -> String {
    let json = value.to_json_pretty(2);
    if !json.contains(|c| is_unseen(c) && c != '\n') {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unseen(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// What a terminal may be sent, colours included: the last look at everything, whatever made it.
pub fn terminal(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c| is_unseen(c) && !matches!(c, '\n' | '\t')) {
        let (before, from) = rest.split_at(at);
        let length = colour(from).unwrap_or(0);
        let (kept, after) = from.split_at(length);
        out.push_str(before);
        out.push_str(kept);
        rest = after;
        if length == 0 {
            let mut chars = from.chars();
            out.extend(chars.next().into_iter().flat_map(char::escape_unicode));
            rest = chars.as_str();
        }
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The length of the colour sequence that `text` begins with.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    parameters.get(end..)?.starts_with('m').then_some(2 + end + 1)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let odd = |c: char| is_unseen(c) && !stays(c);
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\t' if odd(c) => out.extend(c.escape_default()),
            c if odd(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_are_shown_and_not_sent() {
        assert_eq!(text("a\tb\n\u{e9}"), "a\tb\n\u{e9}");
        assert_eq!(text("\u{1b}[31mred\r\u{202e}"), "\\u{1b}[31mred\\u{d}\\u{202e}");
        assert_eq!(line("a\nb\tc\u{9b}"), "a\\nb\\tc\\u{9b}");
        assert_eq!(block("a\nb\n", "  "), "a\n  b");
    }

    #[test]
    fn no_line_is_a_workflow_command() {
        assert_eq!(text("a ::b\n ::error::c\n"), "a ::b\n \\::error::c\n");
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let value = Value::from("a\u{202e}\u{9b}\u{e0041}\n");
        let text = json(&value);
        assert_eq!(text, r#""a\u202e\u009b\udb40\udc41\n""#);
        assert_eq!(Value::from_json(&text).unwrap(), value);
    }

    #[test]
    fn a_terminal_gets_colours_and_nothing_else() {
        assert_eq!(terminal("\u{1b}[1;31mred\u{1b}[0m\n"), "\u{1b}[1;31mred\u{1b}[0m\n");
        assert_eq!(terminal("\u{1b}]0;title\u{7}\u{1b}[2Jx"), "\\u{1b}]0;title\\u{7}\\u{1b}[2Jx");
    }
}
