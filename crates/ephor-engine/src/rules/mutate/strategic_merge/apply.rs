//! Both steps in one.

use ephor_expr::Value;
use ephor_expr::budget::Budget;

use super::error::MergeError;
use super::merge::merge;
use super::preprocess::preprocess;
use super::schema::MergeSchema;

/// Applies a patch with anchors to `resource`. `None` if nothing changes: a condition is not met, or the resource is
/// already what the patch makes of it. The work is charged to `budget`. Which lists have keys follows from the
/// resource's `apiVersion` and `kind`.
pub fn apply_strategic_merge(patch: &Value, resource: &Value, budget: &Budget) -> Result<Option<Value>, MergeError> {
    budget.charge_tree(patch)?;
    let patch = preprocess(patch, resource, budget).map_err(MergeError::in_preprocessing)?;
    let Some(patch) = patch else { return Ok(None) };
    let schema = match (resource.str_at(&["apiVersion"]), resource.str_at(&["kind"])) {
        (Some(api_version), Some(kind)) => MergeSchema::of(api_version, kind),
        _ => MergeSchema::UNKNOWN,
    };
    let patched = merge(&patch, resource, schema)?;
    Ok((patched != *resource).then_some(patched))
}
