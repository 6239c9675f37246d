//! Assignability of types with type variables.

use rustc_hash::FxHashMap;

use super::super::types::Type;

/// What is known of type variables.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    known: FxHashMap<u32, Type>,
    /// What this attempt has learned and what was known before, so that an attempt that fails takes back no more than
    /// it did: a text may hold thousands of calls.
    learned: Vec<(u32, Option<Type>)>,
}

impl Mappings {
    /// Whether a value of type `given` can stand where `wanted` is expected. Bindings are kept only if it can.
    pub(super) fn assign(&mut self, given: &Type, wanted: &Type) -> bool {
        self.assign_all(std::slice::from_ref(given), std::slice::from_ref(wanted))
    }

    /// [`Mappings::assign`] for several at once: bindings are kept only if all fit.
    pub(super) fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        if given.len() != wanted.len() {
            return false;
        }
        let fits = given.iter().zip(wanted).all(|(g, w)| self.fits(g, w));
        if fits {
            self.learned.clear();
        }
        while let Some((var, before)) = self.learned.pop() {
            match before {
                Some(kind) => self.known.insert(var, kind),
                None => self.known.remove(&var),
            };
        }
        fits
    }

    fn learn(&mut self, var: u32, kind: Type) {
        let before = self.known.insert(var, kind);
        self.learned.push((var, before));
    }

    fn fits(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Var(var) = b {
            match self.substitutes(a, *var) {
                Substitution::Valid => return true,
                Substitution::Conflict => return false,
                Substitution::Cyclic => {}
            }
        }
        if let Type::Var(var) = a {
            return matches!(self.substitutes(b, *var), Substitution::Valid);
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        match (a, b) {
            (Type::Null, other) | (other, Type::Null) => nullable(other),
            (Type::Wrapper(x), Type::Wrapper(y)) => x == y,
            (Type::Wrapper(inner), other) | (other, Type::Wrapper(inner)) => **inner == *other,
            (Type::TypeOf(_), Type::TypeOf(_)) | (Type::Any, _) | (_, Type::Any) => true,
            (Type::List(x), Type::List(y)) | (Type::Optional(x), Type::Optional(y)) => self.fits(x, y),
            (Type::Map(x), Type::Map(y)) => self.fits(&x.0, &y.0) && self.fits(&x.1, &y.1),
            _ => a == b,
        }
    }

    fn substitutes(&mut self, kind: &Type, var: u32) -> Substitution {
        if *kind == Type::Var(var) {
            return Substitution::Valid;
        }
        if let Some(known) = self.known.get(&var).cloned() {
            if *kind == known {
                return Substitution::Valid;
            }
            if !self.fits(kind, &known) {
                return Substitution::Conflict;
            }
            let general = if covers(kind, &known) { kind.clone() } else { known };
            if !self.occurs(var, &general) {
                self.learn(var, general);
            }
            return Substitution::Valid;
        }
        if self.occurs(var, kind) {
            return Substitution::Cyclic;
        }
        self.learn(var, kind.clone());
        Substitution::Valid
    }

    fn occurs(&self, var: u32, within: &Type) -> bool {
        match within {
            Type::Var(other) => *other == var || self.known.get(other).is_some_and(|known| self.occurs(var, known)),
            Type::List(inner) | Type::Optional(inner) | Type::Wrapper(inner) | Type::TypeOf(Some(inner)) => {
                self.occurs(var, inner)
            }
            Type::Map(pair) => self.occurs(var, &pair.0) || self.occurs(var, &pair.1),
            _ => false,
        }
    }

    /// `kind` with its variables replaced by what is known of them. With `close`, the others become `dyn`.
    pub(super) fn substitute(&self, kind: &Type, close: bool) -> Type {
        let inner = |t: &Type| self.substitute(t, close);
        match kind {
            Type::Var(var) => match self.known.get(var) {
                Some(known) => self.substitute(known, close),
                None if close => Type::Dyn,
                None => kind.clone(),
            },
            Type::List(item) => Type::list(inner(item)),
            Type::Map(pair) => Type::map(inner(&pair.0), inner(&pair.1)),
            Type::Optional(of) => Type::optional(inner(of)),
            Type::TypeOf(Some(of)) => Type::type_of(inner(of)),
            other => other.clone(),
        }
    }
}

enum Substitution {
    Valid,
    Conflict,
    Cyclic,
}

fn nullable(kind: &Type) -> bool {
    matches!(
        kind,
        Type::Null
            | Type::Wrapper(_)
            | Type::Timestamp
            | Type::Duration
            | Type::Any
            | Type::Object(_)
            | Type::Opaque(_)
            | Type::Optional(_)
    )
}

/// Whether `a` says the same as `b` or less.
pub(super) fn covers(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Var(_), _) | (Type::TypeOf(_), Type::TypeOf(_)) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::List(x), Type::List(y)) | (Type::Optional(x), Type::Optional(y)) => covers(x, y),
        (Type::Map(x), Type::Map(y)) => covers(&x.0, &y.0) && covers(&x.1, &y.1),
        _ => a == b,
    }
}
