//! Whether an API server takes the rules of a definition: their texts, and what they cost at most.
//!
//! Takes the schema of a definition place by place; gives what is wrong. Rules run on every write of an object, so an
//! API server refuses those that could take too long: each rule, multiplied by how often its place may stand in one
//! object, and all rules of a version together.

use ephor_expr::Value;
use ephor_expr::cel::Sizes;

use super::{KEYWORD, Rule, compiled};
use crate::error::Cause;

/// What one rule may cost.
const LIMIT_OF_RULE: u64 = 10_000_000;
/// What all rules of a version may cost together.
const LIMIT_OF_VERSION: u64 = 100_000_000;
/// So many of the most expensive rules are named.
const NAMED: usize = 4;
/// What rules may say of why they do not hold.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Where a schema stands in a definition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    /// The path of the schema.
    pub(crate) path: &'p str,
    /// The path of the list without keys above, if there is one: the value before of its items cannot be told.
    pub(crate) without_before: Option<&'p str>,
    /// Whether it is the schema of the whole object.
    pub(crate) is_root: bool,
    /// How many values an object may have there, by the limits of the lists and maps above; none if one has no limit.
    pub(crate) most: Option<u64>,
}

impl<'p> Place<'p> {
    /// The place of a part of `schema`, which stands here.
    pub(crate) fn below<'b>(self, schema: &Value, path: &'b str) -> Place<'b>
    where
        'p: 'b,
    {
        let most = self.most.and_then(|most| Some(most.saturating_mul(most_elements(schema)?)));
        Place { path, is_root: false, most, ..self }
    }
}

/// How many parts a value with `schema` has at each place below; none if there is no limit.
fn most_elements(schema: &Value) -> Option<u64> {
    let limit = match (schema.str_at(&["type"]), schema.get("additionalProperties")) {
        (Some("object"), Some(_)) => "maxProperties",
        (Some("array"), _) => "maxItems",
        _ => return Some(1),
    };
    schema.get(limit).and_then(Value::as_i64).map(|most| u64::try_from(most).unwrap_or(0))
}

/// What is wrong with the rules of one version, so far.
#[derive(Debug)]
pub(crate) struct RuleCheck {
    causes: Vec<Cause>,
    total: u64,
    /// The most expensive rules, the first most of all.
    most_expensive: Vec<(u64, String)>,
    limits_each: bool,
}

impl RuleCheck {
    /// The rules of a version; those of a schema that `is_stored` already may cost more each.
    pub(crate) fn new(is_stored: bool) -> Self {
        Self { causes: Vec::new(), total: 0, most_expensive: Vec::new(), limits_each: !is_stored }
    }

