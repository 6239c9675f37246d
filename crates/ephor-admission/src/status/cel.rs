//! Builds the status document of a policy of `policies.kyverno.io`.

use ephor_expr::{Map, Value};
use ephor_runtime::policies::StoredPolicy;
use jiff::Timestamp;

use super::document::{cut, fits};
use super::readiness::Readiness;
use super::reporting::Reporting;
use crate::generated::Generated;

/// The status that follows from a readiness and from what scans may read; `None` if nothing is to be said yet.
/// `generated` tells what became of the admission policy that it asks for. `before` is the stored one: the times of
/// conditions that did not change are kept.
pub(super) fn describe(
    policy: &StoredPolicy,
    readiness: &Readiness,
    reporting: Option<&Reporting>,
    generated: Option<&Generated>,
    before: Option<&Value>,
    now: Timestamp,
) -> Option<Value> {
    let mut conditions = Conditions { before, now, found: Vec::new() };
    let asked = policy.program.as_ref().is_some_and(|program| program.admission);
    match readiness {
        Readiness::Unknown => return None,
        Readiness::Failed(why) if policy.program.is_none() => conditions.add("PolicyCached", Err(cut(why))),
        Readiness::Failed(why) => {
            let why = format!("Policy is not configured in the webhook. {}", cut(why));
            conditions.add("WebhookConfigured", Err(&why));
        }
        Readiness::Ready { .. } if asked => conditions.add("WebhookConfigured", Ok("Webhook configured.")),
        Readiness::Ready { .. } => {}
    }
    match reporting {
        None => {}
        Some(Reporting::Ready) => conditions.add("RBACPermissionsGranted", Ok("Policy is ready for reporting.")),
        Some(Reporting::Lacks(lacking)) => {
            let lacking = lacking.join("; ");
            let text = format!("Policy is not ready for reporting, missing permissions: {lacking}.");
            conditions.add("RBACPermissionsGranted", Err(cut(&text)));
        }
    }
    let is_ready = |condition: &Value| condition.str_at(&["status"]) == Some("True");
    let ready = conditions.found.iter().all(is_ready);
    let wrong = conditions.found.iter().find(|condition| !is_ready(condition));
    let message = wrong.and_then(|condition| condition.str_at(&["message"])).unwrap_or_default().to_owned();
    let status = Value::from([
        ("conditions", Value::array(conditions.found)),
        ("message", message.into()),
        ("ready", Value::Bool(ready)),
    ]);
    // What other controllers note is theirs.
    let mut members = before.and_then(Value::as_object).cloned().unwrap_or_default();
    members.insert("conditionStatus", status);
    let configs = &policy.description.configs;
    let autogen = Value::from([("configs", Value::object(configs.clone()))]);
    let shown = !configs.is_empty() && fits(&autogen, &policy.document);
    members.insert("autogen", if shown { autogen } else { Value::object(Map::new()) });
    members.insert("generated", generated == Some(&Generated::Stored));
    Some(members.into())
}

/// Conditions in the making.
struct Conditions<'b> {
    before: Option<&'b Value>,
    now: Timestamp,
    found: Vec<Value>,
}

