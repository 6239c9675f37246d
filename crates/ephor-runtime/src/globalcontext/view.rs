//! The data of an entry and its projections.

use std::collections::BTreeMap;

use ephor_engine::policy::Projection;
use ephor_expr::jmespath::{Expression, FixedRuntime};
use ephor_expr::{Str, Value};

/// Named expressions, compiled.
#[derive(Debug, Default)]
pub(super) struct Projections(Vec<(Str, Expression)>);

impl Projections {
    /// Compiles; the first that does not is the error.
    pub(super) fn compile(projections: &[Projection]) -> Result<Self, String> {
        let compile = |projection: &Projection| match Expression::compile(&projection.jmes_path) {
            Ok(expression) => Ok((projection.name.clone(), expression)),
            Err(error) => Err(format!("projection `{}`: {error}", projection.name)),
        };
        projections.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Evaluates all of them over `data`.
    pub(super) fn view(&self, data: Value) -> View {
        let evaluate = |(name, expression): &(Str, Expression)| {
            let runtime = FixedRuntime::new(jiff::Timestamp::now(), 0);
            let value = expression.evaluate(&data, &runtime).map_err(|error| format!("projection `{name}`: {error}"));
            (name.clone(), value)
        };
        let projected = self.0.iter().map(evaluate).collect();
        View { data, projected }
    }
}

/// The data at one moment.
#[derive(Debug)]
pub(super) struct View {
    data: Value,
    projected: BTreeMap<Str, Result<Value, String>>,
}

impl View {
    /// The whole data, or a projection of it.
    pub(super) fn get(&self, projection: Option<&str>) -> Result<Value, String> {
        match projection {
            None => Ok(self.data.clone()),
            Some(name) => match self.projected.get(name) {
                Some(value) => value.clone(),
                None => Err(format!("there is no projection `{name}`")),
            },
        }
    }

    /// The first projection that failed.
    pub(super) fn failure(&self) -> Option<&str> {
        self.projected.values().find_map(|value| value.as_ref().err()).map(String::as_str)
    }
}
