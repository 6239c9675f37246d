//! What a new version of a policy may not change.
//!
//! Objects that were generated carry the names of their policy and rule, and are looked for by them. So what a generate
//! rule is called and when it applies stays as it is; what it makes of its trigger may change.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use ephor_expr::Str;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;
use crate::policy::{Generate, GenerateForEach, GenerateParts, Policy, Rule};

/// Everything about the change from `old` to `new` that is refused or needs to be said. Neither policy is looked at on
/// its own; see [`super::check_policy`].
pub fn check_update(old: &Policy, new: &Policy) -> Vec<Diagnostic> {
    let rules = Path::root().keys(&["spec", "rules"]);
    let mut found = Vec::new();
    let mut by_name: BTreeMap<&Str, (usize, &Rule)> = BTreeMap::new();
    for (i, rule) in generating(new) {
        by_name.entry(&rule.name).or_insert((i, rule));
    }
    let pairs: Vec<(usize, &Rule, &Rule)> = generating(old)
        .filter_map(|(_, before)| by_name.get(&before.name).map(|(i, after)| (*i, before, *after)))
        .collect();
    for (i, before, after) in &pairs {
        if let (Some(before), Some(after)) = (&before.generate, &after.generate)
            && targets(before) != targets(after)
        {
            let message = "no synchronization will be performed to the old target resource upon policy updates";
            let finding = Diagnostic::warning("target-changed", rules.index(*i).key("generate"), message);
            found.push(finding.with_help("delete the old target by hand when it is no longer needed"));
        }
    }
    // Upstream: a new target ends the comparison, so that rules can be pointed elsewhere in one step
    // (generate/validation/policy/warn-downstream-change).
    if !found.is_empty() {
        return found;
    }
    let follows = generating(old).any(|(_, rule)| rule.generate.as_ref().is_some_and(|g| g.synchronize == Some(true)));
    for (i, before, after) in &pairs {
        let at = rules.index(*i);
        for (field, changed) in [
            ("match", follows && before.matches != after.matches),
            ("exclude", before.exclude != after.exclude),
            ("preconditions", before.preconditions != after.preconditions),
            ("context", before.context != after.context),
        ] {
            if changed {
                found.push(immutable(at.key(field), field));
            }
        }
    }
    // A rule that is gone while another has come is the same rule under another name.
    let (before, after) = (names(old), names(new));
    let gone = generating(old).any(|(_, rule)| !after.contains(&rule.name));
    let come = generating(new).find(|(_, rule)| !before.contains(&rule.name));
    if let (true, Some((i, _))) = (gone, come) {
        found.push(immutable(rules.index(i).key("name"), "name"));
    }
    found
}

fn immutable(path: Path, field: &str) -> Diagnostic {
    let message = format!("changes of immutable fields of a rule spec in a generate rule is disallowed: `{field}`");
    Diagnostic::error("immutable-field", path, message).with_help("delete the policy and create it anew")
}

fn names(policy: &Policy) -> BTreeSet<&Str> {
    policy.spec.rules.iter().map(|rule| &rule.name).collect()
}

fn generating(policy: &Policy) -> impl Iterator<Item = (usize, &Rule)> {
    policy.spec.rules.iter().enumerate().filter(|(_, rule)| rule.generate.is_some())
}

/// Which objects are generated from which, also in loops: everything but the data.
fn targets(generate: &Generate) -> Vec<GenerateParts<'_>> {
    let loops = generate.foreach.iter().flatten().map(GenerateForEach::parts);
    iter::once(generate.parts()).chain(loops).map(|parts| GenerateParts { data: None, ..parts }).collect()
}

#[cfg(test)]
mod tests {
    use ephor_expr::value::decode;
    use ephor_expr::yaml::parse_value;

    use super::check_update;
    use crate::policy::Policy;

    const RULE: &str = "name: r, match: {any: [{resources: {kinds: [Secret]}}]}";
    const TARGET: &str = "apiVersion: v1, kind: ConfigMap, name: a, namespace: b";

