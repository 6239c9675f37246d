//! What calls cost at most: those of Kubernetes' libraries by the name of the function, the others by overload.

use super::range::Range;
use super::sizes::Part;
use super::{Estimator, NEW_LIST, NEW_OBJECT, Place};
use crate::cel::ast::{Id, Kind};
use crate::cel::literal::Literal;
use crate::cel::types::Type;

/// Reading one character.
const CHARACTER: f64 = 0.1;
/// One character of a regular expression.
const REGEX: f64 = 0.25;
const CALL: Range = Range::exactly(1);
/// A check of an authorizer: two fit into the cost of an expression.
const AUTHORIZATION_CHECK: Range = Range::exactly(350_000);
/// The longest regular expression of a named format.
const LONGEST_FORMAT: f64 = 128.0;
/// The longest name of a format.
const LONGEST_FORMAT_NAME: u64 = 64;
/// An address has 4 or 16 bytes.
const ADDRESS: Range = Range { min: 4, max: 16 };

/// What a call is of.
pub(super) struct Operands<'e> {
    pub(super) function: &'e str,
    pub(super) target: Option<Id>,
    pub(super) args: &'e [Id],
}

/// What a call costs, and how large its result is if that can be told.
pub(super) struct Estimate {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
}

impl Estimate {
    fn cost(cost: Range) -> Self {
        Self { cost, size: None }
    }

    fn sized(cost: Range, size: Range) -> Self {
        Self { cost, size: Some(size) }
    }

    /// A call that builds a list of `size`.
    fn list(factor: f64, size: Range) -> Self {
        Self::sized(size.scaled(factor).plus(CALL).plus(NEW_LIST), size)
    }
}

