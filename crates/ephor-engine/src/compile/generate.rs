//! `generate` blocks into targets.

use ephor_expr::Value;
use ephor_expr::value::{Path, encode};

use super::policy::{conditions, list, optional_text, selector_finding};
use super::rule::{GenerateTarget, GenerateWhat, GeneratedBody, GeneratedContent};
use crate::matching::Selector;
use crate::policy::{Generate, GenerateParts, Spec};
use crate::scope::{Compiler, Entry, Expr};

pub(super) fn generate_body(
    spec: &Spec,
    generate: &Generate,
    path: &Path,
    compiler: &mut Compiler<'_>,
) -> GeneratedBody {
    let targets = match &generate.foreach {
        None => vec![generate_target(&generate.parts(), None, path, compiler)],
        Some(loops) => {
            let loops = loops.iter().enumerate();
            loops
                .filter_map(|(i, entry)| {
                    let path = path.key("foreach").index(i);
                    let list = list(&entry.list, &path, compiler)?;
                    let mut target = generate_target(&entry.parts(), Some(list), &path, compiler);
                    target.context = Entry::compile_all(entry.context.as_ref(), &path.key("context"), compiler);
                    target.preconditions =
                        conditions(entry.preconditions.as_ref(), &path.key("preconditions"), compiler);
                    Some(target)
                })
                .collect()
        }
    };
    GeneratedBody {
        synchronize: generate.synchronize.unwrap_or(false),
        orphan: generate.orphan_downstream_on_policy_delete.unwrap_or(false),
        existing: generate.generate_existing.or(spec.generate_existing).unwrap_or(false),
        server_side_apply: spec.use_server_side_apply.unwrap_or(false),
        content: GeneratedContent::Targets(targets),
    }
}

fn generate_target(
    parts: &GenerateParts<'_>,
    list: Option<Expr>,
    path: &Path,
    compiler: &mut Compiler<'_>,
) -> GenerateTarget {
    let what = if let Some(list) = parts.clone_list {
        let path = path.key("cloneList");
        let selector = list.selector.as_ref().and_then(|selector| {
            let path = path.key("selector");
            if let Err(error) = Selector::compile(selector, &path) {
                compiler.report(selector_finding(&error, &Path::root()));
                return None;
            }
            // It may hold variables, so that what it selects is known only with a trigger.
            Some(compiler.template(&encode(selector).ok()?, &path))
        });
        GenerateWhat::CloneList {
            namespace: optional_text(list.namespace.as_ref(), &path.key("namespace"), compiler),
            kinds: list.kinds.clone().unwrap_or_default(),
            selector,
        }
    } else if let Some(clone) = parts.clone {
        let path = path.key("clone");
        GenerateWhat::Clone {
            namespace: optional_text(clone.namespace.as_ref(), &path.key("namespace"), compiler),
            name: optional_text(clone.name.as_ref(), &path.key("name"), compiler),
        }
    } else {
        let data = parts.data.cloned().unwrap_or_else(|| Value::object(ephor_expr::Map::new()));
        GenerateWhat::Data(compiler.template(&data, &path.key("data")))
    };
    GenerateTarget {
        list,
        context: Vec::new(),
        preconditions: None,
        api_version: optional_text(parts.api_version, &path.key("apiVersion"), compiler),
        kind: optional_text(parts.kind, &path.key("kind"), compiler),
        namespace: optional_text(parts.namespace, &path.key("namespace"), compiler),
        name: optional_text(parts.name, &path.key("name"), compiler),
        what,
    }
}
