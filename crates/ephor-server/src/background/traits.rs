//! What a generate rule depends on besides its trigger.

use ephor_engine::compile::CompiledRule;
use ephor_engine::policy::Operation;
use ephor_expr::Value;
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

/// Names in expressions that only a request has.
const REQUEST_ONLY: [&str; 9] = [
    "request.userInfo",
    "request.roles",
    "request.clusterRoles",
    "serviceAccountName",
    "serviceAccountNamespace",
    "request.oldObject",
    "request.uid",
    "request.options",
    "request.subResource",
];

impl Traits {
    /// Whether what such a request brings about can only be judged with it at hand, so that it must be remembered.
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
        let text = rule.to_json();
        let mut traits = Self {
            event_bound: REQUEST_ONLY.iter().any(|name| text.contains(name)),
            by_operation: text.contains("request.operation"),
            reads_old: text.contains("request.oldObject"),
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

pub(super) fn traits(rule: &Value, compiled: &CompiledRule) -> Traits {
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
