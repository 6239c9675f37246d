//! Which variables a rule may use where.

use std::collections::BTreeSet;

use ephor_expr::jmespath::Expression;
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::value::{Path, Segment};
use ephor_expr::{Map, Str, Value, yaml};

use super::users::{RequestVariables, compile_bare};
use crate::diagnostic::{Diagnostic, Severity};
use crate::outcome::cut;
use crate::policy::{Policy, Rule};
use crate::scope::{Found, enclosing, variables};

/// Names that mean something in every rule.
const BUILT_IN: [&str; 6] =
    ["request", "images", "image", "serviceAccountName", "serviceAccountNamespace", "elementIndex"];

/// For how many misspelt names of a rule the nearest known one is looked for: each takes a look at all of them.
const MAX_SUGGESTIONS: usize = 50;

/// How much of a text findings quote, in bytes.
const MAX_QUOTED: usize = 200;

/// The members of `request` that policies can read.
pub const REQUEST_MEMBERS: [&str; 17] = [
    "clusterRoles",
    "dryRun",
    "kind",
    "name",
    "namespace",
    "object",
    "oldObject",
    "operation",
    "options",
    "requestKind",
    "requestResource",
    "requestSubResource",
    "resource",
    "roles",
    "subResource",
    "uid",
    "userInfo",
];

/// The members of those members of `request` whose form is fixed.
const MEMBERS_OF_MEMBERS: [(&str, &[&str]); 5] = [
    ("kind", &["group", "kind", "version"]),
    ("requestKind", &["group", "kind", "version"]),
    ("requestResource", &["group", "resource", "version"]),
    ("resource", &["group", "resource", "version"]),
    ("userInfo", &["extra", "groups", "uid", "username"]),
];

/// Whether rules of the policy must not read the user: there is none when they are applied in the background.
pub(super) fn bans_user(policy: &Policy) -> bool {
    let targeted = policy.spec.rules.iter().any(|r| r.mutate.as_ref().is_some_and(|m| m.targets.is_some()));
    policy.spec.background.unwrap_or(true) && !targeted
}

/// Checks all variables of the rule at `path`, whose document is `document`.
pub(super) fn check(rule: &Rule, document: &Value, bans_user: bool, path: &Path, found: &mut Vec<Diagnostic>) {
    let mut names = BTreeSet::new();
    collect_entries(document, &mut names);
    let mut walk = Walk {
        names,
        has_targets: rule.mutate.as_ref().is_some_and(|m| m.targets.is_some()),
        banned_user: bans_user.then(|| RequestVariables::of(document)),
        base: path.clone(),
        suggestions: MAX_SUGGESTIONS,
        found,
    };
    walk.value(document, &mut Vec::new());
    if let Some(text) = rule.mutate.as_ref().and_then(|m| m.patches_json6902.as_ref()) {
        patch_paths(text, &path.keys(&["mutate", "patchesJson6902"]), found);
    }
}

/// Warns of names that a cleanup policy does not have. Upstream takes such a policy; the conditions fail for each
/// object that they are asked about, so that it stays.
pub(super) fn check_cleanup(document: &Value, found: &mut Vec<Diagnostic>) {
    let Some(spec) = document.get("spec") else { return };
    let (mut names, mut seen) = (BTreeSet::new(), Vec::new());
    collect_entries(spec, &mut names);
    let base = Path::root().key("spec");
    let mut walk =
        Walk { names, has_targets: true, banned_user: None, base, suggestions: MAX_SUGGESTIONS, found: &mut seen };
    for key in ["context", "conditions"] {
        if let Some(part) = spec.get(key) {
            walk.value(part, &mut vec![Segment::Key(Str::new_static(key))]);
        }
    }
    let undefined = seen.into_iter().filter(|finding| finding.code == "undefined-variable");
    found.extend(undefined.map(|finding| Diagnostic { severity: Severity::Warning, ..finding }));
}

/// Paths of a JSON patch decide what is changed, so they hold no variables outside loops.
fn patch_paths(text: &Str, path: &Path, found: &mut Vec<Diagnostic>) {
    let Ok(Value::Array(operations)) = yaml::parse_value(text) else { return };
    for operation in operations.iter() {
        let mut refuse = |code, message: String| found.push(Diagnostic::error(code, path.clone(), message));
        let target = operation.str_at(&["path"]).unwrap_or_default();
        if !variables(target).is_empty() {
            let message = "variables cannot be used in the path of a JSON patch outside `foreach`";
            refuse("variable-in-path", message.to_owned());
        } else if !target.starts_with('/') {
            refuse("json-patch", format!("path `{target}` does not begin with `/`"));
        }
        let kind = operation.str_at(&["op"]).unwrap_or_default();
        match kind {
            "add" | "replace" | "test" if operation.get("value").is_none() => {
                refuse("json-patch", format!("operation `{kind}` on `{target}` needs a `value`"));
            }
            "add" | "replace" | "test" | "remove" | "move" | "copy" => {}
            _ => refuse("json-patch", format!("unknown operation `{kind}`")),
        }
    }
}

