//! What a JSON text takes in memory once it is parsed, known before it is parsed.
//!
//! In: the bytes of a body, chunk by chunk. Out: an upper bound of the memory of its values and strings. The sender
//! chooses the shape of a body, and a text of short objects takes fifty times its length, so a bound by bytes would
//! bound nothing.

use ephor_expr::{Map, Str, Value};

/// An object or array: its allocation with two counters, and the allocation of its entries.
const CONTAINER: usize = size_of::<Map>() + 32;
/// A member of an object, three times: a vector that grows takes twice as much, and meanwhile the old one is still
/// there.
const MEMBER: usize = 3 * size_of::<(Str, Value)>();
/// An item of an array, likewise.
const ITEM: usize = 3 * size_of::<Value>();
/// What a string takes besides its text.
const STRING: usize = 32;
/// Shorter strings are stored in place.
const IN_PLACE: usize = 22;

/// Follows a text from its beginning.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// For each open container, whether it is an object. What holds more levels than there is memory for is never read
    /// on.
    open: Vec<bool>,
    /// The length of the string that the text is in.
    string: Option<usize>,
    escaped: bool,
}

impl Meter {
    /// The memory that the values in the next bytes take. Broken JSON costs what it would until it breaks.
    pub(super) fn cost(&mut self, bytes: &[u8]) -> usize {
        let mut cost = 0;
        for byte in bytes {
            if let Some(length) = &mut self.string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        cost += if *length > IN_PLACE { STRING } else { 0 };
                        self.string = None;
                        continue;
                    }
                    _ => {}
                }
                *length += 1;
                continue;
            }
            match byte {
                b'"' => self.string = Some(0),
                b'{' | b'[' => {
                    self.open.push(*byte == b'{');
                    cost += CONTAINER + self.entry();
                }
                b'}' | b']' => {
                    self.open.pop();
                }
                b',' => cost += self.entry(),
                _ => {}
            }
        }
        cost
    }

    /// One more entry of the innermost container.
    fn entry(&self) -> usize {
        if self.open.last().copied().unwrap_or_default() { MEMBER } else { ITEM }
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;

    use super::*;

    /// Shapes that take much memory for their length.
    fn shapes() -> Vec<String> {
        let list = |item: &str| format!("[{item}{}]", format!(",{item}").repeat(20_000));
        let object = |value: &str| {
            let members: Vec<String> = (0..20_000).map(|i| format!(r#""{i:05}":{value}"#)).collect();
            format!("{{{}}}", members.join(","))
        };
        let nested = r#"{"a":"#.repeat(5_000) + "0" + &"}".repeat(5_000);
        let long = format!(r#""{}""#, "x".repeat(23));
        let mut all: Vec<String> =
            ["0", "{}", "[]", r#"{"a":0}"#, "[0]", r#"{"a":0,"b":0}"#, "[[[0]]]", r#""""#, &long]
                .iter()
                .flat_map(|item| [list(item), object(item)])
                .collect();
        all.extend([nested, format!(r#"{{"user":{}}}"#, object(r#"[""]"#))]);
        all
    }

    #[test]
    fn no_shape_takes_more_than_it_costs() {
        for text in shapes() {
            let cost = 2 * text.len() + Meter::default().cost(text.as_bytes());
            let mut value = None;
            let counted = measure(|| value = Some(Value::from_json_nested(&text, 10_000).unwrap()));
            drop(value);
            let most = usize::try_from(counted.bytes_max).unwrap() + text.len();
            assert!(most <= cost, "{text:.40}…: {most} bytes, {cost} counted");
        }
    }

    #[test]
    fn chunks_cost_what_the_whole_costs_and_strings_hold_no_values() {
        let text = r#"{"a\"{{{[[,,,":"\\","b":["{,","a string that is not stored in place"]}"#;
        let whole = Meter::default().cost(text.as_bytes());
        let mut meter = Meter::default();
        assert_eq!(text.bytes().map(|byte| meter.cost(&[byte])).sum::<usize>(), whole);
        assert_eq!(whole, 2 * CONTAINER + 2 * MEMBER + 2 * ITEM + STRING);
    }
}