impl Estimator<'_> {
    /// The cost of a call by one overload, its arguments included.
    pub(super) fn function(
        &mut self,
        id: Id,
        operands: &Operands<'_>,
        overload: &str,
        params: &str,
        costs: &[Range],
    ) -> Estimate {
        if let Some(estimate) = self.operator(id, operands, overload, costs) {
            return estimate;
        }
        let estimate = self
            .extension(operands, overload, params)
            .or_else(|| self.kubernetes(operands, overload))
            .or_else(|| self.standard(id, operands, overload))
            .unwrap_or_else(|| Estimate::cost(CALL));
        let arguments = costs.iter().fold(Range::exactly(0), |sum, cost| sum.plus(*cost));
        Estimate { cost: estimate.cost.plus(arguments), ..estimate }
    }

    /// Operators of which not all arguments are evaluated.
    fn operator(&mut self, id: Id, operands: &Operands<'_>, overload: &str, costs: &[Range]) -> Option<Estimate> {
        match (overload, operands.args, costs) {
            ("_&&_" | "_||_" | "logical_and" | "logical_or", _, [left, right]) => {
                Some(Estimate::cost(Range { min: left.min, max: left.plus(*right).max }))
            }
            ("conditional", [_, then, otherwise], [condition, a, b]) => {
                let size = self.size_or_unknown(*then).or(self.size_or_unknown(*otherwise));
                if let (Some(a), Some(b)) = (self.entries(*then), self.entries(*otherwise)) {
                    self.change(id, |node| node.entries = Some(a.or(b)));
                }
                Some(Estimate::sized(condition.plus(a.or(*b)), size))
            }
            _ => None,
        }
    }

    /// Sets and lists, as cel-go extends them.
    fn extension(&mut self, operands: &Operands<'_>, overload: &str, params: &str) -> Option<Estimate> {
        let sets = |this: &mut Self, factor: f64| {
            let [a, b] = operands.args else { return None };
            let pairs = this.size_or_unknown(*a).times(this.size_or_unknown(*b));
            Some(Estimate::cost(pairs.scaled(factor).plus(CALL)))
        };
        let compared = |this: &mut Self, id: Id, factor: f64| {
            let size = this.size_or_unknown(id);
            Estimate::list(factor, size.times(size))
        };
        match (overload, operands.target, operands.args) {
            ("list_sets_contains_list" | "list_sets_intersects_list", ..) => sets(self, 1.0),
            ("list_sets_equivalent_list", ..) => sets(self, 2.0),
            ("list_slice", Some(list), [start, end]) => {
                let most = self.size_or_unknown(list).max;
                let (start, end) = (self.int_or(*start, 0), self.int_or(*end, most));
                Some(Estimate::list(1.0, Range::exactly(end.wrapping_sub(start))))
            }
            ("list_flatten" | "list_flatten_int", Some(list), args) => {
                let depth = args.first().map_or(1, |depth| self.int_or(*depth, u64::MAX));
                Some(Estimate::list(depth as f64, self.size_or_unknown(list)))
            }
            ("lists_range", None, [n]) => Some(Estimate::list(1.0, Range::exactly(self.int_or(*n, u64::MAX)))),
            ("list_reverse", Some(list), []) => Some(Estimate::list(1.0, self.size_or_unknown(list))),
            ("list_distinct", Some(list), []) => Some(compared(self, list, 2.0)),
            _ => {
                let sorted = match (operands.function, operands.target, operands.args) {
                    ("sort", Some(list), []) => list,
                    ("@sortByAssociatedKeys", Some(_), [keys]) => *keys,
                    _ => return None,
                };
                let is_text = params.ends_with("list(string)") || params.ends_with("list(bytes)");
                Some(compared(self, sorted, if is_text { 2.0 + CHARACTER } else { 2.0 }))
            }
        }
    }

    /// The integer that a constant is.
    fn int_or(&self, id: Id, other: u64) -> u64 {
        match self.ast.kind(id) {
            Kind::Literal(Literal::Int(n)) => u64::try_from(*n).unwrap_or(0),
            _ => other,
        }
    }

    /// Kubernetes' libraries: the name of the function decides, whatever it is called on.
    fn kubernetes(&mut self, operands: &Operands<'_>, overload: &str) -> Option<Estimate> {
        let (target, first) = (operands.target, operands.args.first().copied());
        let read = |this: &mut Self, id: Id, factor: f64| this.size_or_unknown(id).scaled(factor);
        Some(match operands.function {
            "check" => Estimate::cost(AUTHORIZATION_CHECK),
            "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => Estimate::cost(CALL),
            "fieldSelector" | "labelSelector" => Estimate::cost(selector(self.size_or_unknown(first?))),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self.elements(target?),
            "url" | "jsonpatch.escapeKey" => {
                Estimate::sized(read(self, first?, CHARACTER), self.size_or_unknown(first?))
            }
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                Estimate::sized(read(self, target?, CHARACTER), self.size_or_unknown(target?))
            }
            "replace" => {
                let [old, new, ..] = operands.args else { return None };
                let size = self.size_or_unknown(target?);
                let replaced = replaced(size, self.size_or_unknown(*old), self.size_or_unknown(*new));
                Estimate::sized(size.scaled(2.0 * CHARACTER), replaced)
            }
            "split" => {
                let size = self.size_or_unknown(target?);
                let most = operands.args.get(1).map_or(size.max, |n| match self.ast.kind(*n) {
                    Kind::Literal(Literal::Int(n)) => n.cast_unsigned(),
                    _ => size.max,
                });
                Estimate::sized(size.scaled(2.0 * CHARACTER), Range::up_to(most))
            }
            "join" => {
                let count = self.size_or_unknown(target?);
                let element = self.element(target?).map_or(Range::exactly(0), |(_, size)| size);
                let mut size = count.times(element);
                if let Some(separator) = first {
                    let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                    size = size.plus(self.size_or_unknown(separator).times(between));
                }
                Estimate::sized(size.scaled(CHARACTER), size)
            }
            "find" | "findAll" => {
                let size = self.size_or_unknown(target?);
                let regex = read(self, first?, REGEX);
                let cost = size.plus(Range::exactly(1)).scaled(CHARACTER).times(regex);
                Estimate::sized(cost, Range::up_to(size.max))
            }
            "ip" if overload == "cidr_ip" => Estimate::cost(CALL),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                Estimate::cost(read(self, first?, CHARACTER))
            }
            "ip.isCanonical" => Estimate::cost(read(self, first?, 2.0 * CHARACTER)),
            "containsIP" | "containsCIDR" => {
                let mut cost = ADDRESS.plus(ADDRESS).scaled(CHARACTER);
                if operands.function == "containsCIDR" {
                    cost = cost.plus(ADDRESS.scaled(CHARACTER)).plus(CALL);
                }
                if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                    cost = cost.plus(read(self, first?, CHARACTER));
                }
                Estimate::cost(cost)
            }
            "validate" => Estimate::cost(read(self, first?, CHARACTER).scaled(LONGEST_FORMAT * REGEX)),
            "_==_" => return self.equal(operands.args),
            _ => return None,
        })
    }

    /// Comparing each element of a list with the next, or reading a text.
    fn elements(&mut self, target: Id) -> Estimate {
        let size = self.size_or_unknown(target);
        let Some((kind, element)) = self.element(target) else { return Estimate::cost(size.scaled(CHARACTER)) };
        let each = match kind {
            Type::String | Type::Bytes => CALL.plus(element.scaled(CHARACTER)),
            _ => CALL,
        };
        Estimate::cost(size.times(each))
    }

    /// The type and the size of elements of `list`, if it has any.
    fn element(&self, list: Id) -> Option<(Type, Range)> {
        let kind = match self.types.kind(list) {
            Type::List(item) => (**item).clone(),
            Type::Map(pair) => pair.0.clone(),
            Type::Optional(of) => (**of).clone(),
            _ => return None,
        };
        let size = match self.place(list) {
            Place::At(sizes) => sizes.part(Part::Element).map_or(Range::UNKNOWN, |sizes| Range::up_to(sizes.max)),
            Place::None | Place::Unknown => Range::UNKNOWN,
        };
        Some((kind, size))
    }

    /// Equality of two values of one of Kubernetes' types.
    fn equal(&mut self, args: &[Id]) -> Option<Estimate> {
        let [left, right] = args else { return None };
        let (kind, other) = (self.types.kind(*left), self.types.kind(*right));
        let (Type::Opaque(name) | Type::Object(name), true) = (kind, kind == other) else { return None };
        Some(Estimate::cost(match name.as_str() {
            "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => CALL,
            "kubernetes.NamedFormat" => Range { min: 1, max: LONGEST_FORMAT_NAME }.scaled(CHARACTER),
            "kubernetes.URL" => {
                let most = self.size(*right).map_or(1, |size| size.max);
                Range { min: 1, max: most }.scaled(CHARACTER)
            }
            _ => return None,
        }))
    }

    /// What cel-go itself has.
    fn standard(&mut self, id: Id, operands: &Operands<'_>, overload: &str) -> Option<Estimate> {
        let read = |this: &mut Self, id: Id| this.size_or_unknown(id).scaled(CHARACTER);
        // Sizes of results wrap around, as in the reference.
        let conversion = |this: &mut Self, id: Id, size: fn(Range) -> Range| {
            let of = this.size_or_unknown(id);
            Estimate::sized(of.scaled(CHARACTER), size(of))
        };
        Some(match (overload, operands.target, operands.args) {
            ("string_format", Some(target), _) => Estimate::cost(read(self, target)),
            ("string_to_bytes", _, [text]) => {
                conversion(self, *text, |size| Range { max: size.max.wrapping_mul(4), ..size })
            }
            ("bytes_to_string", _, [bytes]) => conversion(self, *bytes, |size| Range { min: size.min / 4, ..size }),
            ("strings_quote", _, [text]) => conversion(self, *text, |size| Range {
                min: size.min.wrapping_add(2),
                max: size.max.wrapping_mul(2).wrapping_add(2),
            }),
            ("starts_with_string" | "ends_with_string", _, [part]) => Estimate::cost(read(self, *part)),
            ("in_list", _, [_, list]) => Estimate::cost(self.size_or_unknown(*list)),
            ("matches_string", Some(target), [regex]) => {
                let text = self.size_or_unknown(target).plus(Range::exactly(1)).scaled(CHARACTER);
                Estimate::cost(text.times(self.size_or_unknown(*regex).scaled(REGEX)))
            }
            ("contains_string", Some(target), [part]) => Estimate::cost(read(self, target).times(read(self, *part))),
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = self.size_or_unknown(*left).plus(self.size_or_unknown(*right));
                if let (Some(a), Some(b)) = (self.entries(*left), self.entries(*right)) {
                    self.change(id, |node| node.entries = Some(a.or(b)));
                }
                Estimate::sized(if overload == "add_list" { CALL } else { size.scaled(CHARACTER) }, size)
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let most = self.size_or_unknown(*left).max.min(self.size_or_unknown(*right).max);
                Estimate::cost(Range { min: most.min(1), max: most }.scaled(CHARACTER))
            }
            _ => return None,
        })
    }
}

/// Reading a selector and building its requirements, of which each has at least two characters.
fn selector(text: Range) -> Range {
    let requirement = NEW_LIST.plus(NEW_OBJECT).max as f64;
    NEW_LIST.plus(text.scaled(CHARACTER)).plus(text.scaled(0.5).scaled(requirement))
}

/// The size of a text in which `old` is replaced by `new`.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let times = |text: u64, old: u64| (text as f64 / old as f64).ceil() as u64;
    let mut count = Range::exactly(0);
    let mut kept = Range::exactly(0);
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = times(text.max, old.min);
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = times(text.min, old.max);
    }
    count.times(new).plus(kept)
}