/// Names of all context entries of a rule, those of loops and targets included.
fn collect_entries(value: &Value, names: &mut BTreeSet<Str>) {
    match value {
        Value::Object(map) => {
            for (key, member) in map.iter() {
                if key == "context" {
                    let entries = member.as_array().unwrap_or_default();
                    names.extend(entries.iter().filter_map(|e| e.str_at(&["name"]).map(Str::new)));
                }
                collect_entries(member, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_entries(item, names)),
        _ => {}
    }
}

struct Walk<'w> {
    names: BTreeSet<Str>,
    has_targets: bool,
    /// What variables hold of the request, where the user must not be read.
    banned_user: Option<RequestVariables>,
    base: Path,
    /// For how many more misspelt names all known ones are compared.
    suggestions: usize,
    found: &'w mut Vec<Diagnostic>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, at: &mut Vec<Segment>) {
        match value {
            Value::String(text) => self.text(text, at),
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    at.push(Segment::Index(i));
                    self.value(item, at);
                    at.pop();
                }
            }
            Value::Object(map) => {
                for (key, member) in map.iter() {
                    at.push(Segment::Key(key.clone()));
                    self.text(key, at);
                    if let Some(text) = member.as_str().filter(|_| is_bare(at, map)) {
                        self.bare(text, at);
                    }
                    self.value(member, at);
                    at.pop();
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &Str, at: &[Segment]) {
        // Variables in match and exclude are refused as such, elsewhere, and rules of verifyImages as a whole.
        let elsewhere = matches!(at.first(), Some(Segment::Key(key)) if ["match", "exclude", "verifyImages"].contains(&key.as_str()));
        for place in variables(text).into_iter().filter(|_| !elsewhere) {
            let body = place.body(text);
            if let (true, Ok(expression)) = (body != "@", Expression::compile(body)) {
                self.variable(body, &expression, &place, at);
            }
        }
        if !elsewhere
            && let Some(request) = &self.banned_user
            && enclosing(text).0.iter().any(|expression| request.user_is_read(expression))
        {
            self.report_user(text, at);
        }
    }

    fn report_user(&mut self, variable: &str, at: &[Segment]) {
        let mut path = self.base.clone();
        path.0.extend(at.iter().cloned());
        self.found.push(user_in_background(path, variable));
    }

    fn report(&mut self, place: &Found, offset: usize, at: &[Segment], make: impl FnOnce(Path) -> Diagnostic) {
        let mut path = self.base.clone();
        path.0.extend(at.iter().cloned());
        self.found.push(make(path).at_offset(place.body_start + offset));
    }

    fn variable(&mut self, body: &str, expression: &Expression, place: &Found, at: &[Segment]) {
        self.names(body, expression, place, at);
        if self.banned_user.as_ref().is_some_and(|request| request.user_is_read(expression)) {
            self.report(place, 0, at, |path| user_in_background(path, &format!("{{{{{body}}}}}")));
        }
    }

    /// Checks the names that an expression reads.
    fn names(&mut self, body: &str, expression: &Expression, place: &Found, at: &[Segment]) {
        let within = |name: &str| at.iter().any(|s| matches!(s, Segment::Key(key) if key == name));
        let in_loop = within("foreach");
        let roots = expression.root_identifiers();
        // These are about the expression as a whole, however often it reads the name.
        let (mut outside_loop, mut outside_targets) = (false, false);
        // Upstream takes a variable in which any known name or a call occurs, and so do we, but not in silence.
        let tolerated = body.contains('(') || roots.iter().any(|root| self.is_known(&root.name));
        for root in roots {
            let name = root.name.as_str();
            if is_element(name) && !in_loop && !self.names.contains(name) {
                if std::mem::replace(&mut outside_loop, true) {
                    continue;
                }
                let (body, place_text) = (cut(body, MAX_QUOTED), Path(at.to_vec()).slashed());
                self.report(place, root.offset, at, |path| {
                    let message = format!("variable '{body}' present outside of foreach at path {place_text}");
                    Diagnostic::error("element-outside-foreach", path, message)
                });
            } else if name == "target" && !self.target_allowed(at) {
                if std::mem::replace(&mut outside_targets, true) {
                    continue;
                }
                let body = cut(body, MAX_QUOTED);
                self.report(place, root.offset, at, |path| {
                    let message = format!(
                        "variable '{body}' is only known in the context, preconditions and patches of mutate targets"
                    );
                    Diagnostic::error("target-outside-targets", path, message)
                });
            } else if !self.is_known(name) {
                let near = self.suggest(name);
                let help = match name {
                    "" => Some("text stands between single quotes, what is in double quotes is a name".to_owned()),
                    "null" | "true" | "false" => Some(format!("a literal stands between backquotes: `` `{name}` ``")),
                    _ => near.map(|near| format!("did you mean `{near}`?")),
                };
                self.report(place, root.offset, at, |path| {
                    let message = format!("policy contains invalid variables: `{name}` is not defined");
                    let finding = if tolerated {
                        Diagnostic::warning("undefined-variable", path, message)
                    } else {
                        Diagnostic::error("undefined-variable", path, message)
                    };
                    Diagnostic { help, ..finding }
                });
            }
        }
        self.members_of_request(expression, place, at);
    }

    /// Warns of members of `request` that do not exist.
    fn members_of_request(&mut self, expression: &Expression, place: &Found, at: &[Segment]) {
        if self.names.contains("request") {
            return;
        }
        for path in expression.paths_below("request") {
            let Some((parent, member, known)) = unknown_member(&path) else { continue };
            self.report(place, 0, at, |path| {
                let message = format!("`{parent}` has no member `{member}`");
                let help =
                    nearest(member, known.iter().copied()).map(|near| format!("did you mean `{parent}.{near}`?"));
                Diagnostic { help, ..Diagnostic::warning("undefined-variable", path, message) }
            });
        }
    }

    /// Checks an expression without braces around it: a loop's list, or the `jmesPath` of a variable.
    fn bare(&mut self, text: &str, at: &[Segment]) {
        let Some(expression) = compile_bare(text) else { return };
        let place = Found { start: 0, end: text.len(), body_start: 0, body_end: text.len() };
        let is_list = matches!(at.last(), Some(Segment::Key(key)) if key == "list");
        // A list that reads what does not exist skips its loop in silence.
        if !variables(text).is_empty() {
            // The names in it are known once its variables are.
        } else if is_list {
            self.names(text, &expression, &place, at);
        } else {
            self.members_of_request(&expression, &place, at);
        }
        let reads_user = |request: &RequestVariables| {
            if is_list { request.user_is_read(&expression) } else { request.user_is_read_by_definition(&expression) }
        };
        if self.banned_user.as_ref().is_some_and(reads_user) {
            self.report_user(text, at);
        }
    }

    fn is_known(&self, name: &str) -> bool {
        BUILT_IN.contains(&name)
            || is_element(name)
            || name == "target"
            || self.names.contains(name)
            || self.is_prefix(name)
    }

    /// Whether an entry is called `NAME.` and something.
    fn is_prefix(&self, name: &str) -> bool {
        let prefix = Str::from(format!("{name}."));
        self.names.range::<Str, _>(&prefix..).next().is_some_and(|entry| entry.starts_with(prefix.as_str()))
    }

    /// The known name nearest to a misspelt one, for the first [`MAX_SUGGESTIONS`].
    fn suggest(&mut self, name: &str) -> Option<String> {
        self.suggestions = self.suggestions.checked_sub(1)?;
        let known = self.names.iter().map(Str::as_str).chain(BUILT_IN).chain(["element", "target"]);
        nearest(name, known).map(str::to_owned)
    }

    /// Whether `target` means something at this place of the rule.
    fn target_allowed(&self, at: &[Segment]) -> bool {
        let key = |i: usize| match at.get(i) {
            Some(Segment::Key(key)) => key.as_str(),
            _ => "",
        };
        self.has_targets && key(0) == "mutate" && (key(1) != "targets" || matches!(key(3), "context" | "preconditions"))
    }
}

/// The first member on a path below `request` that does not exist: what it is read from, the member, and those that
/// exist.
fn unknown_member<'p>(path: &[&'p Str]) -> Option<(String, &'p str, &'static [&'static str])> {
    let member = path.first()?.as_str();
    if !REQUEST_MEMBERS.contains(&member) {
        return Some(("request".to_owned(), member, &REQUEST_MEMBERS));
    }
    let (_, known) = MEMBERS_OF_MEMBERS.iter().find(|(name, _)| *name == member)?;
    let below = path.get(1)?.as_str();
    (!known.contains(&below)).then(|| (format!("request.{member}"), below, *known))
}

/// `element`, `elementIndex`, and both with a number.
fn is_element(name: &str) -> bool {
    let rest = name.strip_prefix("elementIndex").or_else(|| name.strip_prefix("element"));
    rest.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether the member at `at`, of `object`, is an expression over all that the rule sees.
fn is_bare(at: &[Segment], object: &Map) -> bool {
    let key = |back: usize| match at.iter().rev().nth(back) {
        Some(Segment::Key(key)) => key.as_str(),
        _ => "",
    };
    match key(0) {
        "jmesPath" => key(1) == "variable" && !object.contains_key("value"),
        "list" => matches!(at.iter().rev().nth(2), Some(Segment::Key(key)) if key == "foreach"),
        _ => false,
    }
}

fn user_in_background(path: Path, variable: &str) -> Diagnostic {
    let message = "only select variables are allowed in background mode. Set spec.background=false to disable \
                   background mode for this policy rule";
    let variable = cut(variable, MAX_QUOTED);
    Diagnostic::error("user-in-background", path, format!("{message}: variable {variable} is not allowed"))
}
