//! Policies that need permissions which the background account lacks, on an API server that decides by RBAC.

use crate::processes::Roles;
use crate::remote::{TIMEOUT, within};

/// A role of the accounts with these verbs on kinds that the installation gives them no permissions for.
fn role(verbs: &str) -> String {
    format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ephor-tests:permissions
  labels: {{rbac.kyverno.io/aggregate-to-background-controller: 'true', rbac.kyverno.io/aggregate-to-admission-controller: 'true'}}
rules:
- {{apiGroups: [''], resources: [podtemplates], verbs: [{verbs}]}}
- {{apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [{verbs}]}}
"
    )
}

fn policy(name: &str, spec: &str, generate: &str) -> String {
    format!(
        "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: {name}}}
spec:{spec}
  rules:
  - name: r
    match: {{any: [{{resources: {{kinds: [PriorityClass]}}}}]}}
    generate: {{apiVersion: v1, kind: PodTemplate, name: made, namespace: default, {generate}}}
"
    )
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn a_policy_is_told_of_each_verb_that_the_background_account_lacks() {
    let mut roles = Roles::start_with(&[
        "--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller",
    ]);
    let kubectl = |arguments: &[&str], text: &str| {
        let file = roles.plane.directory().join("given.yaml");
        std::fs::write(&file, text).unwrap();
        let output = roles.plane.kubectl().args(arguments).args(["-f", &file.display().to_string()]).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), text)
    };
    let grant = |verbs: &str| assert!(kubectl(&["apply"], &role(verbs)).0);
    // Nothing is stored, so that it can be asked again: roles are aggregated by a controller, and the webhook for
    // policies is not there at once.
    let answers = |policy: &str, accepted: bool, words: &str| {
        let mut last = String::new();
        let answered = within(TIMEOUT, || {
            let (success, output) = kubectl(&["create", "--dry-run=server"], policy);
            last = output;
            success == accepted && last.contains(words)
        });
        assert!(answered, "{words}: {last}");
    };
    let account = "system:serviceaccount:kyverno:kyverno-background-controller requires permissions";

    let by_apply = policy("by-apply", "\n  useServerSideApply: true", "data: {}");
    grant("get, create");
    answers(&by_apply, false, &format!("{account} patch for resource v1/PodTemplate"));
    grant("get, create, patch");
    answers(&by_apply, true, "created");

    // Without list and watch a policy works in part: triggers and sources cannot be followed.
    grant("get, create, update, delete");
    let existing = policy("existing", "", "generateExisting: true, data: {}");
    answers(&existing, true, &format!("{account} list,watch for resource scheduling.k8s.io/v1/PriorityClass"));
    let copies = policy("copies", "", "synchronize: true, clone: {namespace: default, name: source}");
    answers(&copies, false, "kyverno-admission-controller requires permissions list for resource v1/PodTemplate");
    grant("get, create, update, delete, list");
    answers(&copies, true, &format!("{account} watch for resource v1/PodTemplate"));
    roles.assert_running();
}
