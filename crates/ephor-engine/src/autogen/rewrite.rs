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

/// Rewrites `request.object.spec` and `.metadata` (and those of `oldObject`) in all strings of a rule, keys included.
/// Only whole names count: `request.object.specials` stays (upstream rewrites it too). `request."object".metadata` is
/// how an author keeps a path.
pub(super) fn rewrite_text(value: &Value, template: Template) -> Value {
    match value {
        Value::String(text) if text.contains("$(") => Value::String(moved(&moved_reference(text, template), template)),
        Value::String(text) => Value::String(moved(text, template)),
        Value::Array(items) => Value::array(items.iter().map(|item| rewrite_text(item, template)).collect()),
        Value::Object(map) => Value::object(
            map.iter().map(|(key, member)| (moved(key, template), rewrite_text(member, template))).collect(),
        ),
        _ => value.clone(),
    }
}

/// References by a path from the rule's root follow the patch into the template.
fn moved_reference(text: &Str, template: Template) -> Str {
    const PATCH: &str = "/mutate/patchStrategicMerge/";
    text.replace(PATCH, &format!("{PATCH}{}/", template.path().join("/"))).into()
}

fn moved(text: &Str, template: Template) -> Str {
    if !text.contains("request.object.") && !text.contains("request.oldObject.") {
        return text.clone();
    }
    let into = template.path().join(".");
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text.as_str();
    while let Some(at) = rest.find("request.") {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let moved = ["request.object.", "request.oldObject."].into_iter().find_map(|prefix| {
            let tail = found.strip_prefix(prefix)?;
            let name = ["spec", "metadata"].into_iter().find(|name| is_word(tail, name))?;
            Some((prefix, name))
        });
        if let Some((prefix, name)) = moved {
            out.push_str(prefix);
            out.push_str(&into);
            out.push('.');
            out.push_str(name);
            rest = found.get(prefix.len() + name.len()..).unwrap_or_default();
        } else {
            out.push_str("request.");
            rest = found.get("request.".len()..).unwrap_or_default();
        }
    }
    out.push_str(rest);
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
            assert_eq!(moved(&Str::new(text), Template::Workload), want);
        }
        assert_eq!(
            moved(&Str::new("request.object.spec.x"), Template::CronJob),
            "request.object.spec.jobTemplate.spec.template.spec.x"
        );
    }
}
