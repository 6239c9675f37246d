//! The rules in CEL that a definition sets (`x-kubernetes-validations`): what they are compiled to, and what they say
//! of an object.
//!
//! Rules stand at any place of a schema and see the value there as `self`. Those that name `oldSelf` are transition
//! rules: they are judged only where there was a value before. An update that leaves a value as it was is not refused
//! by a rule that came later: the client gets a warning instead. Messages and fields are those of the API server.

mod check;

use std::collections::BTreeMap;
use std::rc::Rc;

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::{COST_LIMIT, RulePlace, rule_at};
use ephor_expr::cel::schema::{typed, typed_resource};
use ephor_expr::cel::{CompileError, Environment, EvalError, NoHost, Program, Run, Scope, Sizes, Type, Usage, Val};

pub(crate) use self::check::{Place, RuleCheck, texts};
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
    program: Result<Compiled, String>,
    message: Option<Result<Compiled, String>>,
}

/// A program, and what it costs at most if sizes were given.
struct Compiled {
    program: Program,
    estimate: u64,
}

impl Compiled {
    /// Compiles `text`, which has to give a `wanted`. Errors begin with `prefix`; `misfit` is that of another type.
    fn new(
        text: &str,
        (environment, sizes): (&Environment, Option<&Sizes>),
        wanted: &Type,
        (prefix, misfit): (&str, &str),
    ) -> Result<Self, String> {
        let compiled = match sizes {
            Some(sizes) => Program::compile_with_estimate(text, environment, sizes),
            None => Program::compile(text, environment).map(|program| (program, 0)),
        };
        match compiled {
            Ok((program, estimate)) if program.kind() == wanted => Ok(Self { program, estimate }),
            Ok(_) => Err(misfit.to_owned()),
            Err(CompileError::Issues { rendered, .. }) => Err(format!("{prefix}compilation failed: {rendered}")),
            Err(CompileError::Constant(error)) => Err(format!("{prefix}program instantiation failed: {error}")),
        }
    }
}

impl<'s> Rule<'s> {
    fn compile(document: &'s Value, schema: &Value, is_resource: bool, sizes: Option<&Sizes>) -> Self {
        let optional_old = document.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
        let environment = rule_at(schema, RulePlace { is_resource, optional_old });
        let compile =
            |text: &str, wanted: &Type, texts: (&str, &str)| Compiled::new(text, (&environment, sizes), wanted, texts);
        let text = document.str_at(&["rule"]).unwrap_or_default();
        let message = document.str_at(&["messageExpression"]).filter(|text| !text.is_empty());
        Self {
            document,
            program: compile(text, &Type::Bool, ("", "cel expression must evaluate to a bool")),
            message: message.map(|text| {
                let misfit = "messageExpression must evaluate to a string";
                compile(text, &Type::String, ("messageExpression ", misfit))
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
        let reads_old = |rule: &Compiled| rule.program.variables().iter().any(|(name, _)| name == "oldSelf");
        self.program.as_ref().is_ok_and(reads_old)
    }

    fn takes_no_old(&self) -> bool {
        self.document.get("optionalOldSelf").and_then(Value::as_bool) == Some(true)
    }
}

fn compiled<'s>(schema: &'s Value, is_resource: bool, sizes: Option<&Sizes>) -> Vec<Rule<'s>> {
    let rules = schema.get(KEYWORD).and_then(Value::as_array).unwrap_or_default();
    rules.iter().map(|rule| Rule::compile(rule, schema, is_resource, sizes)).collect()
}

/// What rules say of an object.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Why it is refused.
    pub(crate) causes: Vec<Cause>,
    /// What does not hold, but did not hold before.
    pub(crate) warnings: Vec<String>,
}

/// What the rules of a definition say of `object`; `before` is what it replaces.
pub(crate) fn validate(schema: Schema<'_>, object: &Value, before: Option<&Value>) -> Judgement {
    if !has_rules(schema.node, MAX_DEPTH) {
        return Judgement::default();
    }
    if object.is_deeper_than(MAX_DEPTH) {
        let why = format!("the rules of its definition cannot be judged: it nests deeper than {MAX_DEPTH} levels");
        let causes = vec![Cause::invalid_raw(ROOT, "\"object\"", &why)];
        return Judgement { causes, ..Judgement::default() };
    }
    let mut judging = Judging {
        judgement: Judgement::default(),
        known: BTreeMap::new(),
        usage: Usage::new(Some(COST_OF_OBJECT)),
        budget: Budget::default(),
        is_over: false,
    };
    judging.place(schema, object, Past::default().at(before, object), "");
    judging.judgement
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

/// What a value was before.
#[derive(Debug, Clone, Copy, Default)]
struct Past<'b> {
    /// The value before, if it can be told.
    value: Option<&'b Value>,
    /// What the value itself, or the nearest above it of which it can be told, was and is.
    nearest: Option<(&'b Value, &'b Value)>,
}

