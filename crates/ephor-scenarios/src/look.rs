//! Operations that look at objects: assert, error, wait.

use ephor_expr::Value;

use crate::assertion::{Mismatch, mismatches};
use crate::expression::render;
use crate::run::{Outcome, Run, TimeoutKind, title, until};
use crate::scenario::{Check, Wait};

/// What a tree meant.
struct Comparison {
    /// How many objects.
    count: usize,
    /// The one that comes closest, with what is wrong with it.
    closest: Option<(Value, Vec<Mismatch>)>,
}

/// How many differences are told.
const MOST_TOLD: usize = 8;

impl Run<'_> {
    /// Waits until an object is as each tree says.
    pub(crate) fn assert(&mut self, check: &Check) -> Outcome {
        self.bind(&check.bindings)?;
        let patience = self.timeout(TimeoutKind::Assert, check.timeout.as_deref())?;
        for tree in self.trees(check)? {
            until(patience, || {
                let Comparison { count, closest } = self.compare(&tree)?;
                match closest {
                    Some((_, found)) if found.is_empty() => Ok(()),
                    Some((object, found)) => Err(tell(&tree, count, &object, &found)),
                    None => Err(format!("{}: there is none", title(&tree))),
                }
            })?;
        }
        Ok(())
    }

    /// Waits until no object is as a tree says.
    pub(crate) fn assert_absent(&mut self, check: &Check) -> Outcome {
        self.bind(&check.bindings)?;
        let patience = self.timeout(TimeoutKind::Error, check.timeout.as_deref())?;
        for tree in self.trees(check)? {
            until(patience, || match self.compare(&tree)?.closest {
                Some((object, found)) if found.is_empty() => {
                    Err(format!("{} is there and should not be so:\n{}", title(&object), indent(&tree)))
                }
                _ => Ok(()),
            })?;
        }
        Ok(())
    }

    fn trees(&self, check: &Check) -> Result<Vec<Value>, String> {
        let documents = self.documents(check.file.as_deref(), check.resource.as_ref())?;
        if !self.templating(check.template) {
            return Ok(documents);
        }
        // Names and labels are needed to find objects; everything else is evaluated over them.
        let render_head = |document: Value| {
            let mut document = document;
            if let Some(metadata) = document.as_object_mut().and_then(|members| members.get_mut("metadata")) {
                *metadata = render(metadata, &self.bindings);
            }
            document
        };
        Ok(documents.into_iter().map(render_head).collect())
    }

    /// The objects that a tree means.
    fn compare(&self, tree: &Value) -> Result<Comparison, String> {
        let candidates = self.candidates(tree).map_err(|error| error.to_string())?;
        let count = candidates.len();
        let compared = candidates.into_iter().map(|(_, object)| {
            let found = mismatches(tree, &object, &self.bindings);
            (object, found)
        });
        Ok(Comparison { count, closest: compared.min_by_key(|(_, found)| found.len()) })
    }

    /// Waits as `kubectl wait` does.
    pub(crate) fn wait(&self, wait: &Wait) -> Outcome {
        let patience = self.timeout(TimeoutKind::Exec, wait.timeout.as_deref())?;
        let group = wait.api_version.split_once('/');
        let kind = group.map_or(wait.kind.clone(), |(group, version)| format!("{}.{version}.{group}", wait.kind));
        let mut arguments = vec!["wait".to_owned(), kind];
        match (&wait.name, &wait.selector) {
            (Some(name), _) => arguments.push(self.text(name)?),
            (None, Some(selector)) => arguments.push(format!("--selector={selector}")),
            (None, None) => arguments.push("--all".to_owned()),
        }
        let namespace = wait.namespace.as_deref().map(|name| self.text(name)).transpose()?;
        arguments.push(format!("--namespace={}", namespace.as_ref().unwrap_or(&self.namespace)));
        let condition = wait.condition.condition.as_ref().map(|condition| {
            let value = condition.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
            format!("--for=condition={}{value}", condition.name)
        });
        arguments.push(condition.unwrap_or_else(|| "--for=delete".to_owned()));
        arguments.push(format!("--timeout={}s", patience.as_secs()));
        let ended = self.execute("kubectl", &arguments, &[], patience)?;
        if ended.status == Some(0) { Ok(()) } else { Err(ended.told()) }
    }
}

fn tell(tree: &Value, candidates: usize, object: &Value, found: &[Mismatch]) -> String {
    let named = tree.at(&["metadata", "name"]).is_some();
    let which = if named { String::new() } else { format!(" (closest of {candidates})") };
    let mut text = format!("{}{which}:", title(object));
    for mismatch in found.iter().take(MOST_TOLD) {
        text.push_str("\n  ");
        text.push_str(&mismatch.to_string());
    }
    if found.len() > MOST_TOLD {
        text.extend(["\n  and ", &(found.len() - MOST_TOLD).to_string(), " more"]);
    }
    text
}

fn indent(tree: &Value) -> String {
    let text = ephor_expr::yaml::to_yaml(tree);
    text.lines().take(40).flat_map(|line| ["  ", line, "\n"]).collect()
}
