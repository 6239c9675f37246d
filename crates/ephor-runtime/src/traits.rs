//! What a generate rule depends on besides its trigger.

use ephor_engine::compile::{Body, CompiledRule, GeneratedContent, PolicyGeneration};
use ephor_engine::policy::Operation;
use ephor_engine::scope::variables;
use ephor_expr::Value;
use ephor_expr::jmespath::Expression;
use ephor_expr::value::Segment;

/// What a rule depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a rule")]
pub struct Traits {
    /// Who asked, what was there before: things that only a request knows. The rule cannot be judged from what exists.
    pub event_bound: bool,
    /// What is done to the trigger: objects that an update brought about cannot be judged from what exists.
    pub by_operation: bool,
    /// What was there before the request.
    pub reads_old: bool,
    /// Chance or time: each rendering is another.
    pub varying: Varying,
    /// Labels of namespaces.
    pub namespace_selector: bool,
    /// It names DELETE, so that a trigger's end makes objects instead of taking them away.
    pub on_delete: bool,
    /// It names nothing else than ends and connections: no trigger that is there is looked after.
    pub only_events: bool,
    /// Labels, annotations or names of triggers.
    pub selects: bool,
    /// Requests of the background controller itself do not count.
    pub skips_own: bool,
}

/// What chance or time decides of what a rule renders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Varying {
    /// Nothing.
    #[default]
    Nothing,
    /// What the objects say.
    Content,
    /// Perhaps also which objects there are.
    Identity,
}

impl Varying {
    fn of(rule: &Value) -> Self {
        let mut varying = Self::Nothing;
        for place in ephor_engine::scope::varying(rule) {
            // Nothing of the object's identity is taken from its content.
            if !place.path.0.iter().any(|segment| matches!(segment, Segment::Key(key) if key == "data")) {
                return Self::Identity;
            }
            varying = Self::Content;
        }
        varying
    }
}

/// What the expressions of a rule read of the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reads {
    /// Something that only a request has.
    request_only: bool,
    operation: bool,
    old_object: bool,
}

/// Members whose text is an expression without braces around it.
const BARE: [&str; 2] = ["jmesPath", "list"];

impl Reads {
    const ALL: Self = Self { request_only: true, operation: true, old_object: true };

    /// The reads of all expressions in a document; `key` is the member that it stands in. Other text does not count: an
    /// object that is generated may have a `serviceAccountName` of its own.
    fn of(value: &Value, key: &str) -> Self {
        match value {
            Value::String(text) => Self::of_text(text, BARE.contains(&key)),
            Value::Array(items) => items.iter().fold(Self::default(), |reads, item| reads.and(Self::of(item, key))),
            Value::Object(map) => map.iter().fold(Self::default(), |reads, (key, member)| {
                reads.and(Self::of_text(key, false)).and(Self::of(member, key))
            }),
            _ => Self::default(),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            request_only: self.request_only || other.request_only,
            operation: self.operation || other.operation,
            old_object: self.old_object || other.old_object,
        }
    }

    fn of_text(text: &str, bare: bool) -> Self {
        let places = variables(text);
        if text.matches("{{").count() > places.len() + text.matches("\\{{").count() {
            // Variables within variables: what the outer one reads is known only when the rule runs.
            return Self::ALL;
        }
        let whole = (bare && places.is_empty()).then_some(text);
        let bodies = places.iter().map(|place| place.body(text)).chain(whole);
        bodies.fold(Self::default(), |reads, body| reads.and(Self::of_expression(body)))
    }

    fn of_expression(body: &str) -> Self {
        let Ok(expression) = Expression::compile(body) else { return Self::default() };
        let roots = expression.root_identifiers().iter();
        roots.fold(Self::default(), |reads, root| match root.name.as_str() {
            "serviceAccountName" | "serviceAccountNamespace" => Self { request_only: true, ..reads },
            "request" => reads.and(Self::of_member(body.get(root.offset..).unwrap_or_default())),
            _ => reads,
        })
    }

