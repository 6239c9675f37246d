//! Which items a slice takes.

use super::ast::Slice;
use crate::value::Value;

impl Slice {
    /// The items of `items` that the slice takes, in its order. Positions count from the end when negative, and
    /// stop at the ends of the array.
    pub(super) fn of(self, items: &[Value]) -> Vec<Value> {
        let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let step = self.step.unwrap_or(1);
        let (lowest, highest) = if step < 0 { (-1, len - 1) } else { (0, len) };
        let clamp = |n: i64| if n < 0 { n.saturating_add(len) } else { n }.clamp(lowest, highest);
        let (first, end) = if step < 0 { (highest, lowest) } else { (lowest, highest) };
        let mut at = self.start.map_or(first, clamp);
        let stop = self.stop.map_or(end, clamp);
        let mut taken = Vec::new();
        while if step < 0 { at > stop } else { at < stop } {
            taken.extend(usize::try_from(at).ok().and_then(|i| items.get(i)).cloned());
            at = at.saturating_add(step);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_take_what_other_languages_take() {
        let items: Vec<Value> = (0..5).map(Value::Int).collect();
        let max = Some(i64::MAX);
        let min = Some(i64::MIN);
        for (start, stop, step, want) in [
            (None, None, None, "[0,1,2,3,4]"),
            (Some(1), Some(3), None, "[1,2]"),
            (Some(-2), None, None, "[3,4]"),
            (None, Some(-2), None, "[0,1,2]"),
            (None, None, Some(2), "[0,2,4]"),
            (None, None, Some(-1), "[4,3,2,1,0]"),
            (Some(5), None, Some(-2), "[4,2,0]"),
            (None, Some(-5), Some(-1), "[4,3,2,1]"),
            (None, Some(-9), Some(-1), "[4,3,2,1,0]"),
            (Some(7), None, None, "[]"),
            (Some(3), Some(1), None, "[]"),
            (min, max, max, "[0]"),
            (max, min, min, "[4]"),
        ] {
            let slice = Slice { start, stop, step };
            assert_eq!(Value::array(slice.of(&items)).to_json(), want, "{slice:?}");
        }
        assert!(Slice { step: min, ..Slice::default() }.of(&[]).is_empty());
    }
}
