//! The rules in CEL that a definition sets (`x-kubernetes-validations`): what they are compiled to, and what they say
//! of an object.
//!
//! Rules stand at any place of a schema and see the value there as `self`. Those that name `oldSelf` are transition
//! rules: they are judged only where there was a value before. A rule does not hold back an update that leaves its
//! value as it was. Messages and fields are those of the API server.

use std::collections::BTreeMap;
use std::rc::Rc;

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::{COST_LIMIT, RulePlace, rule_at};
use ephor_expr::cel::schema::{typed, typed_resource};
use ephor_expr::cel::{CompileError, EvalError, NoHost, Program, Run, Scope, Type, Usage, Val};

use super::{ListKind, Schema};
use crate::error::Cause;

/// The keyword.
pub(crate) const KEYWORD: &str = "x-kubernetes-validations";

/// What all rules of one object may cost together.
const COST_OF_OBJECT: u64 = 10_000_000;

/// The longest message of a `messageExpression`.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// How deep an object may nest whose definition has rules.
const MAX_DEPTH: usize = 300;

/// One rule of a schema.
struct Rule<'s> {
    document: &'s Value,
    program: Result<Program, String>,
    message: Option<Result<Program, String>>,
}

impl<'s> Rule<'s> {
    fn compile(document: &'s Value, schema: &Value, is_resource: bool) -> Self {
        let optional_old = document.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
        let environment = rule_at(schema, RulePlace { is_resource, optional_old });
        let compile = |text: &str, wanted: &Type, prefix: &str, misfit: &str| match Program::compile(text, &environment)
        {
            Ok(program) if program.kind() == wanted => Ok(program),
            Ok(_) => Err(misfit.to_owned()),
            Err(CompileError::Issues { rendered, .. }) => Err(format!("{prefix}compilation failed: {rendered}")),
            Err(CompileError::Constant(error)) => Err(format!("{prefix}program instantiation failed: {error}")),
        };
        let text = document.str_at(&["rule"]).unwrap_or_default();
        let message = document.str_at(&["messageExpression"]).filter(|text| !text.is_empty());
        Self {
            document,
            program: compile(text, &Type::Bool, "", "cel expression must evaluate to a bool"),
            message: message.map(|text| {
                compile(text, &Type::String, "messageExpression ", "messageExpression must evaluate to a string")
            }),
        }
    }

    fn text(&self, key: &str) -> Option<&'s str> {
        self.document.str_at(&[key]).map(str::trim).filter(|text| !text.is_empty())
    }

    /// What messages call it.
    fn name(&self) -> &'s str {
        self.text("message").or(self.text("rule")).unwrap_or_default()
    }

    /// Whether it names the value before.
    fn is_transition(&self) -> bool {
        self.program.as_ref().is_ok_and(|program| program.variables().iter().any(|(name, _)| name == "oldSelf"))
    }

    fn takes_no_old(&self) -> bool {
        self.document.get("optionalOldSelf").and_then(Value::as_bool) == Some(true)
    }
}

fn compiled(schema: &Value, is_resource: bool) -> Vec<Rule<'_>> {
    let rules = schema.get(KEYWORD).and_then(Value::as_array).unwrap_or_default();
    rules.iter().map(|rule| Rule::compile(rule, schema, is_resource)).collect()
}

/// Where rules stand in a definition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    /// The path of the schema.
    pub(crate) path: &'p str,
    /// The path of the list without keys above, if there is one: the value before of its items cannot be told.
    pub(crate) without_before: Option<&'p str>,
    /// Whether it is the schema of the whole object.
    pub(crate) is_root: bool,
}

/// What is wrong with the rules of `schema`.
pub(crate) fn check(schema: &Value, place: Place<'_>, causes: &mut Vec<Cause>) {
    let Place { path, without_before, is_root } = place;
    let is_embedded = schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true);
    for (index, rule) in compiled(schema, is_root || is_embedded).into_iter().enumerate() {
        let path = format!("{path}.{KEYWORD}[{index}]");
        if rule.text("rule").is_none() {
            causes.push(Cause::required(format!("{path}.rule"), "rule is not specified"));
            continue;
        }
        let shown = shown(rule.document);
        if let Err(why) = &rule.program {
            causes.push(Cause::invalid_raw(format!("{path}.rule"), &shown, why));
        }
        if let Some(Err(why)) = &rule.message {
            causes.push(Cause::invalid_raw(format!("{path}.messageExpression"), &shown, why));
        }
        match (rule.is_transition(), without_before, rule.document.get("optionalOldSelf")) {
            (true, Some(above), _) => {
                let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {above}");
                causes.push(Cause::invalid(format!("{path}.rule"), rule.text("rule").unwrap_or_default(), &why));
            }
            (false, _, Some(set)) if rule.program.is_ok() => {
                let why = "may not be set if oldSelf is not used in rule";
                causes.push(Cause::invalid_raw(format!("{path}.optionalOldSelf"), &set.to_json(), why));
            }
            _ => {}
        }
    }
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

