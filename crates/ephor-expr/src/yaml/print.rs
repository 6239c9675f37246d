//! Values to YAML text, laid out as Go's YAML libraries do.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::quoting::{self, Notation};
use super::resolve::go_general;
use crate::{Map, Str, Value};

/// How to lay out YAML text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintStyle {
    /// Distance of the columns at which the parts of objects may stand; 2 to 9, others are taken as the nearest of
    /// these.
    pub indent: usize,
    /// Whether the `-` of a list under a key is indented too.
    pub indent_lists: bool,
    /// Text longer than this many columns is folded at spaces; `None` never folds.
    pub width: Option<usize>,
}

impl PrintStyle {
    /// As the Kubernetes tools print (sigs.k8s.io/yaml): two spaces, lists below their keys.
    pub const KUBERNETES: Self = Self { indent: 2, indent_lists: false, width: None };
    /// As go-yaml v3 prints: four spaces, lists indented.
    pub const V3: Self = Self { indent: 4, indent_lists: true, width: None };

    /// `value` as one YAML document without `---`, ending in a line break. Reading it back with the rules of
    /// [`Dialect::Kubernetes`](super::Dialect) gives an equal value; numbers that are not finite print as `null`.
    pub fn print(&self, value: &Value) -> String {
        let style = Self { indent: self.indent.clamp(2, 9), ..*self };
        let mut printer = Printer { out: String::new(), style };
        printer.value(value, Place::Root);
        printer.out
    }
}

/// `value` in the style of the Kubernetes tools, unfolded: [`PrintStyle::KUBERNETES`].
pub fn to_yaml(value: &Value) -> String {
    PrintStyle::KUBERNETES.print(value)
}

/// Where the cursor stands when a value is printed.
#[derive(Clone, Copy)]
enum Place {
    Root,
    /// After `key:` of an object at this indentation.
    Member(usize),
    /// After the `-` at this indentation.
    Item(usize),
}

struct Printer {
    out: String,
    style: PrintStyle,
}

impl Printer {
    /// Prints `value` and the end of its last line.
    fn value(&mut self, value: &Value, place: Place) {
        match value {
            Value::Array(items) if !items.is_empty() => self.array(items, place),
            Value::Object(map) if !map.is_empty() => self.object(map, place),
            _ => {
                if !matches!(place, Place::Root) {
                    self.out.push(' ');
                }
                self.scalar(value, place);
                self.out.push('\n');
            }
        }
    }

    fn array(&mut self, items: &[Value], place: Place) {
        let indent = match place {
            Place::Root => 0,
            Place::Member(parent) if !self.style.indent_lists => parent,
            _ => self.inner_indent(place),
        };
        self.lines(items.iter(), indent, place, |printer, item| {
            printer.out.push('-');
            printer.value(item, Place::Item(indent));
        });
    }

    fn object(&mut self, map: &Map, place: Place) {
        let indent = if matches!(place, Place::Root) { 0 } else { self.inner_indent(place) };
        let mut members: Vec<(&Str, &Value)> = map.iter().collect();
        members.sort_by(|(a, _), (b, _)| natural_order(a, b));
        self.lines(members.into_iter(), indent, place, |printer, (key, value)| printer.member(key, value, indent));
    }

    /// Prints each part at `indent`; the first stays on the line of the `-` it belongs to.
    fn lines<P>(
        &mut self,
        parts: impl Iterator<Item = P>,
        indent: usize,
        place: Place,
        mut one: impl FnMut(&mut Self, P),
    ) {
        match place {
            Place::Root => {}
            Place::Member(_) => self.out.push('\n'),
            Place::Item(_) => self.out.push(' '),
        }
        for (i, part) in parts.enumerate() {
            if i > 0 || !matches!(place, Place::Item(_)) {
                self.indent(indent);
            }
            one(self, part);
        }
    }

