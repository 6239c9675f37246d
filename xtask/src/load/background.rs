//! What generated objects cost: both roles before a real API server.
//!
//! API calls are those that the processes count themselves (`kyverno_client_queries_total`): everything they ask from
//! before the first Namespace until nothing is left to do, leases, lists and watches included.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::process::{cpu, megabytes};
use super::test_env::{TestEnv, difference};
use crate::say;

const TEAM: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: team}
spec:
  rules:
  - name: deny-all
    match: &teams {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {team: '?*'}}}}]}
    generate: {synchronize: true, apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: deny-all,
      namespace: '{{ request.object.metadata.name }}', data: {spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}}
  - name: limits
    match: *teams
    generate: {synchronize: true, apiVersion: v1, kind: LimitRange, name: limits,
      namespace: '{{ request.object.metadata.name }}', data: {spec: {limits: [{type: Container, default: {memory: 256Mi},
        defaultRequest: {memory: 64Mi}}]}}}
  - name: viewers
    match: *teams
    generate: {synchronize: true, apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: viewers,
      namespace: '{{ request.object.metadata.name }}', data: {
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
        subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group,
          name: 'team-{{ request.object.metadata.labels.team }}'}]}}
";

const MIRROR: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: mirror}
spec:
  rules:
  - name: mirror
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [triggers], selector: {matchLabels: {mirror: 'yes'}}}}]}
    generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: 'of-{{ request.object.metadata.name }}',
      namespace: mirrors, data: {data: {k: '{{ request.object.data.k }}'}}}
";

const REQUESTS: &str = "/apis/kyverno.io/v2/namespaces/kyverno/updaterequests";

/// Many Namespaces at once, of which each gets three objects that are kept in step.
pub(super) fn namespaces(count: usize) -> Result<()> {
    let env = TestEnv::start(TEAM)?;
    let wanted = 3 * count;
    let made = |env: &TestEnv| -> Result<f64> {
        let changes = env.background.metrics("ephor_background_changes_total{")?;
        Ok(changes.iter().filter(|(series, _)| series.contains(r#"change="create""#)).map(|(_, n)| n).sum())
    };
    let kinds = [
        "/apis/networking.k8s.io/v1/networkpolicies",
        "/api/v1/limitranges",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    ];
    let stored = |env: &TestEnv| kinds.iter().map(|path| env.count(path)).sum::<Result<usize>>();
    let pid = env.background.pid();
    let (had, idle, spent) = (stored(&env)?, megabytes(pid, "VmRSS")?, cpu(pid)?);
    let before = (env.background.calls()?, env.admission.calls()?);
    let namespace = |number| {
        format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: load-{number}, labels: {{team: t{number}}}}}}}\n")
    };
    let documents: Vec<String> = (0..count).map(namespace).collect();
    let begun = Instant::now();
    for mut creator in env.create(&documents)? {
        ensure!(creator.wait()?.success(), "a Namespace could not be created");
    }
    let (creating, behind) = (begun.elapsed(), wanted as f64 - made(&env)?);
    let converged = env.until("convergence", |env| Ok(made(env)? >= wanted as f64))?;
    let found = stored(&env)? - had;
    ensure!(found == wanted, "{found} objects were made of {wanted}");
    let quiet = env.until("the last request goes", |env| Ok(env.count(REQUESTS)? == 0))?;
    sleep(Duration::from_secs(2));
    let after = (env.background.calls()?, env.admission.calls()?);
    let (background, own) = difference(&before.0, &after.0);
    let (admission, other) = difference(&before.1, &after.1);
    let per_object = |calls: f64| calls / wanted as f64;
    say(&format!(
        "{count} Namespaces in {:.1} s, {wanted} objects: the last one {:.1} s after the last Namespace ({behind} were \
         to be made then), the last UpdateRequest gone {:.1} s later",
        creating.as_secs_f64(),
        converged.as_secs_f64(),
        quiet.as_secs_f64(),
    ));
    say(&format!(
        "API calls for each object: {:.2} ({:.2} background, {:.2} admission)",
        per_object(own + other),
        per_object(own),
        per_object(other)
    ));
    say(&format!("background: {background}\nadmission: {admission}"));
    say(&format!(
        "background: {:.1} MB before, {:.1} MB after, {:.1} MB at most; {:.1} s of CPU",
        idle,
        megabytes(pid, "VmRSS")?,
        megabytes(pid, "VmHWM")?,
        cpu(pid)? - spent
    ));
    Ok(())
}

