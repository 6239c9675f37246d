//! The `ConfigMap` that configures which metrics are exposed.

use std::collections::BTreeMap;

use ephor_expr::scalar::wildcard::Wildcard;
use ephor_expr::{Map, Str, Value, yaml};

/// Upper bounds of durations in seconds, by default.
const BUCKETS: [f64; 13] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0];

/// What is exposed.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposure {
    include: Vec<Wildcard>,
    exclude: Vec<Wildcard>,
    buckets: Vec<f64>,
    instruments: BTreeMap<Str, Instrument>,
}

/// What is said about one metric.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Instrument {
    pub(super) enabled: bool,
    pub(super) disabled_labels: Vec<Str>,
    pub(super) buckets: Vec<f64>,
}

impl Default for Exposure {
    fn default() -> Self {
        Self { include: Vec::new(), exclude: Vec::new(), buckets: BUCKETS.to_vec(), instruments: BTreeMap::new() }
    }
}

impl Exposure {
    /// Reads the data of the `ConfigMap`; what cannot be read is told and left at its default.
    pub fn of_data(data: &Map) -> (Self, Vec<String>) {
        let mut exposure = Self::default();
        let mut problems = Vec::new();
        let text = |key| data.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let mut parsed = |key| {
            let text = text(key)?;
            yaml::parse_value(text).map_err(|error| problems.push(format!("`{key}`: {error}"))).ok()
        };
        if let Some(namespaces) = parsed("namespaces") {
            let list = |key| {
                let items = namespaces.get(key).and_then(Value::as_array).unwrap_or_default();
                items.iter().filter_map(Value::as_str).map(Wildcard::new).collect()
            };
            (exposure.include, exposure.exclude) = (list("include"), list("exclude"));
        }
        let instruments = parsed("metricsExposure");
        if let Some(text) = text("bucketBoundaries") {
            let numbers = text.split(',').map(|number| number.trim().parse::<f64>()).collect::<Result<Vec<_>, _>>();
            match numbers.ok().and_then(ordered) {
                Some(buckets) => exposure.buckets = buckets,
                None => problems.push(format!("`bucketBoundaries`: `{text}` is no list of rising numbers")),
            }
        }
        for (name, value) in instruments.as_ref().and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            let numbers = value.get("bucketBoundaries").and_then(Value::as_array).unwrap_or_default();
            let disabled = value.get("disabledLabelDimensions").and_then(Value::as_array).unwrap_or_default();
            let instrument = Instrument {
                enabled: value.get("enabled").and_then(Value::as_bool).unwrap_or(true),
                disabled_labels: disabled.iter().filter_map(Value::as_str).map(Str::new).collect(),
                buckets: ordered(numbers.iter().filter_map(Value::as_f64).collect()).unwrap_or_default(),
            };
            exposure.instruments.insert(name.clone(), instrument);
        }
        (exposure, problems)
    }

    /// Whether requests about objects in `namespace` are counted.
    pub(super) fn counts(&self, namespace: &str) -> bool {
        let among = |list: &[Wildcard]| list.iter().any(|wildcard| wildcard.matches(namespace));
        !among(&self.exclude) && (self.include.is_empty() || among(&self.include))
    }

    /// What is said about a metric.
    pub(super) fn of(&self, name: &str) -> Instrument {
        let said = self.instruments.get(name).cloned();
        let mut said = said.unwrap_or(Instrument { enabled: true, disabled_labels: Vec::new(), buckets: Vec::new() });
        if said.buckets.is_empty() {
            said.buckets.clone_from(&self.buckets);
        }
        said
    }
}

/// The numbers, if they rise and there is one.
fn ordered(numbers: Vec<f64>) -> Option<Vec<f64>> {
    let rising = numbers.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    (rising && !numbers.is_empty() && numbers.iter().all(|n| n.is_finite())).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str) -> (Exposure, Vec<String>) {
        Exposure::of_data(yaml::parse_value(data).unwrap().as_object().unwrap())
    }

    #[test]
    fn namespaces_buckets_and_labels_are_read() {
        let (exposure, problems) = read(
            r#"{namespaces: '{"include": [], "exclude": ["kube-*"]}', bucketBoundaries: '1, 2.5',
                metricsExposure: '{"a": {"enabled": false}, "b": {"disabledLabelDimensions": ["x"], "bucketBoundaries": [7]}}'}"#,
        );
        assert_eq!(problems, [""; 0]);
        assert_eq!(["kube-system", "default", ""].map(|ns| exposure.counts(ns)), [false, true, true]);
        assert!(!exposure.of("a").enabled);
        assert_eq!((exposure.of("b").buckets, exposure.of("b").disabled_labels), (vec![7.0], vec![Str::new("x")]));
        assert_eq!((exposure.of("c").enabled, exposure.of("c").buckets), (true, vec![1.0, 2.5]));
    }

    #[test]
    fn what_cannot_be_read_is_told_and_left_at_its_default() {
        let (exposure, problems) = read("{bucketBoundaries: '2, 1', namespaces: '{', metricsExposure: ''}");
        assert_eq!(exposure, Exposure::default());
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
