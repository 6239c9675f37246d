//! The auto-gen annotation, and rules that auto-gen leaves out against what their author may expect.

use ephor_expr::value::Path;

use super::kinds;
use crate::autogen::{self, ANNOTATION, Fault, Misnamed};
use crate::diagnostic::Diagnostic;
use crate::policy::Policy;

/// The code of the finding about a word of the annotation that names no kind. The rules themselves are sound.
pub const AUTOGEN_KIND: &str = "autogen-kind";

/// Checks the annotation and tells which rules are not expanded.
pub(super) fn check(policy: &Policy, found: &mut Vec<Diagnostic>) {
    annotation(policy, found);
    notes(policy, found);
}

fn annotation(policy: &Policy, found: &mut Vec<Diagnostic>) {
    let path = || Path::root().keys(&["metadata", "annotations"]).key(ANNOTATION);
    if autogen::controllers(policy).says_all {
        // Upstream refuses the value now; old policies keep working here.
        let message = "the value `all` is no longer defined; it is read as the default set of controllers";
        let finding = Diagnostic::warning("autogen-all", path(), message);
        found.push(finding.with_help("remove the annotation, all controllers are the default"));
    }
    let is_native = |kind: &str| kinds::place("", kind).is_some();
    for Misnamed { name, fault, nearest } in autogen::misnamed(policy, is_native) {
        let warn = |message| Diagnostic::warning(AUTOGEN_KIND, path(), message);
        let finding = match fault {
            Fault::NoKind => {
                Diagnostic::error(AUTOGEN_KIND, path(), format!("`{name}` is no kind with a Pod template"))
            }
            Fault::Custom => warn(format!("`{name}` is no controller kind of Kubernetes; it is read as a custom kind")),
            Fault::NoTemplate => {
                warn(format!("`{name}` of Kubernetes has no Pod template; it is read as a custom kind"))
            }
            Fault::Empty => warn("the list of kinds has an empty item".to_owned()),
            Fault::NoneBesideOthers => warn("`none` has no effect beside other kinds".to_owned()),
        };
        found.push(match (fault, nearest) {
            (Fault::Empty, _) => finding.with_help("remove the comma"),
            (Fault::NoneBesideOthers, _) => finding.with_help("remove `none`, or the kinds"),
            (_, Some(near)) => finding.with_help(format!("did you mean `{near}`?")),
            (_, None) => finding.with_help("name kinds such as `Deployment,CronJob`, or `none`"),
        });
    }
}

/// Where auto-gen does less than the author may expect.
fn notes(policy: &Policy, found: &mut Vec<Diagnostic>) {
    if autogen::controllers(policy).is_empty() {
        return;
    }
    let rules = Path::root().keys(&["spec", "rules"]);
    let eligibility = autogen::Eligibility::of(policy);
    let mut expanded = false;
    for (i, rule) in policy.spec.rules.iter().enumerate() {
        match eligibility.check(rule) {
            Ok(()) => expanded = true,
            Err(autogen::Ineligible::JsonPatch) if eligibility.is_on_pods(rule) => {
                let message = "a JSON patch is for Pods alone, it is not applied to their controllers";
                found.push(Diagnostic::warning("autogen-json-patch", rules.index(i).key("mutate"), message));
            }
            Err(_) => {}
        }
    }
    let asked = policy.metadata.annotation(autogen::ANNOTATION).is_some();
    if asked && !expanded {
        let path = Path::root().keys(&["metadata", "annotations"]).key(autogen::ANNOTATION);
        let message = "no rule of the policy can be applied to Pod controllers, so the annotation has no effect";
        found.push(Diagnostic::warning("autogen-unused", path, message));
    }
}
