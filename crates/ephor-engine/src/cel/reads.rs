//! What the expressions of a body read besides the object that they are about.
//!
//! In goes a compiled body, out comes what of a request it needs that no stored object tells. Hosts that judge an
//! object again later ask it, to know whether they need the request for that.

use super::body::{Body, CompiledGeneration, Expression};

/// What expressions read of the request and of the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of expressions")]
pub struct Reads {
    /// Something that only a request has: who asked, what was there before.
    pub request_only: bool,
    /// The operation.
    pub operation: bool,
    /// The object before the request.
    pub old_object: bool,
    /// Chance or the clock: each evaluation gives something else.
    pub varying: bool,
}

/// Functions that give something else each time.
const VARYING: [&str; 3] = ["random", "random.random", "time.now"];

/// Fields of `request` that an object tells, too.
const OF_OBJECT: [&str; 9] = [
    "kind",
    "resource",
    "requestKind",
    "requestResource",
    "requestSubResource",
    "name",
    "namespace",
    "object",
    "dryRun",
];

impl Reads {
    fn of(expression: &Expression) -> Self {
        let mut reads =
            Self { varying: VARYING.iter().any(|function| expression.program.calls(function)), ..Self::default() };
        for (variable, field) in expression.program.variables() {
            match (variable.as_str(), field.as_deref()) {
                ("oldObject", _) | ("request", Some("oldObject")) => {
                    (reads.request_only, reads.old_object) = (true, true);
                }
                ("request", Some("operation")) => reads.operation = true,
                ("request", Some(field)) => reads.request_only |= !OF_OBJECT.contains(&field),
                ("request", None) => {
                    (reads.request_only, reads.operation, reads.old_object) = (true, true, true);
                }
                _ => {}
            }
        }
        reads
    }

    fn and(self, other: Self) -> Self {
        Self {
            request_only: self.request_only || other.request_only,
            operation: self.operation || other.operation,
            old_object: self.old_object || other.old_object,
            varying: self.varying || other.varying,
        }
    }
}

impl Body {
    /// What its expressions read, also those that an evaluation may not reach.
    pub fn reads(&self) -> Reads {
        self.expressions().into_iter().map(Reads::of).fold(Reads::default(), Reads::and)
    }

    /// All its expressions.
    pub(super) fn expressions(&self) -> Vec<&Expression> {
        let mut expressions: Vec<&Expression> = Vec::new();
        expressions.extend(self.variables.iter().map(|variable| &variable.expression));
        expressions.extend(self.conditions.iter().map(|condition| &condition.expression));
        for validation in &self.validations {
            expressions.push(&validation.expression);
            expressions.extend(&validation.message_expression);
        }
        expressions.extend(self.annotations.iter().map(|annotation| &annotation.expression));
        expressions.extend(self.patches.iter().map(|patch| &patch.expression));
        for generation in &self.generations {
            match generation {
                CompiledGeneration::Expression(expression) => expressions.push(expression),
                CompiledGeneration::Template(documents) => {
                    for document in documents {
                        document.expressions(&mut expressions);
                    }
                }
            }
        }
        expressions
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::value::Path;

    use super::super::{Listed, Place, Source};
    use super::*;
    use crate::policy::CelVariable;

    #[test]
    fn what_only_a_request_knows_is_told_apart() {
        let none = Reads::default();
        let request_only = Reads { request_only: true, ..none };
        let all = Reads { operation: true, old_object: true, ..request_only };
        for (expression, reads) in [
            ("object.metadata.name", none),
            ("request.name + request.namespace + request.kind.kind", none),
            ("request.object.metadata.name", none),
            ("'request.userInfo.username'", none),
            ("{'request': object.userInfo}.request", none),
            ("[1].map(request, request + 1)", none),
            ("request.userInfo.username", request_only),
            ("has(request.options)", request_only),
            ("request.operation == 'CREATE'", Reads { operation: true, ..none }),
            ("oldObject == null", Reads { old_object: true, ..request_only }),
            ("request.oldObject == null", Reads { old_object: true, ..request_only }),
            ("dyn(request)['userInfo']", all),
            ("[request].map(r, r.userInfo)", all),
            ("random('[a-z]{4}')", Reads { varying: true, ..none }),
            ("string(time.now())", Reads { varying: true, ..none }),
        ] {
            let variables = [CelVariable { name: "v".into(), expression: expression.into() }];
            let source = Source {
                variables: Listed { items: &variables, path: Path::root() },
                ..Source::at(Place::GeneratingPolicy { namespaced: false })
            };
            assert_eq!(Body::compile(&source).unwrap().reads(), reads, "{expression}");
        }
    }
}