impl<'b> Past<'b> {
    /// The past of a part that was `before` and is `now`.
    fn at(self, before: Option<&'b Value>, now: &'b Value) -> Self {
        Self { value: before, nearest: before.map(|before| (before, now)).or(self.nearest) }
    }

    /// Whether the value is as it was.
    fn is_present(self) -> bool {
        self.nearest.is_some_and(|(before, now)| before == now)
    }
}

/// What is known of an object so far.
struct Judging<'s> {
    judgement: Judgement,
    /// Compiled rules by the address of the schema that has them: items of a list share theirs.
    known: BTreeMap<usize, Rc<Vec<Rule<'s>>>>,
    usage: Usage,
    budget: Budget,
    /// Whether cost or work is used up, so that no further rule is judged.
    is_over: bool,
}

impl<'s> Judging<'s> {
    fn place<'b>(&mut self, schema: Schema<'s>, value: &'b Value, past: Past<'b>, path: &str) {
        if value.is_null() || self.is_over {
            return;
        }
        if schema.node.get(KEYWORD).is_some() {
            self.rules(schema, value, past, path);
        }
        match value {
            Value::Object(members) => {
                for (key, value) in members.iter() {
                    let Some(member) = schema.member(key).filter(|member| member.is_custom) else { continue };
                    let past = past.at(past.value.and_then(|before| before.get(key)), value);
                    let path = match (path, schema.declares(key)) {
                        ("", true) => key.to_string(),
                        (path, true) => format!("{path}.{key}"),
                        (path, false) => format!("{path}[{key}]"),
                    };
                    self.place(member, value, past, &path);
                }
            }
            Value::Array(items) => {
                let Some(below) = schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    let past = past.at(counterpart(schema, item, past.value), item);
                    self.place(below, item, past, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, schema: Schema<'s>, value: &Value, past: Past<'_>, path: &str) {
        let is_resource = schema.is_embedded();
        let address = std::ptr::from_ref(schema.node).addr();
        let rules = self.known.entry(address).or_insert_with(|| Rc::new(compiled(schema.node, is_resource, None)));
        let rules = Rc::clone(rules);
        let read = |value: &Value| {
            if is_resource { typed_resource(value, schema.node) } else { typed(value, schema.node) }
        };
        let mut scope = Selves { current: read(value), before: past.value.map(read), is_optional: false };
        let field = if path.is_empty() { ROOT } else { path };
        let kind = format!("{:?}", schema.node.str_at(&["type"]).unwrap_or_default());
        for rule in rules.iter() {
            let program = match &rule.program {
                Ok(compiled) => &compiled.program,
                Err(error) => {
                    let why = format!("rule compile error: {error}");
                    self.judgement.causes.push(Cause::invalid_raw(field, &kind, &why));
                    continue;
                }
            };
            scope.is_optional = rule.takes_no_old();
            if rule.is_transition() && past.value.is_none() && !scope.is_optional {
                continue;
            }
            let why = match self.evaluate(program, &scope) {
                Ok(Val::Bool(true)) => continue,
                Ok(_) => {
                    let cause = self.failed(rule, &scope, &kind, path);
                    if !rule.is_transition() && past.is_present() {
                        self.judgement.warnings.push(cause.to_string());
                    } else {
                        self.judgement.causes.push(cause);
                    }
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
            self.judgement.causes.push(Cause::invalid_raw(field, &kind, &why));
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

    /// The cause of a rule that does not hold.
    fn failed(&self, rule: &Rule<'_>, scope: &Selves, kind: &str, path: &str) -> Cause {
        let computed = rule.message.as_ref().and_then(|message| {
            let value = self.evaluate(&message.as_ref().ok()?.program, scope).ok()?;
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
        match rule.text("reason") {
            Some("FieldValueForbidden") => Cause::forbidden(field, &why),
            Some("FieldValueRequired") => Cause::required(field, &why),
            Some("FieldValueDuplicate") => Cause::duplicate(field, &Value::from(kind.trim_matches('"'))),
            _ => Cause::invalid_raw(field, kind, &why),
        }
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
        let judgement = validate(Schema::custom(&schema), &object, before.as_ref());
        let warnings = judgement.warnings.iter().map(|warning| format!("warning: {warning}"));
        judgement.causes.iter().map(ToString::to_string).chain(warnings).collect()
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
            (
                r#"{"metadata":{"name":"a"},"size":4}"#,
                Some(r#"{"metadata":{"name":"a"},"size":4}"#),
                &[r#"warning: size: Invalid value: "integer": too large"#],
            ),
            (
                r#"{"metadata":{"name":"a"},"spec":{"min":2}}"#,
                Some(r#"{"metadata":{"name":"a"},"spec":{"min":2}}"#),
                &[r#"spec: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max"#],
            ),
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
        let causes = validate(Schema::custom(&schema), &object, None).causes;
        assert_eq!(causes.len(), 1);
        let text = causes.first().map(ToString::to_string).unwrap_or_default();
        assert!(text.contains("no further validation rules will be run"), "{text}");
    }
}