    /// What an expression reads that begins with `request`. One that takes more than one member reads all of them.
    fn of_member(text: &str) -> Self {
        let after = text.trim_start_matches('"').strip_prefix("request").unwrap_or_default();
        let after = after.trim_start_matches('"').trim_start();
        let Some(member) = after.strip_prefix('.') else { return Self::ALL };
        let member = member.trim_start().trim_start_matches('"');
        let end = member.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(member.len());
        match member.get(..end).unwrap_or_default() {
            "" => Self::ALL,
            "userInfo" | "roles" | "clusterRoles" | "uid" | "options" | "subResource" => {
                Self { request_only: true, ..Self::default() }
            }
            "oldObject" => Self { request_only: true, old_object: true, ..Self::default() },
            "operation" => Self { operation: true, ..Self::default() },
            _ => Self::default(),
        }
    }
}

impl Traits {
    /// Whether the rule needs data of such a request for its evaluation, so that the request must be kept.
    pub fn remembers(&self, operation: Operation) -> bool {
        match operation {
            _ if self.only_events => false,
            Operation::Create => self.event_bound,
            Operation::Update => self.event_bound || self.by_operation,
            // They are events: nothing is looked after.
            Operation::Delete | Operation::Connect => false,
        }
    }

    /// Whether there are such requests.
    pub fn remembers_any(&self) -> bool {
        !self.only_events && (self.event_bound || self.by_operation)
    }

    /// What the document of a rule says of requests.
    pub fn of_requests(rule: &Value) -> Self {
        let reads = Reads::of(rule, "");
        let mut traits = Self {
            event_bound: reads.request_only,
            by_operation: reads.operation,
            reads_old: reads.old_object,
            ..Self::default()
        };
        for filter in ["match", "exclude"].iter().flat_map(|block| filters(rule, block)) {
            traits.event_bound |= ["subjects", "roles", "clusterRoles"].iter().any(|key| filter.get(key).is_some());
            traits.by_operation |= !operations(&filter).is_empty() && !names(&filter, Operation::Create);
        }
        let stored = |filter: &Value| names(filter, Operation::Create) || names(filter, Operation::Update);
        let mut selecting = filters(rule, "match").into_iter().filter(|filter| filter.get("resources").is_some());
        traits.only_events = selecting.all(|filter| !operations(&filter).is_empty() && !stored(&filter))
            && filters(rule, "match").iter().any(|filter| filter.get("resources").is_some());
        traits
    }
}

/// What a rule depends on, by the document of its policy and by what it compiled to.
pub fn traits(policy: &Value, compiled: &CompiledRule) -> Traits {
    match policy_generation(compiled) {
        Some(generation) => of_generation(generation, compiled),
        None => of_rule(rule_document(policy, &compiled.declared), compiled),
    }
}

/// The same, as far as it is about requests: what chance decides is not looked for.
pub fn request_traits(policy: &Value, compiled: &CompiledRule) -> Traits {
    match policy_generation(compiled) {
        Some(generation) => of_generation(generation, compiled),
        None => Traits::of_requests(rule_document(policy, &compiled.declared)),
    }
}

/// The rule of that name in the document of a policy of `kyverno.io`; null if there is none.
pub fn rule_document<'p>(policy: &'p Value, name: &str) -> &'p Value {
    let rules = policy.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default();
    rules.iter().find(|rule| rule.str_at(&["name"]) == Some(name)).unwrap_or(&Value::Null)
}

/// The expressions of a rule that is all of a `GeneratingPolicy`.
fn policy_generation(rule: &CompiledRule) -> Option<&PolicyGeneration> {
    match &rule.body {
        Body::Generate(body) => match &body.content {
            GeneratedContent::Policy(generation) => Some(generation),
            GeneratedContent::Targets(_) => None,
        },
        _ => None,
    }
}

