//! The label `cleanup.kyverno.io/ttl` of objects.

use ephor_engine::cleanup::ttl::{Lifetime, TTL_LABEL};
use ephor_expr::Value;
use ephor_runtime::decision::Answer;

/// Warns of a label that says nothing.
pub(super) fn check(object: &Value) -> Answer {
    let value = object.str_at(&["metadata", "labels", TTL_LABEL]);
    match value.filter(|value| Lifetime::parse(value).is_none()) {
        None => Answer::allow(),
        Some(value) => Answer::allow().with_warnings([format!(
            "{TTL_LABEL} label value cannot be parsed as any recognizable format (`{value}` is neither a duration such \
             as 90s, 5m, 4h, 1d, 1w nor a time such as 2006-01-02 or 2006-01-02T150405Z): the object is kept"
        )]),
    }
}