    /// Judges the rules of `schema`, which stands at `place`.
    pub(crate) fn node(&mut self, schema: &Value, place: Place<'_>) {
        let is_embedded = schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true);
        let is_resource = place.is_root || is_embedded;
        if schema.get(KEYWORD).and_then(Value::as_array).is_none_or(<[Value]>::is_empty) {
            return;
        }
        let Some(sizes) = Sizes::of_schema(schema, is_resource) else {
            let why = "failed to construct type information for x-kubernetes-validations rules: unable to convert \
                       structural schema to CEL declarations";
            self.causes.push(Cause::internal(format!("{}.{KEYWORD}", place.path), &format!("internal error: {why}")));
            return;
        };
        let times = place.most.unwrap_or_else(|| sizes.most_in_a_request());
        for (index, rule) in compiled(schema, is_resource, Some(&sizes)).into_iter().enumerate() {
            self.rule(&rule, &format!("{}.{KEYWORD}[{index}]", place.path), place, times);
        }
    }

    fn rule(&mut self, rule: &Rule<'_>, path: &str, place: Place<'_>, times: u64) {
        let shown = shown(rule.document);
        let (at_rule, at_message) = (format!("{path}.rule"), format!("{path}.messageExpression"));
        match &rule.program {
            Ok(compiled) => self.cost("estimated rule cost", &at_rule, compiled.estimate.saturating_mul(times)),
            Err(why) => self.causes.push(Cause::invalid_raw(at_rule.as_str(), &shown, why)),
        }
        match &rule.message {
            Some(Ok(compiled)) => self.cost("estimated messageExpression cost", &at_message, compiled.estimate),
            Some(Err(why)) => self.causes.push(Cause::invalid_raw(at_message, &shown, why)),
            None => {}
        }
        match (rule.is_transition(), place.without_before, rule.document.get("optionalOldSelf")) {
            (true, Some(above), _) => {
                let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {above}");
                self.causes.push(Cause::invalid(at_rule, rule.text("rule").unwrap_or_default(), &why));
            }
            (false, _, Some(set)) if rule.program.is_ok() => {
                let why = "may not be set if oldSelf is not used in rule";
                self.causes.push(Cause::invalid_raw(format!("{path}.optionalOldSelf"), &set.to_json(), why));
            }
            _ => {}
        }
    }

    fn cost(&mut self, name: &str, path: &str, cost: u64) {
        if self.limits_each && cost > LIMIT_OF_RULE {
            self.causes.push(Cause::forbidden(path, &excess(name, cost, LIMIT_OF_RULE)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= LIMIT_OF_VERSION / 100 {
            let place = self.most_expensive.partition_point(|(other, _)| *other >= cost);
            self.most_expensive.insert(place, (cost, path.to_owned()));
            self.most_expensive.truncate(NAMED);
        }
    }

    /// What is wrong with the rules of the version whose schema stands at `path`.
    pub(crate) fn finish(mut self, path: &str) -> Vec<Cause> {
        if self.total > LIMIT_OF_VERSION {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.causes.extend(self.most_expensive.iter().map(|(_, path)| Cause::forbidden(path.as_str(), why)));
            let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            self.causes.push(Cause::forbidden(path, &excess(name, self.total, LIMIT_OF_VERSION)));
        }
        self.causes
    }
}

fn excess(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// What is wrong with the texts of the rules of `schema`, which stands at `path`.
pub(crate) fn texts(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let rules = schema.get(KEYWORD).and_then(Value::as_array).unwrap_or_default();
    let has_break = |text: &str| text.contains(['\n', '\r']);
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}.{KEYWORD}[{index}]");
        let set = |key: &str| rule.str_at(&[key]).filter(|text| !text.is_empty());
        let (text, message) = (set("rule").unwrap_or_default().trim(), set("message"));
        let trimmed = message.unwrap_or_default().trim();
        let at_message = format!("{path}.message");
        if text.is_empty() {
            causes.push(Cause::required(format!("{path}.rule"), "rule is not specified"));
        } else if let Some(message) = message.filter(|_| trimmed.is_empty()) {
            causes.push(Cause::invalid(at_message, message, "must be non-empty if specified"));
        } else if let Some(message) = message.filter(|_| has_break(trimmed)) {
            causes.push(Cause::invalid(at_message, message, "must not contain line breaks"));
        } else if has_break(text) && trimmed.is_empty() {
            causes.push(Cause::required(at_message, "message must be specified if rule contains line breaks"));
        }
        if set("messageExpression").is_some_and(|text| text.trim().is_empty()) {
            let why = "messageExpression must be non-empty if specified";
            causes.push(Cause::required(format!("{path}.messageExpression"), why));
        }
        if let Some(reason) = rule.str_at(&["reason"]).filter(|reason| !REASONS.contains(reason)) {
            let shown = Value::from(reason).to_json();
            causes.push(Cause::unsupported(format!("{path}.reason"), &shown, &REASONS.map(Value::from)));
        }
        if let Some(field) = set("fieldPath") {
            let at = format!("{path}.fieldPath");
            if field.trim().is_empty() {
                causes.push(Cause::invalid(at.as_str(), field, "must be non-empty if specified"));
            }
            if has_break(field) {
                causes.push(Cause::invalid(at.as_str(), field, "must not contain line breaks"));
            }
            if !leads_to_a_field(field, schema) {
                causes.push(Cause::invalid(at, field, "must be a valid path"));
            }
        }
    }
}

/// Whether a path like `.spec['a-b'].c` leads to a field of `schema`. Items of lists have no path.
fn leads_to_a_field(path: &str, schema: &Value) -> bool {
    let (mut rest, mut at) = (path, schema);
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            let Some(parts) = quoted.split_once("']") else { return false };
            parts
        } else if let Some(plain) = rest.strip_prefix('.') {
            plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()))
        } else {
            return false;
        };
        let below = at.at(&["properties", name]).or_else(|| at.get("additionalProperties"));
        let Some(below) = below.filter(|below| below.as_object().is_some() && !name.is_empty()) else { return false };
        (rest, at) = (after, below);
    }
    true
}