fn of_generation(generation: &PolicyGeneration, compiled: &CompiledRule) -> Traits {
    let (reads, constraints) = (generation.reads(), generation.constraints());
    let means = |operation| constraints.means_operation(operation);
    Traits {
        event_bound: reads.request_only,
        by_operation: reads.operation || !means(Operation::Create),
        reads_old: reads.old_object,
        // Expressions may name objects by what they draw.
        varying: if reads.varying { Varying::Identity } else { Varying::Nothing },
        namespace_selector: constraints.namespace_selector().is_some(),
        on_delete: constraints.names_operation(Operation::Delete),
        only_events: !means(Operation::Create) && !means(Operation::Update),
        selects: constraints.selects() || !generation.is_unconditional(),
        skips_own: compiled.skip_background_requests,
    }
}

fn of_rule(rule: &Value, compiled: &CompiledRule) -> Traits {
    let mut traits = Traits {
        varying: Varying::of(rule),
        skips_own: compiled.skip_background_requests,
        ..Traits::of_requests(rule)
    };
    for filter in ["match", "exclude"].iter().flat_map(|block| filters(rule, block)) {
        let Some(resources) = filter.get("resources") else { continue };
        traits.namespace_selector |= resources.get("namespaceSelector").is_some();
        traits.selects |= ["selector", "annotations", "name", "names", "namespaceSelector"]
            .iter()
            .any(|k| resources.get(k).is_some());
        traits.on_delete |= names(&filter, Operation::Delete);
    }
    traits
}

/// The filters of a block: those in its lists, and the block itself.
fn filters(rule: &Value, block: &str) -> Vec<Value> {
    let block = rule.get(block).cloned().unwrap_or_default();
    let mut filters: Vec<Value> =
        ["any", "all"].iter().filter_map(|key| block.get(key)?.as_array()).flatten().cloned().collect();
    filters.push(block);
    filters
}

fn operations(filter: &Value) -> &[Value] {
    filter.at(&["resources", "operations"]).and_then(Value::as_array).unwrap_or_default()
}

fn names(filter: &Value, operation: Operation) -> bool {
    operations(filter).iter().any(|named| named.as_str() == Some(operation.as_str()))
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    #[test]
    fn only_expressions_read_of_the_request() {
        let none = Reads::default();
        let request_only = Reads { request_only: true, ..none };
        for (rule, reads) in [
            ("{generate: {data: {spec: {serviceAccountName: builder}}}}", none),
            ("{generate: {data: {note: request.userInfo, text: 'request.oldObject serviceAccountName'}}}", none),
            ("{generate: {data: {a: '{{ request.object.spec.serviceAccountName }}'}}}", none),
            ("{generate: {data: {a: '{{ serviceAccountName }}'}}}", request_only),
            ("{generate: {data: {'{{ serviceAccountNamespace }}': a}}}", request_only),
            ("{generate: {data: {a: '{{ request.userInfo.username }}'}}}", request_only),
            ("{generate: {data: {a: '{{ request.\"userInfo\".username }}'}}}", request_only),
            ("{generate: {data: {a: '{{ to_upper(request . roles[0]) }}'}}}", request_only),
            ("{context: [{name: a, variable: {jmesPath: request.uid}}]}", request_only),
            ("{generate: {foreach: [{list: request.clusterRoles}]}}", request_only),
            ("{generate: {data: {a: '{{ request.oldObject.x }}'}}}", Reads { old_object: true, ..request_only }),
            ("{preconditions: {all: [{key: '{{ request.operation }}'}]}}", Reads { operation: true, ..none }),
            ("{generate: {data: {a: '{{ request }}'}}}", Reads::ALL),
            ("{generate: {data: {a: '{{ request.[userInfo] }}'}}}", Reads::ALL),
            ("{generate: {data: {a: '{{ request.{{ request.object.data.k }} }}'}}}", Reads::ALL),
        ] {
            assert_eq!(Reads::of(&parse_value(rule).unwrap(), ""), reads, "{rule}");
        }
    }
}
