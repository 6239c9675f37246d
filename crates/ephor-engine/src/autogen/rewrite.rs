//! Moving paths into the Pod template.

use ephor_expr::{Str, Value};

/// Where a controller keeps its Pod template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    /// At `spec.template`.
    Workload,
    /// At `spec.jobTemplate.spec.template`.
    CronJob,
}

impl Template {
    pub(super) fn name_prefix(self) -> &'static str {
        match self {
            Template::Workload => "autogen-",
            Template::CronJob => "autogen-cronjob-",
        }
    }

    fn path(self) -> &'static [&'static str] {
        match self {
            Template::Workload => &["spec", "template"],
            Template::CronJob => &["spec", "jobTemplate", "spec", "template"],
        }
    }

    /// `value` at the template's place.
    pub(super) fn wrap(self, value: &Value) -> Value {
        self.path().iter().rev().fold(value.clone(), |inner, key| Value::from([(*key, inner)]))
    }
}

/// The language of a rule's expressions, which decides how they name the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// `request.object` and `request.oldObject`.
    JmesPath,
    /// `object` and `oldObject`.
    Cel,
}

impl Language {
    fn roots(self) -> [&'static str; 2] {
        match self {
            Language::JmesPath => ["request.object.", "request.oldObject."],
            Language::Cel => ["object.", "oldObject."],
        }
    }
}

/// Rewrites `request.object.spec` and `.metadata` (and those of `oldObject`) in all strings of a rule, keys included;
/// in a rule with CEL `object.spec` and `.metadata`. Only whole names count: `request.object.specials` stays (upstream
/// rewrites it too). `request."object".metadata` is how an author keeps a path.
pub(super) fn rewrite_text(value: &Value, language: Language, template: Template) -> Value {
    let rewrite = |value| rewrite_text(value, language, template);
    match value {
        Value::String(text) if text.contains("$(") => {
            Value::String(moved(&moved_reference(text, template), language, template))
        }
        Value::String(text) => Value::String(moved(text, language, template)),
        Value::Array(items) => Value::array(items.iter().map(rewrite).collect()),
        Value::Object(map) => {
            Value::object(map.iter().map(|(key, member)| (moved(key, language, template), rewrite(member))).collect())
        }
        _ => value.clone(),
    }
}

/// References by a path from the rule's root follow the patch into the template.
fn moved_reference(text: &Str, template: Template) -> Str {
    const PATCH: &str = "/mutate/patchStrategicMerge/";
    text.replace(PATCH, &format!("{PATCH}{}/", template.path().join("/"))).into()
}

fn moved(text: &Str, language: Language, template: Template) -> Str {
    let roots = language.roots();
    let found = |text: &str, from: usize| {
        let rest = text.get(from..)?;
        roots.iter().filter_map(|root| Some((from + rest.find(root)?, root.len()))).min()
    };
    let Some(first) = found(text, 0) else { return text.clone() };
    let into = template.path().join(".");
    let mut out = String::with_capacity(text.len() + 32);
    let (mut next, mut written) = (Some(first), 0);
    while let Some((at, length)) = next {
        let (before, tail) = (text.get(..at).unwrap_or_default(), text.get(at + length..).unwrap_or_default());
        let is_whole = !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if is_whole && ["spec", "metadata"].into_iter().any(|name| is_word(tail, name)) {
            out.push_str(text.get(written..at + length).unwrap_or_default());
            out.push_str(&into);
            out.push('.');
            written = at + length;
        }
        next = found(text, at + length);
    }
    out.push_str(text.get(written..).unwrap_or_default());
    out.into()
}

/// Whether `text` starts with the whole word `name`.
fn is_word(text: &str, name: &str) -> bool {
    let after = text.strip_prefix(name).map(|rest| rest.bytes().next());
    matches!(after, Some(next) if next.is_none_or(|b| !b.is_ascii_alphanumeric() && b != b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_move_and_escapes_stay() {
        for (text, want) in [
            ("{{ request.object.spec.x }}", "{{ request.object.spec.template.spec.x }}"),
            ("{{request.object.metadata.labels.a}}", "{{request.object.spec.template.metadata.labels.a}}"),
            ("request.oldObject.spec", "request.oldObject.spec.template.spec"),
            ("{{ request.\"object\".metadata.name }}", "{{ request.\"object\".metadata.name }}"),
            ("request.object.specials", "request.object.specials"),
            ("request.object.kind request.name", "request.object.kind request.name"),
            (
                "request.object.spec.[a, b][] || request.object.spec.c",
                "request.object.spec.template.spec.[a, b][] || request.object.spec.template.spec.c",
            ),
        ] {
            assert_eq!(moved(&Str::new(text), Language::JmesPath, Template::Workload), want);
        }
        assert_eq!(
            moved(&Str::new("request.object.spec.x"), Language::JmesPath, Template::CronJob),
            "request.object.spec.jobTemplate.spec.template.spec.x"
        );
    }

    #[test]
    fn expressions_of_cel_move_by_their_own_names() {
        for (text, want) in [
            ("object.spec.containers.all(c, true)", "object.spec.template.spec.containers.all(c, true)"),
            (
                "has(object.metadata.labels) || oldObject.spec.a == object.spec.a",
                concat!(
                    "has(object.spec.template.metadata.labels) || ",
                    "oldObject.spec.template.spec.a == object.spec.template.spec.a"
                ),
            ),
            ("object.kind == 'x' && myobject.spec", "object.kind == 'x' && myobject.spec"),
            ("object.specials", "object.specials"),
            ("namespaceObject.metadata.name", "namespaceObject.metadata.name"),
        ] {
            assert_eq!(moved(&Str::new(text), Language::Cel, Template::Workload), want);
        }
    }
}
