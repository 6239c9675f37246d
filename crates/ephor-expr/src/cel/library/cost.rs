//! What calls cost, as Kubernetes charges them at run time.

use super::super::value::{MAX_WALK, Val};

/// The cost of a call from its arguments and, if it has one, its result.
pub(in super::super) type CostRule = fn(&[Val<'_>], Option<&Val<'_>>) -> u64;

/// What a check of an authorizer costs.
pub(super) const AUTHORIZATION_CHECK: u64 = 350_000;

/// Reading `size` characters.
fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

fn size(args: &[Val<'_>], i: usize) -> u64 {
    args.get(i).map_or(1, Val::size)
}

pub(super) fn one(_: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    1
}

pub(super) fn authorization_check(_: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    AUTHORIZATION_CHECK
}

/// Reading the first argument.
pub(super) fn traverse(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    tenth(size(args, 0))
}

/// Reading the second argument.
pub(super) fn traverse_second(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    tenth(size(args, 1))
}

/// Reading all of the first argument, parts included. Less than ten bytes of text are free.
pub(super) fn traverse_deep(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    let mut left = MOST_NODES;
    args.first().map_or(1, |value| deep(value, MAX_WALK, &mut left))
}

/// How many parts of a value are counted. Lists that an expression built may hold one part any number of times.
const MOST_NODES: u64 = 1_000_000;

/// What is deeper than values are walked, or beyond the parts that are counted, is not charged; reading it takes steps
/// of the budget.
fn deep(value: &Val<'_>, depth: usize, left: &mut u64) -> u64 {
    let (Some(depth), Some(rest)) = (depth.checked_sub(1), left.checked_sub(1)) else { return 1 };
    *left = rest;
    let mut sum = 0;
    match value {
        Val::String(text) => return text.as_str().len() as u64 / 10,
        Val::Bytes(bytes) => return bytes.len() as u64 / 10,
        Val::List(list) => {
            for item in list.iter() {
                if *left == 0 {
                    break;
                }
                sum += deep(&item, depth, left);
            }
        }
        Val::Map(map) => {
            for (key, item) in map.entries() {
                if *left == 0 {
                    break;
                }
                sum += deep(&key, depth, left) + deep(&item, depth, left);
            }
        }
        _ => return 1,
    }
    sum
}

/// Reading the first argument and writing as much.
pub(super) fn traverse_twice(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    (size(args, 0) * 2).div_ceil(10)
}

/// Building a list that is the result.
pub(super) fn new_list(_: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
    11 + result.map_or(1, Val::size)
}

/// Building a list by comparing all elements of the first argument with each other.
pub(super) fn compare_all(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    let Some(Val::List(list)) = args.first() else { return 0 };
    let pairs = (list.len() as u64).saturating_mul(list.len() as u64);
    let text = matches!(list.get(0), Some(Val::String(_) | Val::Bytes(_)));
    (pairs * 2).saturating_add(11).saturating_add(if text { pairs / 10 } else { 0 })
}

/// Flattening the first argument by as many levels as the second says.
pub(super) fn flatten(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    let depth = match args.get(1) {
        Some(Val::Int(depth)) => *depth,
        _ => 1,
    };
    (size(args, 0) as i64).saturating_mul(depth).saturating_add(11).max(0) as u64
}

/// Looking at every element of the second argument.
pub(super) fn elements_of_second(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    size(args, 1)
}

/// Comparing two values.
pub(super) fn compare(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    tenth(size(args, 0).min(size(args, 1)))
}

/// Copying two texts.
pub(super) fn concatenate(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    tenth(size(args, 0) + size(args, 1))
}

/// Reading all that the result is made of, and writing it.
pub(super) fn result_twice(_: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
    result.map_or(1, |value| tenth(2 * value.size()))
}

/// Finding the second text in the first.
pub(super) fn contains(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    tenth(size(args, 0)) * tenth(size(args, 1))
}

/// Matching the first text by the second.
pub(super) fn regex(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    tenth(1 + size(args, 0)) * size(args, 1).div_ceil(4)
}

/// The search, of which the product of both factors is rounded, not each factor; and what is built.
pub(super) fn regex_replace(args: &[Val<'_>], found: Option<&Val<'_>>) -> u64 {
    let search = (size(args, 0) + 1).saturating_mul(size(args, 1) + 1).div_ceil(40);
    search.saturating_add(found.map_or(1, Val::size))
}

/// As [`regex_replace`], and the call.
pub(super) fn regex_extract(args: &[Val<'_>], found: Option<&Val<'_>>) -> u64 {
    regex_replace(args, found).saturating_add(1)
}

/// As [`regex_extract`], and a list.
pub(super) fn regex_extract_all(args: &[Val<'_>], found: Option<&Val<'_>>) -> u64 {
    regex_extract(args, found).saturating_add(10)
}

/// One and reading the first argument.
pub(super) fn one_and_traverse(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    1 + tenth(size(args, 0))
}

/// One and looking at every element of the first argument.
pub(super) fn elements(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    1 + size(args, 0)
}

/// Comparing each element of one list with each of the other.
pub(super) fn product(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    size(args, 0).saturating_mul(size(args, 1)).saturating_add(1)
}

/// As [`product`], in both directions.
pub(super) fn product_both_ways(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    size(args, 0).saturating_mul(size(args, 1)).saturating_mul(2).saturating_add(1)
}
