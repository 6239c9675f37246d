//! `mutate` blocks into patches.

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::policy::{conditions, list, optional_text};
use super::rule::{MutateBody, MutateLoop, Patch, TargetSelector};
use crate::diagnostic::Diagnostic;
use crate::policy::{Mutate, MutateForEach, Order, Spec, Target};
use crate::rules::mutate::JsonPatch;
use crate::rules::references::resolve_patch;
use crate::scope::{Compiler, Entry, Template};

pub(super) fn mutate_body(spec: &Spec, mutate: &Mutate, path: &Path, compiler: &mut Compiler<'_>) -> MutateBody {
    let targets = mutate.targets.as_ref().map(|targets| {
        let path = path.key("targets");
        targets.iter().enumerate().map(|(i, t)| target(t, &path.index(i), compiler)).collect()
    });
    let parts = PatchParts {
        merge: mutate.patch_strategic_merge.as_ref(),
        json: mutate.patches_json6902.as_ref(),
        foreach: mutate.foreach.as_ref(),
    };
    MutateBody {
        targets,
        patch: patch(&parts, path, compiler),
        on_policy_update: mutate
            .mutate_existing_on_policy_update
            .or(spec.mutate_existing_on_policy_update)
            .unwrap_or(false),
        path: path.clone(),
    }
}

struct PatchParts<'p> {
    merge: Option<&'p Value>,
    json: Option<&'p Str>,
    foreach: Option<&'p Vec<MutateForEach>>,
}

fn patch(parts: &PatchParts<'_>, path: &Path, compiler: &mut Compiler<'_>) -> Patch {
    if let Some(merge) = parts.merge {
        let path = path.key("patchStrategicMerge");
        let merge = match resolve_patch(merge) {
            Ok(resolved) => resolved,
            Err(error) => {
                compiler.report(Diagnostic::error("reference", path.clone(), error.to_string()));
                merge.clone()
            }
        };
        return Patch::StrategicMerge(compiler.template(&merge, &path));
    }
    if let Some(text) = parts.json {
        let path = path.key("patchesJson6902");
        return match compiler.patch_text(text, &path) {
            Template::Fixed(Value::String(text)) => match JsonPatch::parse(&text) {
                Ok(patch) => Patch::Json(patch),
                Err(error) => {
                    compiler.report(Diagnostic::error("json-patch", path, error.to_string()));
                    Patch::ForEach(Vec::new())
                }
            },
            template => Patch::JsonTemplate(template),
        };
    }
    let loops = parts.foreach.into_iter().flatten().enumerate();
    Patch::ForEach(
        loops
            .filter_map(|(i, entry)| {
                let path = path.key("foreach").index(i);
                let parts = PatchParts {
                    merge: entry.patch_strategic_merge.as_ref(),
                    json: entry.patches_json6902.as_ref(),
                    foreach: entry.foreach.as_ref(),
                };
                // Merges prepend new list items, so they run backwards unless the author says otherwise.
                let by_default = if parts.merge.is_some() { Order::Descending } else { Order::Ascending };
                Some(MutateLoop {
                    list: list(&entry.list, &path, compiler)?,
                    order: entry.order.unwrap_or(by_default),
                    context: Entry::compile_all(entry.context.as_ref(), &path.key("context"), compiler),
                    preconditions: conditions(entry.preconditions.as_ref(), &path.key("preconditions"), compiler),
                    patch: patch(&parts, &path, compiler),
                    path,
                })
            })
            .collect(),
    )
}

fn target(target: &Target, path: &Path, compiler: &mut Compiler<'_>) -> TargetSelector {
    TargetSelector {
        api_version: optional_text(target.api_version.as_ref(), &path.key("apiVersion"), compiler),
        kind: optional_text(target.kind.as_ref(), &path.key("kind"), compiler),
        namespace: optional_text(target.namespace.as_ref(), &path.key("namespace"), compiler),
        name: optional_text(target.name.as_ref(), &path.key("name"), compiler),
        selector: target.selector.as_ref().map(|s| compiler.template(s, &path.key("selector"))),
        context: Entry::compile_all(target.context.as_ref(), &path.key("context"), compiler),
        preconditions: conditions(target.preconditions.as_ref(), &path.key("preconditions"), compiler),
    }
}