impl Conditions<'_> {
    fn add(&mut self, kind: &str, holds: Result<&str, &str>) {
        let (status, reason, message) = match holds {
            Ok(text) => ("True", "Succeeded", text),
            Err(text) => ("False", "Failed", text),
        };
        let earlier = self.before.and_then(|before| before.at(&["conditionStatus", "conditions"]));
        let same = earlier.and_then(Value::as_array).unwrap_or_default().iter().find(|condition| {
            condition.str_at(&["type"]) == Some(kind) && condition.str_at(&["status"]) == Some(status)
        });
        let since =
            same.and_then(|condition| condition.str_at(&["lastTransitionTime"])).filter(|time| !time.is_empty());
        let since = since.map_or_else(|| self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), str::to_owned);
        self.found.push(Value::from([
            ("lastTransitionTime", Value::from(since)),
            ("message", message.into()),
            ("reason", reason.into()),
            ("status", status.into()),
            ("type", kind.into()),
        ]));
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    fn policy(spec: &str) -> StoredPolicy {
        let text = format!(
            "{{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {{name: p}}, spec: {{{spec}, \
             validations: [{{expression: object.spec.hostNetwork == false}}]}}}}"
        );
        StoredPolicy::new(parse_value(&text).unwrap())
    }

    const PODS: &str = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], \
                        resources: [pods]}]}";

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    /// `ready: TYPE=STATUS MESSAGE` of each condition.
    fn conditions(status: &Value) -> Vec<String> {
        let text = |condition: &Value, key| condition.str_at(&[key]).unwrap().to_owned();
        let listed = status.at(&["conditionStatus", "conditions"]).and_then(Value::as_array).unwrap();
        let mut lines = vec![status.at(&["conditionStatus", "ready"]).unwrap().to_json()];
        lines
            .extend(listed.iter().map(|c| format!("{}={} {}", text(c, "type"), text(c, "status"), text(c, "message"))));
        lines
    }

    #[test]
    fn conditions_say_what_holds_and_their_times_stay() {
        let sound = policy(PODS);
        let ready = Readiness::Ready { failing: None };
        let first = describe(&sound, &ready, Some(&Reporting::Ready), None, None, at("2026-11-21T10:00:00Z")).unwrap();
        assert_eq!(
            conditions(&first),
            [
                "true",
                "WebhookConfigured=True Webhook configured.",
                "RBACPermissionsGranted=True Policy is ready for reporting."
            ]
        );
        let later = at("2026-11-21T12:00:00Z");
        assert_eq!(describe(&sound, &ready, Some(&Reporting::Ready), None, Some(&first), later).as_ref(), Some(&first));

        let lacks = Reporting::Lacks(vec!["get /v1, Resource=pods: ".into(), "list /v1, Resource=pods: ".into()]);
        let after = describe(&sound, &ready, Some(&lacks), None, Some(&first), later).unwrap();
        assert_eq!(
            conditions(&after),
            [
                "false",
                "WebhookConfigured=True Webhook configured.",
                "RBACPermissionsGranted=False Policy is not ready for reporting, missing permissions: get /v1, \
                 Resource=pods: ; list /v1, Resource=pods: ."
            ]
        );
        let times: Vec<&str> = after
            .at(&["conditionStatus", "conditions"])
            .and_then(Value::as_array)
            .unwrap()
            .iter()
            .map(|condition| condition.str_at(&["lastTransitionTime"]).unwrap())
            .collect();
        assert_eq!(times, ["2026-11-21T10:00:00Z", "2026-11-21T12:00:00Z"]);
        assert_eq!(describe(&sound, &Readiness::Unknown, None, None, None, later), None);
    }

    #[test]
    fn what_is_not_asked_has_no_condition_and_what_is_wrong_is_said() {
        let now = at("2026-11-21T10:00:00Z");
        let scanned = policy(&format!("{PODS}, evaluation: {{admission: {{enabled: false}}}}"));
        let ready = Readiness::Ready { failing: None };
        let status = describe(&scanned, &ready, Some(&Reporting::Ready), None, None, now).unwrap();
        assert_eq!(conditions(&status), ["true", "RBACPermissionsGranted=True Policy is ready for reporting."]);

        let refused = policy("matchConstraints: {}");
        let status = describe(&refused, &Readiness::Failed("why".into()), None, None, None, now).unwrap();
        assert_eq!(conditions(&status), ["false", "PolicyCached=False why"]);
        let status = describe(&scanned, &Readiness::Failed("why".into()), None, None, None, now).unwrap();
        assert_eq!(
            conditions(&status),
            ["false", "WebhookConfigured=False Policy is not configured in the webhook. why"]
        );
    }

    #[test]
    fn forms_for_controllers_are_shown_with_their_targets() {
        let status =
            describe(&policy(PODS), &Readiness::Ready { failing: None }, None, None, None, Timestamp::UNIX_EPOCH);
        let configs = status.unwrap().at(&["autogen", "configs"]).cloned().unwrap();
        let expression = |config: &str| configs.at(&[config, "spec", "validations"]).unwrap().to_json();
        assert_eq!(expression("defaults"), r#"[{"expression":"object.spec.template.spec.hostNetwork == false"}]"#);
        assert_eq!(
            expression("cronjobs"),
            r#"[{"expression":"object.spec.jobTemplate.spec.template.spec.hostNetwork == false"}]"#
        );
        let targets = configs.at(&["defaults", "targets"]).and_then(Value::as_array).unwrap();
        let kinds: Vec<&str> = targets.iter().map(|target| target.str_at(&["kind"]).unwrap()).collect();
        assert_eq!(kinds, ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Job"]);
    }
}