    fn member(&mut self, key: &str, value: &Value, indent: usize) {
        // Readers look only so far for the `:` of a key; a longer one is announced.
        if key.len() <= 128 {
            self.text(key, quoting::key_notation(key), indent, None);
            self.out.push(':');
            return self.value(value, Place::Member(indent));
        }
        self.out.push_str("? ");
        self.text(key, quoting::key_notation(key), indent, None);
        self.out.push('\n');
        self.indent(indent);
        self.out.push(':');
        self.value(value, Place::Item(indent));
    }

    /// Where the further lines of what stands at `place` begin: at the next stop, but just behind a `-`.
    fn inner_indent(&self, place: Place) -> usize {
        match place {
            Place::Root => self.style.indent,
            Place::Member(parent) => (parent / self.style.indent + 1) * self.style.indent,
            Place::Item(parent) => parent + 2,
        }
    }

    fn indent(&mut self, columns: usize) {
        self.out.extend(std::iter::repeat_n(' ', columns));
    }

    fn scalar(&mut self, value: &Value, place: Place) {
        match value {
            Value::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Value::Int(n) => {
                let _ = write!(self.out, "{n}");
            }
            Value::Float(f) if f.is_finite() => self.out.push_str(&go_general(&format!("{f:e}"), || f.to_string())),
            Value::Null | Value::Float(_) => self.out.push_str("null"),
            Value::Array(_) => self.out.push_str("[]"),
            Value::Object(_) => self.out.push_str("{}"),
            Value::String(s) => match quoting::notation(s) {
                Notation::Literal => self.literal(s, place),
                notation => self.text(s, notation, self.inner_indent(place), self.style.width),
            },
        }
    }

    /// Prints a string; further lines of it stand at `indent`.
    fn text(&mut self, text: &str, notation: Notation, indent: usize, width: Option<usize>) {
        match notation {
            Notation::Plain => quoting::write_plain(&mut self.out, text, indent, width),
            Notation::Single => quoting::write_single_quoted(&mut self.out, text, indent, width),
            // Blocks are no matter of one line.
            Notation::Double | Notation::Literal => quoting::write_double_quoted(&mut self.out, text, indent, width),
        }
    }

    /// A block after `|`; the line break at its end is printed by the caller.
    fn literal(&mut self, text: &str, place: Place) {
        let indent = self.inner_indent(place);
        self.out.push('|');
        if text.starts_with([' ', '\n']) {
            let parent = match place {
                Place::Root => 0,
                Place::Member(parent) | Place::Item(parent) => parent,
            };
            let _ = write!(self.out, "{}", indent - parent);
        }
        let body = match text.strip_suffix('\n') {
            None => {
                self.out.push('-');
                text
            }
            Some(body) if body.is_empty() || body.ends_with('\n') => {
                self.out.push('+');
                body
            }
            Some(body) => body,
        };
        for line in body.split('\n') {
            self.out.push('\n');
            if !line.is_empty() {
                self.indent(indent);
                self.out.push_str(line);
            }
        }
    }
}

/// The order of keys: as by code point, but other characters go before letters, and runs of digits count as numbers.
fn natural_order(a: &str, b: &str) -> Ordering {
    let common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let common = a.floor_char_boundary(common).min(b.floor_char_boundary(common));
    let (Some((head, a_rest)), Some(b_rest)) = (a.split_at_checked(common), b.get(common..)) else { return a.cmp(b) };
    let (Some(x), Some(y)) = (a_rest.chars().next(), b_rest.chars().next()) else { return a.len().cmp(&b.len()) };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => x.cmp(&y),
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            // The numbers begin before the first difference.
            let digits = common - (head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len());
            let (x_number, y_number) = (leading_digits(a, digits), leading_digits(b, digits));
            let significant = |s: &str| s.trim_start_matches('0').len();
            significant(x_number)
                .cmp(&significant(y_number))
                .then_with(|| x_number.trim_start_matches('0').cmp(y_number.trim_start_matches('0')))
                .then_with(|| x_number.len().cmp(&y_number.len()))
                .then_with(|| x.cmp(&y))
        }
    }
}

fn leading_digits(text: &str, from: usize) -> &str {
    let rest = text.get(from..).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}
