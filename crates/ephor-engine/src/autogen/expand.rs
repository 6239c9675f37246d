//! The rules that auto-gen adds to a policy.

use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::{Map, Str, Value};

use super::controllers::{controllers, selector};
use super::eligible::{Eligibility, selects_pods};
use super::rewrite::{Language, Template, rewrite_text};
use crate::policy::Policy;

/// A rule that auto-gen made.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// Index of the declared rule it comes from.
    pub source: usize,
    /// The rule, as a document.
    pub rule: Value,
    /// The kinds it stands for.
    pub kinds: Vec<Str>,
}

/// Names of rules have at most this many bytes.
const MAX_NAME: usize = 63;

/// The rules for Pod controllers, in the order of the declared rules: each one's rule for `spec.template` kinds, then
/// the one for `CronJobs`. `document` is the policy as it was read, `policy` the same decoded.
pub fn expand(document: &Value, policy: &Policy) -> Vec<Generated> {
    let controllers = controllers(policy);
    if controllers.is_empty() {
        return Vec::new();
    }
    let documents = document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default();
    let declared = policy.spec.rules.iter().map(|rule| &rule.name).collect();
    let mut names = Names { declared, made: BTreeSet::new(), next: BTreeMap::new() };
    let eligibility = Eligibility::of(policy);
    let mut generated = Vec::new();
    for (source, (rule, document)) in policy.spec.rules.iter().zip(documents).enumerate() {
        if eligibility.check(rule).is_err() {
            continue;
        }
        let workloads = Some(controllers.templated.clone()).filter(|kinds| !kinds.is_empty());
        let cron_jobs = controllers.cron_jobs.then(|| vec![Str::new_static("CronJob")]);
        for (template, kinds) in [(Template::Workload, workloads), (Template::CronJob, cron_jobs)] {
            let Some(kinds) = kinds else { continue };
            let name = names.unique(template.name_prefix(), &rule.name);
            generated.push(Generated { source, rule: for_kinds(document, name, &kinds, template), kinds });
        }
    }
    generated
}

/// The names that the rules of a policy have.
struct Names<'p> {
    declared: BTreeSet<&'p Str>,
    made: BTreeSet<Str>,
    /// What to try next for names that begin alike and have a number of so many digits: all before it are taken.
    next: BTreeMap<(usize, Str), u64>,
}

impl Names<'_> {
    /// The name of a generated rule. Names are cut, so that two long ones can become one, or the name of a declared
    /// rule; the later gets a number then. A name that was not cut is the one that upstream gives, and exceptions name
    /// it, so it stays beside a declared rule of this name.
    fn unique(&mut self, prefix: &str, declared: &str) -> Str {
        let whole = format!("{prefix}{declared}");
        let Self { declared, made, next } = self;
        let mut is_free =
            |name: &Str| (name.as_str() == whole || !declared.contains(name)) && made.insert(name.clone());
        let first = Str::new(cut(&whole, MAX_NAME));
        if is_free(&first) {
            return first;
        }
        // Rules are fewer than these numbers.
        for digits in 1..=9 {
            let beginning = cut(&whole, MAX_NAME - 1 - digits);
            let (least, end) = (10_u64.pow(digits as u32 - 1).max(2), 10_u64.pow(digits as u32));
            let number = next.entry((digits, Str::new(beginning))).or_insert(least);
            while *number < end {
                let name = Str::from(format!("{beginning}-{number}"));
                *number += 1;
                if is_free(&name) {
                    return name;
                }
            }
        }
        first
    }
}

fn for_kinds(rule: &Value, name: Str, kinds: &[Str], template: Template) -> Value {
    let Some(mut map) = rule.as_object().cloned() else { return rule.clone() };
    let selectors: Vec<Value> = match template {
        Template::Workload => kinds.iter().map(|k| Value::from(selector(k))).collect(),
        Template::CronJob => vec![Value::from("batch/v1/CronJob")],
    };
    map.insert("name", name);
    for key in ["match", "exclude"] {
        if let Some(block) = map.get_mut(key) {
            retarget(block, &Value::array(selectors.clone()), template);
        }
    }
    if let Some(validate) = map.get_mut("validate").and_then(Value::as_object_mut) {
        wrap_member(validate, "pattern", template);
        if let Some(patterns) = validate.get_mut("anyPattern").and_then(Value::as_array_mut) {
            for pattern in patterns {
                *pattern = template.wrap(pattern);
            }
        }
    }
    if let Some(mutate) = map.get_mut("mutate").and_then(Value::as_object_mut) {
        wrap_patches(mutate, template);
    }
    map.remove("imageExtractors");
    let uses_cel = map.get("validate").is_some_and(|validate| validate.get("cel").is_some());
    let language = if uses_cel { Language::Cel } else { Language::JmesPath };
    rewrite_text(&Value::object(map), language, template)
}

/// Wraps the patch of a `mutate` block and of its loops, nested ones included.
fn wrap_patches(block: &mut Map, template: Template) {
    wrap_member(block, "patchStrategicMerge", template);
    if let Some(loops) = block.get_mut("foreach").and_then(Value::as_array_mut) {
        for entry in loops.iter_mut().filter_map(Value::as_object_mut) {
            wrap_patches(entry, template);
        }
    }
}

fn wrap_member(block: &mut Map, key: &str, template: Template) {
    if let Some(member) = block.get_mut(key).filter(|member| !member.is_null()) {
        *member = template.wrap(member);
    }
}

/// Points filters at the controllers: those about Pods, and for `CronJobs` those of a list that name no kind, as
/// upstream does. A filter for other kinds is left alone: pointed at `CronJobs`, it would exclude all of them.
fn retarget(block: &mut Value, selectors: &Value, template: Template) {
    let Some(block) = block.as_object_mut() else { return };
    for list in ["any", "all"] {
        for filter in block.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(filter) = filter.as_object_mut() else { continue };
            if template == Template::CronJob {
                let resources = filter.entry("resources");
                if resources.as_object().is_none() {
                    *resources = Value::object(Map::new());
                }
            }
            if let Some(resources) = filter.get_mut("resources").and_then(Value::as_object_mut)
                && (is_about_pods(resources) || template == Template::CronJob && kinds(resources).is_empty())
            {
                resources.insert("kinds", selectors.clone());
            }
        }
    }
    if let Some(resources) = block.get_mut("resources").and_then(Value::as_object_mut)
        && is_about_pods(resources)
    {
        resources.insert("kinds", selectors.clone());
    }
}

fn is_about_pods(resources: &Map) -> bool {
    kinds(resources).iter().filter_map(Value::as_str).any(selects_pods)
}

fn kinds(resources: &Map) -> &[Value] {
    resources.get("kinds").and_then(Value::as_array).unwrap_or_default()
}

fn cut(name: &str, length: usize) -> &str {
    let mut end = name.len().min(length);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}
