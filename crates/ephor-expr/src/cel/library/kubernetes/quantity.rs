//! Quantities.

use std::any::Any;
use std::cmp::Ordering;

use super::super::super::error::EvalError;
use super::super::super::value::{Opaque, Val};
use super::super::{Call, Overload, cost, global, member};
use crate::scalar::quantity::{Format, Quantity};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const TYPE: &str = "kubernetes.Quantity";
const TWO: &str = "kubernetes.Quantity, kubernetes.Quantity";
const WITH_INT: &str = "kubernetes.Quantity, int";

pub(in super::super) const OVERLOADS: &[Overload] = &[
    global("quantity", "string_to_quantity", "string", TYPE, parse).cost_by_name(cost::traverse),
    global("isQuantity", "is_quantity_string", "string", "bool", |c| Ok(Val::Bool(Quantity::parse(c.str(0)).is_ok()))),
    global("sign", "quantity_sign", TYPE, "int", |c| {
        one(c, |q| Ok(Val::Int(order(&q.quantity, &Quantity::from_i64(0, Format::DecimalSi)))))
    }),
    member("add", "quantity_add", TWO, TYPE, |c| arithmetic(c, Quantity::add)),
    member("add", "quantity_add_int", WITH_INT, TYPE, |c| arithmetic(c, Quantity::add)),
    member("asApproximateFloat", "quantity_get_float", TYPE, "double", |c| {
        one(c, |q| Ok(Val::Double(q.quantity.as_f64())))
    }),
    member("asInteger", "quantity_get_int", TYPE, "int", |c| {
        one(c, |q| q.integer().map(Val::Int).ok_or_else(|| EvalError::other("cannot convert value to integer")))
    }),
    member("compareTo", "quantity_compare_to", TWO, "int", |c| two(c, |a, b| Val::Int(order(a, b)))),
    member("isGreaterThan", "quantity_is_greater_than", TWO, "bool", |c| two(c, |a, b| Val::Bool(a > b))),
    member("isInteger", "quantity_is_integer", TYPE, "bool", |c| one(c, |q| Ok(Val::Bool(q.integer().is_some())))),
    member("isLessThan", "quantity_is_less_than", TWO, "bool", |c| two(c, |a, b| Val::Bool(a < b))),
    member("sub", "quantity_sub", TWO, TYPE, |c| arithmetic(c, Quantity::sub)),
    member("sub", "quantity_sub_int", WITH_INT, TYPE, |c| arithmetic(c, Quantity::sub)),
];

#[derive(Debug)]
struct Amount {
    quantity: Quantity,
    /// Whether it was written in a unit smaller than one.
    fraction: bool,
    /// The text it was read from, if it prints as that.
    text: Option<String>,
}

impl Amount {
    fn integer(&self) -> Option<i64> {
        self.quantity.as_i64().filter(|n| !self.fraction && *n != i64::MAX)
    }
}

impl Opaque for Amount {
    fn type_name(&self) -> &str {
        TYPE
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Amount>().is_some_and(|other| other.quantity == self.quantity)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.quantity.to_string())
    }
}

fn order(a: &Quantity, b: &Quantity) -> i64 {
    match a.cmp(b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let text = call.str(0);
    let quantity = Quantity::parse(text).map_err(|error| EvalError::other(error.to_string()))?;
    let fraction = text.ends_with(['n', 'u', 'm']) || text.contains('.');
    // Short whole numbers print as they were written.
    let decimals = text.split_once('.').is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()));
    let kept = !decimals && !quantity.is_zero() && text.len() <= 19;
    Ok(Val::opaque(Amount { quantity, fraction, text: kept.then(|| text.to_owned()) }))
}

fn one<'v>(call: &Call<'_, 'v>, part: fn(&Amount) -> Result<'v>) -> Result<'v> {
    let value = call.arg(0);
    match value.downcast::<Amount>() {
        Some(amount) => part(amount),
        None => Err(call.no_such_overload()),
    }
}

fn two<'v>(call: &Call<'_, 'v>, relation: fn(&Quantity, &Quantity) -> Val<'v>) -> Result<'v> {
    let (a, b) = (call.arg(0), call.arg(1));
    match (a.downcast::<Amount>(), b.downcast::<Amount>()) {
        (Some(a), Some(b)) => Ok(relation(&a.quantity, &b.quantity)),
        _ => Err(call.no_such_overload()),
    }
}

fn arithmetic<'v>(call: &Call<'_, 'v>, operation: fn(&Quantity, &Quantity) -> Option<Quantity>) -> Result<'v> {
    let (a, b) = (call.arg(0), call.arg(1));
    let Some(a) = a.downcast::<Amount>() else { return Err(call.no_such_overload()) };
    let number;
    let (other, fraction) = match (&b, b.downcast::<Amount>()) {
        (_, Some(b)) => (&b.quantity, b.fraction),
        (Val::Int(n), None) => {
            number = Quantity::from_i64(*n, Format::DecimalSi);
            (&number, false)
        }
        _ => return Err(call.no_such_overload()),
    };
    let result = operation(&a.quantity, other).ok_or_else(|| EvalError::other("quantity has too many digits"))?;
    Ok(Val::opaque(Amount { quantity: result, fraction: a.fraction || fraction, text: None }))
}