/// What the rules of a definition say of `object`; `before` is what it replaces.
pub(crate) fn validate(schema: Schema<'_>, object: &Value, before: Option<&Value>) -> Vec<Cause> {
    if !has_rules(schema.node, MAX_DEPTH) {
        return Vec::new();
    }
    if object.is_deeper_than(MAX_DEPTH) {
        let why = format!("the rules of its definition cannot be judged: it nests deeper than {MAX_DEPTH} levels");
        return vec![Cause::invalid_raw(ROOT, "\"object\"", &why)];
    }
    let mut judging = Judging {
        causes: Vec::new(),
        known: BTreeMap::new(),
        usage: Usage::new(Some(COST_OF_OBJECT)),
        budget: Budget::default(),
        is_over: false,
    };
    judging.place(schema, object, before, "");
    judging.causes
}

/// Whether there are rules anywhere in a schema.
fn has_rules(schema: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    match schema {
        Value::Object(members) => {
            members.get(KEYWORD).and_then(Value::as_array).is_some_and(|rules| !rules.is_empty())
                || members.values().any(|below| has_rules(below, depth))
        }
        Value::Array(items) => items.iter().any(|below| has_rules(below, depth)),
        _ => false,
    }
}

/// The field of the whole object.
const ROOT: &str = "<nil>";

/// What is known of an object so far.
struct Judging<'s> {
    causes: Vec<Cause>,
    /// Compiled rules by the address of the schema that has them: items of a list share theirs.
    known: BTreeMap<usize, Rc<Vec<Rule<'s>>>>,
    usage: Usage,
    budget: Budget,
    /// Whether cost or work is used up, so that no further rule is judged.
    is_over: bool,
}