/// Many triggers; the background role is killed in the midst of them and comes back.
pub(super) fn crash(count: usize) -> Result<()> {
    let mut env = TestEnv::start(MIRROR)?;
    for namespace in ["triggers", "mirrors"] {
        env.plane.ask(&["create", "namespace", namespace])?;
    }
    // Every namespace has one ConfigMap of Kubernetes' own.
    env.until("the namespaces are set up", |env| Ok(mirrors(env)? == 1))?;
    let mut samples = Samples::default();
    let trigger = |number| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: t{number}, namespace: triggers, labels: {{mirror: \
             'yes'}}}}, data: {{k: v{number}}}}}\n"
        )
    };
    let documents: Vec<String> = (0..count).map(trigger).collect();
    let begun = Instant::now();
    let mut creators = env.create(&documents)?;
    while mirrors(&env)? <= count / 3 {
        samples.take(&env)?;
    }
    env.kill()?;
    let (killed, left) = (begun.elapsed(), mirrors(&env)? - 1);
    let down = Instant::now();
    while down.elapsed() < Duration::from_secs(10) {
        samples.take(&env)?;
    }
    env.restart()?;
    let restarted = Instant::now();
    for creator in &mut creators {
        while creator.try_wait()?.is_none() {
            samples.take(&env)?;
        }
        ensure!(creator.wait()?.success(), "a trigger could not be created");
    }
    let created = begun.elapsed();
    while mirrors(&env)? <= count {
        samples.take(&env)?;
    }
    let (converged, after_last) = (restarted.elapsed(), begun.elapsed().saturating_sub(created));
    while samples.take(&env)? > 0 {}
    ensure!(mirrors(&env)? == count + 1, "something was made twice");
    let pid = env.background.pid();
    say(&format!(
        "{count} triggers in {:.1} s; killed after {:.1} s with {left} objects made, restarted 10 s later; all were there \
         {:.1} s after the restart and {:.1} s after the last trigger",
        created.as_secs_f64(),
        killed.as_secs_f64(),
        converged.as_secs_f64(),
        after_last.as_secs_f64(),
    ));
    say(&format!(
        "{} samples: at most {} UpdateRequests, at most {} for one policy and trigger, none in the end",
        samples.count, samples.most, samples.most_for_one
    ));
    say(&format!("background: {:.1} MB after, {:.1} MB at most", megabytes(pid, "VmRSS")?, megabytes(pid, "VmHWM")?));
    ensure!(samples.most_for_one <= 1, "several requests for one policy and trigger");
    Ok(())
}

fn mirrors(env: &TestEnv) -> Result<usize> {
    env.count("/api/v1/namespaces/mirrors/configmaps")
}

/// Looks at the requests there are.
#[derive(Debug, Default)]
struct Samples {
    count: usize,
    most: usize,
    most_for_one: usize,
}

impl Samples {
    /// Looks once more; how many there are.
    fn take(&mut self, env: &TestEnv) -> Result<usize> {
        let path = "jsonpath={range .items[*]}{.spec.policy} {.spec.ruleContext[*].trigger.uid}{\"\\n\"}{end}";
        let text = env.plane.ask(&["get", "updaterequests", "-n", "kyverno", "-o", path])?;
        let mut by_work: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            *by_work.entry(line).or_default() += 1;
        }
        let there: usize = by_work.values().sum();
        self.count += 1;
        self.most = self.most.max(there);
        self.most_for_one = self.most_for_one.max(by_work.values().copied().max().unwrap_or(0));
        Ok(there)
    }
}