    fn policy(rules: &str) -> Policy {
        let text = format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [{rules}]}}}}"
        );
        decode(&parse_value(&text).unwrap()).unwrap()
    }

    fn found(old: &str, new: &str) -> Vec<String> {
        let found = check_update(&policy(old), &policy(new));
        found.into_iter().map(|f| format!("{} {}", f.code, f.path)).collect()
    }

    fn rule(head: &str, generate: &str) -> String {
        format!("{{{head}, generate: {{{generate}}}}}")
    }

    #[test]
    fn what_a_rule_makes_may_change_and_when_it_applies_may_not() {
        let sync = format!("{TARGET}, synchronize: true, data: {{x: 1}}");
        let once = format!("{TARGET}, data: {{x: 1}}");
        let other = "name: r, match: {any: [{resources: {kinds: [Pod]}}]}";
        let renamed = "name: s, match: {any: [{resources: {kinds: [Secret]}}]}";
        let elsewhere = "apiVersion: v1, kind: ConfigMap, name: other, namespace: b, synchronize: true, data: {x: 1}";
        let more = |tail: &str| rule(&format!("{RULE}, {tail}"), &sync);
        let (before, loose) = (rule(RULE, &sync), rule(RULE, &once));
        let two = format!("{before}, {}", rule(renamed, &sync));
        let at = "spec.rules[0]";
        for (old, new, want) in [
            (&before, &before, vec![]),
            (&before, &rule(RULE, &format!("{TARGET}, orphanDownstreamOnPolicyDelete: true, data: {{y: 2}}")), vec![]),
            (&before, &rule(other, &sync), vec![format!("immutable-field {at}.match")]),
            (&loose, &rule(other, &once), vec![]),
            (
                &before,
                &more("exclude: {any: [{resources: {kinds: [Pod]}}]}"),
                vec![format!("immutable-field {at}.exclude")],
            ),
            (&before, &more("preconditions: []"), vec![format!("immutable-field {at}.preconditions")]),
            (&before, &more("context: []"), vec![format!("immutable-field {at}.context")]),
            (&before, &rule(renamed, &sync), vec![format!("immutable-field {at}.name")]),
            (&before, &two, vec![]),
            (&two, &before, vec![]),
            (&before, &rule(RULE, elsewhere), vec![format!("target-changed {at}.generate")]),
            (&before, &rule(other, elsewhere), vec![format!("target-changed {at}.generate")]),
        ] {
            assert_eq!(found(old, new), want, "{old} -> {new}");
        }
    }

    #[test]
    fn sources_of_copies_are_part_of_the_target() {
        let list = |kinds: &str| rule(RULE, &format!("namespace: b, cloneList: {{namespace: c, kinds: [{kinds}]}}"));
        let copy = |name: &str| rule(RULE, &format!("{TARGET}, clone: {{namespace: c, name: {name}}}"));
        assert_eq!(found(&list("v1/Secret"), &list("v1/ConfigMap")), ["target-changed spec.rules[0].generate"]);
        assert_eq!(found(&copy("here"), &copy("there")), ["target-changed spec.rules[0].generate"]);
        assert_eq!(found(&copy("here"), &copy("here")), [""; 0]);
        let each = |what: &str| rule(RULE, &format!("foreach: [{{list: request.object.data, {TARGET}, {what}}}]"));
        let copies = |name: &str| each(&format!("clone: {{namespace: c, name: {name}}}"));
        assert_eq!(found(&copies("here"), &copies("there")), ["target-changed spec.rules[0].generate"]);
        assert_eq!(found(&each("data: {x: 1}"), &each("data: {x: 2}")), [""; 0]);
    }

    #[test]
    fn rules_that_generate_nothing_change_freely() {
        let validate = |name: &str| format!("{{name: {name}, match: {{}}, validate: {{deny: {{}}}}}}");
        assert_eq!(found(&validate("a"), &validate("b")), [""; 0]);
    }
}