/// A rule as the API server shows it: all its fields, in their order there.
fn shown(rule: &Value) -> String {
    let field =
        |(name, key, missing): &(&str, &str, Value)| format!("{name:?}:{}", rule.get(key).unwrap_or(missing).to_json());
    let fields = [
        ("Rule", "rule", Value::from("")),
        ("Message", "message", Value::from("")),
        ("MessageExpression", "messageExpression", Value::from("")),
        ("Reason", "reason", Value::Null),
        ("FieldPath", "fieldPath", Value::from("")),
        ("OptionalOldSelf", "optionalOldSelf", Value::Null),
    ];
    format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a schema of `spec` with limits above.
    fn told(schema: &str, most: Option<u64>, is_stored: bool) -> Vec<String> {
        let schema = Value::from_json(schema).unwrap();
        let mut check = RuleCheck::new(is_stored);
        let mut causes = Vec::new();
        texts(&schema, "spec", &mut causes);
        if causes.is_empty() {
            check.node(&schema, Place { path: "spec", without_before: None, is_root: false, most });
        }
        causes.extend(check.finish("schema"));
        causes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_that_do_not_compile_are_refused_with_their_place() {
        for (rule, want) in [
            (r#"{"rule":"self.nope"}"#, "undefined field 'nope'"),
            (r#"{"rule":"1"}"#, "cel expression must evaluate to a bool"),
            (r#"{"rule":" "}"#, "Required value: rule is not specified"),
            (r#"{"rule":"true","messageExpression":"1"}"#, "messageExpression must evaluate to a string"),
            (r#"{"rule":"self.kind == ''"}"#, "undefined field 'kind'"),
            (r#"{"rule":"true","message":" "}"#, "must be non-empty if specified"),
            (r#"{"rule":"true","message":"a\nb"}"#, "must not contain line breaks"),
            (r#"{"rule":"true ||\nfalse"}"#, "message must be specified if rule contains line breaks"),
            (r#"{"rule":"true","reason":"Other"}"#, r#"Unsupported value: "Other""#),
            (r#"{"rule":"true","fieldPath":".b"}"#, "must be a valid path"),
            (r#"{"rule":"true","fieldPath":"a"}"#, "must be a valid path"),
            (r#"{"rule":"true","fieldPath":".a['b'].c"}"#, ""),
        ] {
            let schema = format!(
                r#"{{"type":"object","x-kubernetes-validations":[{rule}],"properties":{{"a":{{"type":"object",
                   "additionalProperties":{{"type":"object","properties":{{"c":{{"type":"string"}}}}}}}}}}}}"#
            );
            let told = told(&schema, Some(1), false);
            if want.is_empty() {
                assert_eq!(told, [""; 0], "{rule}");
                continue;
            }
            assert_eq!(told.len(), 1, "{rule}: {told:?}");
            assert!(told[0].starts_with("spec.x-kubernetes-validations[0]") && told[0].contains(want), "{told:?}");
        }
    }

    #[test]
    fn rules_that_could_take_too_long_are_refused() {
        const ADVICE: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, \
                              maps, and strings are declared)";
        let costly = |factor: &str| {
            format!(
                "spec.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of \
                 {factor} {ADVICE}"
            )
        };
        let text = |rule: &str| {
            format!(r#"{{"type":"string","maxLength":10,"x-kubernetes-validations":[{{"rule":"{rule}"}}]}}"#)
        };
        let contains = text("self.contains('a')");
        for (schema, most, is_stored, want) in [
            (&contains, Some(1), false, vec![]),
            (&contains, Some(1_000_000), false, vec![]),
            (&contains, Some(2_100_000), false, vec![costly("1.050000x")]),
            (&contains, Some(2_100_000), true, vec![]),
            (&contains, Some(5_000_000), false, vec![costly("2.5x")]),
            (&text("true"), None, false, vec![]),
        ] {
            assert_eq!(told(schema, most, is_stored), want, "{schema} {most:?}");
        }
        let told = told(&contains, Some(200_000_000), true);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("contributed to estimated rule cost total"), "{told:?}");
        assert!(told[1].starts_with("schema: Forbidden: x-kubernetes-validations estimated rule cost total"));
        assert!(told[1].contains("factor of 10.0x"), "{told:?}");
    }
}