impl<'s> Judging<'s> {
    fn place(&mut self, schema: Schema<'s>, value: &Value, before: Option<&Value>, path: &str) {
        if value.is_null() || self.is_over {
            return;
        }
        if schema.node.get(KEYWORD).is_some() {
            self.rules(schema, value, before, path);
        }
        match value {
            Value::Object(members) => {
                for (key, value) in members.iter() {
                    let Some(member) = schema.member(key).filter(|member| member.is_custom) else { continue };
                    let before = before.and_then(|before| before.get(key));
                    let path = match (path, schema.declares(key)) {
                        ("", true) => key.to_string(),
                        (path, true) => format!("{path}.{key}"),
                        (path, false) => format!("{path}[{key}]"),
                    };
                    self.place(member, value, before, &path);
                }
            }
            Value::Array(items) => {
                let Some(below) = schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    self.place(below, item, counterpart(schema, item, before), &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, schema: Schema<'s>, value: &Value, before: Option<&Value>, path: &str) {
        let is_resource = schema.is_embedded();
        let address = std::ptr::from_ref(schema.node).addr();
        let rules = self.known.entry(address).or_insert_with(|| Rc::new(compiled(schema.node, is_resource)));
        let rules = Rc::clone(rules);
        let read = |value: &Value| {
            if is_resource { typed_resource(value, schema.node) } else { typed(value, schema.node) }
        };
        let mut scope = Selves { current: read(value), before: before.map(read), is_optional: false };
        let field = if path.is_empty() { ROOT } else { path };
        let kind = format!("{:?}", schema.node.str_at(&["type"]).unwrap_or_default());
        for rule in rules.iter() {
            let program = match &rule.program {
                Ok(program) => program,
                Err(error) => {
                    let why = format!("rule compile error: {error}");
                    self.causes.push(Cause::invalid_raw(field, &kind, &why));
                    continue;
                }
            };
            scope.is_optional = rule.takes_no_old();
            // A value that stays as it was may break a rule that came later, unless the rule is about the change.
            let settled =
                if rule.is_transition() { before.is_none() && !scope.is_optional } else { before == Some(value) };
            if settled {
                continue;
            }
            let why = match self.evaluate(program, &scope) {
                Ok(Val::Bool(true)) => continue,
                Ok(_) => {
                    self.failed(rule, &scope, &kind, path);
                    continue;
                }
                Err(Failure::Over) => {
                    self.is_over = true;
                    "validation failed due to running out of cost budget, no further validation rules will be run"
                        .into()
                }
                Err(Failure::Eval(error @ (EvalError::CostLimit | EvalError::Budget(_)))) => {
                    self.is_over = true;
                    format!(
                        "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.name()
                    )
                }
                Err(Failure::Eval(error @ (EvalError::NoSuchOverload | EvalError::NoSuchOverloadOf(_)))) => format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for \
                     rule: {}",
                    rule.name()
                ),
                Err(Failure::Eval(error)) => format!("{error} evaluating rule: {}", rule.name()),
            };
            self.causes.push(Cause::invalid_raw(field, &kind, &why));
            if self.is_over {
                return;
            }
        }
    }

    fn evaluate(&self, program: &Program, scope: &Selves) -> Result<Val<'static>, Failure> {
        let usage = Usage::new(Some(COST_LIMIT));
        let value = program.evaluate(scope, &Run { host: &NoHost, budget: &self.budget, usage: &usage });
        self.usage.charge(usage.spent()).map_err(|_| Failure::Over)?;
        value.map_err(Failure::Eval)
    }

    fn failed(&mut self, rule: &Rule<'_>, scope: &Selves, kind: &str, path: &str) {
        let computed = rule.message.as_ref().and_then(|message| {
            let value = self.evaluate(message.as_ref().ok()?, scope).ok()?;
            let text = value.as_str()?.trim();
            let usable = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains(['\n', '\r']);
            usable.then(|| text.to_owned())
        });
        let why = computed
            .or_else(|| rule.text("message").map(str::to_owned))
            .unwrap_or_else(|| format!("failed rule: {}", rule.name()));
        let below = rule.text("fieldPath").unwrap_or_default();
        let field = match (path, below) {
            ("", "") => ROOT,
            ("", below) => below.trim_start_matches('.'),
            (path, below) => &format!("{path}{below}"),
        };
        self.causes.push(match rule.text("reason") {
            Some("FieldValueForbidden") => Cause::forbidden(field, &why),
            Some("FieldValueRequired") => Cause::required(field, &why),
            Some("FieldValueDuplicate") => Cause::duplicate(field, &Value::from(kind.trim_matches('"'))),
            _ => Cause::invalid_raw(field, kind, &why),
        });
    }
}

/// Why a rule has no value.
enum Failure {
    Eval(EvalError),
    /// All rules together cost too much.
    Over,
}

/// The item of the list before that `item` takes the place of: only lists with keys tell.
fn counterpart<'b>(schema: Schema<'_>, item: &Value, before: Option<&'b Value>) -> Option<&'b Value> {
    let ListKind::Map(keys) = schema.list_kind() else { return None };
    let items = before.and_then(Value::as_array)?;
    items.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

/// `self` and `oldSelf`.
struct Selves {
    current: Val<'static>,
    before: Option<Val<'static>>,
    /// Whether `oldSelf` is an optional.
    is_optional: bool,
}

impl Scope<'static> for Selves {
    fn variable(&self, name: &str) -> Option<Result<Val<'static>, EvalError>> {
        match name {
            "self" => Some(Ok(self.current.clone())),
            "oldSelf" if self.is_optional => Some(Ok(self.before.clone().map_or(Val::Optional(None), Val::some))),
            "oldSelf" => self.before.clone().map(Ok),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json_nested(json, 10_000).unwrap()
    }

    const SCHEMA: &str = r#"{"type":"object","x-kubernetes-validations":[
        {"rule":"self.metadata.name != 'bad'"}],
      "properties":{
       "size":{"type":"integer","x-kubernetes-validations":[
          {"rule":"self <= 3","message":"too large"},
          {"rule":"self >= oldSelf","messageExpression":"'was ' + string(oldSelf)"}]},
       "spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[
          {"rule":"self.min <= self.max","fieldPath":".min","reason":"FieldValueForbidden"}],
         "properties":{"min":{"type":"integer"},"max":{"type":"integer"}}},
       "once":{"type":"string","x-kubernetes-validations":[
          {"rule":"!oldSelf.hasValue() || oldSelf.value() == self","optionalOldSelf":true}]},
       "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
         "items":{"type":"object","x-kubernetes-validations":[{"rule":"self.port == oldSelf.port"}],
           "properties":{"name":{"type":"string"},"port":{"type":"integer"}}}},
       "labels":{"type":"object","additionalProperties":
         {"type":"string","x-kubernetes-validations":[{"rule":"int(self) > 0"}]}}}}"#;

    fn told(object: &str, before: Option<&str>) -> Vec<String> {
        let (schema, object, before) = (value(SCHEMA), value(object), before.map(value));
        validate(Schema::custom(&schema), &object, before.as_ref()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_judge_the_value_where_they_stand() {
        for (object, before, want) in [
            (r#"{"metadata":{"name":"a"},"size":3}"#, None, &[][..]),
            (
                r#"{"metadata":{"name":"bad"}}"#,
                None,
                &[r#"<nil>: Invalid value: "object": failed rule: self.metadata.name != 'bad'"#],
            ),
            (r#"{"metadata":{"name":"a"},"size":4}"#, None, &[r#"size: Invalid value: "integer": too large"#]),
            // What is stored may stay as it is.
            (r#"{"metadata":{"name":"a"},"size":4}"#, Some(r#"{"metadata":{"name":"a"},"size":4}"#), &[]),
            (
                r#"{"metadata":{"name":"a"},"size":1}"#,
                Some(r#"{"metadata":{"name":"a"},"size":2}"#),
                &[r#"size: Invalid value: "integer": was 2"#],
            ),
            (
                r#"{"metadata":{"name":"a"},"spec":{"min":2,"max":1}}"#,
                None,
                &["spec.min: Forbidden: failed rule: self.min <= self.max"],
            ),
            (
                r#"{"metadata":{"name":"a"},"spec":{"min":2}}"#,
                None,
                &[r#"spec: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max"#],
            ),
            (r#"{"metadata":{"name":"a"},"once":"x"}"#, None, &[]),
            (
                r#"{"metadata":{"name":"a"},"once":"y"}"#,
                Some(r#"{"metadata":{"name":"a"},"once":"x"}"#),
                &[r#"once: Invalid value: "string": failed rule: !oldSelf.hasValue() || oldSelf.value() == self"#],
            ),
            (
                r#"{"metadata":{"name":"a"},"ports":[{"name":"new","port":9},{"name":"a","port":2}]}"#,
                Some(r#"{"metadata":{"name":"a"},"ports":[{"name":"a","port":1}]}"#),
                &[r#"ports[1]: Invalid value: "object": failed rule: self.port == oldSelf.port"#],
            ),
            (
                r#"{"metadata":{"name":"a"},"labels":{"k":"0"}}"#,
                None,
                &[r#"labels[k]: Invalid value: "string": failed rule: int(self) > 0"#],
            ),
        ] {
            assert_eq!(told(object, before), want, "{object}");
        }
    }

    #[test]
    fn an_object_that_nests_too_deep_for_rules_is_refused() {
        let object =
            format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"x":{}{}}}}}"#, "[".repeat(9_000), "]".repeat(9_000));
        assert!(told(&object, None).concat().contains("nests deeper"));
    }

    #[test]
    fn many_items_use_up_the_cost_of_an_object() {
        let schema = value(
            r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"string",
                "x-kubernetes-validations":[{"rule":"self.matches('^(a+)+$')"}]}}}}"#,
        );
        let item = format!("{:?}", "a".repeat(10_000));
        let object = value(&format!(r#"{{"l":[{}]}}"#, vec![item.as_str(); 5_000].join(",")));
        let causes = validate(Schema::custom(&schema), &object, None);
        assert_eq!(causes.len(), 1);
        let text = causes.first().map(ToString::to_string).unwrap_or_default();
        assert!(text.contains("no further validation rules will be run"), "{text}");
    }

    #[test]
    fn rules_that_do_not_compile_are_refused_with_their_place() {
        let mut causes = Vec::new();
        for (rule, want) in [
            (r#"{"rule":"self.nope"}"#, "undefined field 'nope'"),
            (r#"{"rule":"1"}"#, "cel expression must evaluate to a bool"),
            (r#"{"rule":" "}"#, "Required value: rule is not specified"),
            (r#"{"rule":"true","messageExpression":"1"}"#, "messageExpression must evaluate to a string"),
            (r#"{"rule":"self.kind == ''"}"#, "undefined field 'kind'"),
        ] {
            let schema =
                value(&format!(r#"{{"type":"object","x-kubernetes-validations":[{rule}],"properties":{{}}}}"#));
            check(&schema, Place { path: "spec", without_before: None, is_root: false }, &mut causes);
            let told = causes.pop().map(|cause| cause.to_string()).unwrap_or_default();
            assert!(told.starts_with("spec.x-kubernetes-validations[0]") && told.contains(want), "{rule}: {told}");
            assert!(causes.is_empty());
        }
    }
}
