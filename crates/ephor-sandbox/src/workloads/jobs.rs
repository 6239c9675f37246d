//! Jobs: their Pods run and succeed.

use ephor_cluster::object;
use ephor_expr::{Str, Value};

use super::replicas::{create, pod};
use super::write::{Backoff, Controller, condition, count, now, number};

/// Brings all Jobs in step. A Job that is suspended waits.
pub(super) fn reconcile(controller: &Controller, backoff: &mut Backoff) {
    for job in controller.list("batch/v1", "Job") {
        let suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
        if object::is_deleting(&job) || suspended || job.at(&["status", "completionTime"]).is_some() {
            continue;
        }
        let parallel = number(&job, &["spec", "parallelism"], 1);
        let wanted = usize::try_from(number(&job, &["spec", "completions"], parallel)).unwrap_or_default();
        let pods = controller.controlled("v1", "Pod", &job);
        let template = job.at(&["spec", "template"]).cloned().unwrap_or_default();
        let missing = (pods.len()..wanted)
            .map(|_| pod(&job, &template, ("generateName", Value::from(format!("{}-", object::name(&job)))), None));
        create(controller, backoff, &job, missing);
        let succeeded = pods.iter().filter(|pod| pod.str_at(&["status", "phase"]) == Some("Succeeded")).count();
        let begun = job.at(&["status", "startTime"]).cloned().unwrap_or_else(now);
        let mut status = vec![("startTime", begun)];
        if succeeded >= wanted {
            let conditions = ["SuccessCriteriaMet", "Complete"]
                .map(|name| condition(&job, name, "CompletionsReached", "Reached expected number of succeeded pods"));
            status.extend([
                ("active", Value::Null),
                ("completionTime", now()),
                ("conditions", Value::array(conditions.to_vec())),
                ("succeeded", count(succeeded)),
                ("ready", Value::Int(0)),
            ]);
        } else {
            status.push(("active", count(pods.len() - succeeded)));
        }
        controller.set_status(
            &job,
            Value::object(status.into_iter().map(|(key, value)| (Str::new_static(key), value)).collect()),
        );
    }
}
