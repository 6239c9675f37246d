//! Runs the controller on the overlay until its queue is empty.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, ClusterError, ErrorKind, LabelSelector};
use ephor_expr::{Str, Value};
use ephor_runtime::config::ConfigStore;
use ephor_runtime::facts::ClusterFacts;
use ephor_runtime::globalcontext::GlobalContext;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::{ExceptionScope, PolicyId, PolicyStore, StoredKind};
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::StoreEvent;

use super::admission_requests::Event;
use super::overlay::OverlayCluster;
use super::recording::Recording;
use super::{Failed, Planned, Preview, Proposal, Scope, Settings};
use crate::controller::{Controller, Step};
use crate::plan::ObjectId;
use crate::plan::claim::{MANAGED_BY, POLICY_NAME};
use crate::state::Subject;
use crate::trigger::TriggerRef;
use crate::writer::{Env, Note};

/// How long the controller may wait for something, in its own time: one thing waits for another, but nothing that
/// fails gets better by itself.
const MAX_DELAY: Moment = 5_000;
/// A plan with more steps than this fails: its policies trigger each other without end.
const MAX_STEPS: usize = 1_000_000;

const GLOBAL: &str = "GlobalContextEntry";

/// What the background controller would do in a cluster, if what is proposed happened, and the cluster as it would be
/// then.
pub fn preview(
    cluster: &Arc<dyn Cluster>,
    proposal: &Proposal,
    now: jiff::Timestamp,
) -> Result<(Preview, Arc<dyn Cluster>), ClusterError> {
    let mut run = Run::new(cluster, proposal, now)?;
    run.settle();
    // What goes with its policy was made of what that has read.
    run.learn_secrets(&[]);
    let mut events = Vec::new();
    for object in &proposal.applied {
        let (before, after) = run.overlay.put(object)?;
        events.push(Event { before: before.unwrap_or_default(), after });
    }
    for object in &proposal.deleted {
        if let Some(before) = run.overlay.take(object)? {
            events.push(Event { before, after: Value::Null });
        }
    }
    run.former = events.iter().map(|event| (ObjectId::of(event.subject()), event.before.clone())).collect();
    let (policies, objects): (Vec<Event>, Vec<Event>) =
        events.into_iter().partition(|event| StoredKind::of(event.subject()).is_some());
    for policy in &policies {
        run.follow_policy(policy);
    }
    for entry in objects.iter().filter(|event| is_global(event.subject())) {
        run.global.apply(entry.change());
    }
    run.read_settings();
    run.controller.observe_policies(run.store.snapshot(), run.now);
    run.feed();
    for object in &objects {
        run.ask(object);
    }
    run.settle();
    let after: Arc<dyn Cluster> = Arc::<OverlayCluster>::clone(&run.overlay);
    Ok((run.result(), after))
}

fn is_global(object: &Value) -> bool {
    let version = object.str_at(&["apiVersion"]).unwrap_or_default();
    version.starts_with("kyverno.io/") && object.str_at(&["kind"]) == Some(GLOBAL)
}

struct Run {
    overlay: Arc<OverlayCluster>,
    controller: Controller,
    store: PolicyStore,
    global: GlobalContext,
    config: ConfigStore,
    settings: Settings,
    recording: Recording,
    now: Moment,
    /// Kinds that were listed, and whether all of their objects were.
    fed: BTreeMap<GroupKind, bool>,
    unseen: BTreeSet<String>,
    /// Proposed objects that no policy sees.
    hidden: BTreeSet<String>,
    /// What is proposed, as it was before.
    former: BTreeMap<ObjectId, Value>,
    /// What requests are about.
    requests: BTreeMap<Str, String>,
    proposed: Option<BTreeSet<PolicyId>>,
}

impl Run {
    fn new(cluster: &Arc<dyn Cluster>, proposal: &Proposal, now: jiff::Timestamp) -> Result<Self, ClusterError> {
        let overlay = Arc::new(OverlayCluster::new(Arc::clone(cluster), proposal.namespaces, now));
        let seen: Arc<dyn Cluster> = Arc::<OverlayCluster>::clone(&overlay);
        let recording = Recording::default();
        let settings = proposal.settings.clone();
        let config = ConfigStore::new(&settings.namespace, &settings.name);
        let global = GlobalContext::on_demand(&seen);
        let facts = ClusterFacts::new(Arc::clone(&seen)).within(config.clone()).with(Arc::new(global.clone()));
        let controller = Controller::new(Env::new(
            seen,
            Arc::new(|| Ok(())),
            recording.answers(facts),
            settings.namespace.clone(),
            recording.observer(),
            Metrics::default(),
        ));
        let moment = u64::try_from(now.as_millisecond()).unwrap_or_default();
        controller.observe_discovery(cluster.discovery()?, moment);
        let store = PolicyStore::new(ExceptionScope::Everywhere);
        let stored = |api_version: &str, kind: &str| {
            let listed =
                ephor_runtime::watcher::list(&**cluster, &overlay.resolve(api_version, kind)?, &Filter::default());
            match listed {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
                listed => listed.map(|(documents, _)| documents),
            }
        };
        for (api_version, kind) in StoredKind::all() {
            store.apply(kind, StoreEvent::Reset(stored(api_version, kind.as_str())?));
        }
        let mut unseen = BTreeSet::new();
        match stored("kyverno.io/v2", GLOBAL) {
            Ok(entries) => global.apply(StoreEvent::Reset(entries)),
            Err(error) => {
                unseen.insert(format!("{GLOBAL}: {error}"));
            }
        }
        controller.observe_policies(store.snapshot(), moment);
        controller.sweep(moment);
        let proposed = proposal.applied.iter().chain(&proposal.deleted);
        let proposed = proposed.filter(|object| StoredKind::of(object).is_some()).map(PolicyId::of).collect();
        let mut run = Self {
            overlay,
            controller,
            store,
            global,
            config,
            settings,
            recording,
            now: moment,
            fed: BTreeMap::new(),
            unseen,
            hidden: BTreeSet::new(),
            former: BTreeMap::new(),
            requests: BTreeMap::new(),
            proposed: (proposal.scope == Scope::Proposed).then_some(proposed),
        };
        run.read_settings();
        Ok(run)
    }

    /// Takes in the settings as they are now.
    fn read_settings(&mut self) {
        let Settings { namespace, name } = &self.settings;
        match ephor_runtime::facts::get(&*self.overlay, "v1", "ConfigMap", namespace, name) {
            Ok(settings) => self.config.apply(StoreEvent::Reset(vec![settings])),
            Err(error) if error.kind() == ErrorKind::NotFound => self.config.apply(StoreEvent::Reset(Vec::new())),
            Err(error) => {
                self.unseen.insert(format!("the settings in ConfigMap {namespace}/{name}: {error}"));
            }
        }
        self.controller.observe_filters(&self.config.get().resource_filters, self.now);
    }

    fn in_scope(&self, policy: &PolicyId) -> bool {
        self.proposed.as_ref().is_none_or(|proposed| proposed.contains(policy))
    }

    fn follow_policy(&self, event: &Event) {
        let Some(kind) = StoredKind::of(event.subject()) else { return };
        self.store.apply(kind, event.change());
    }

    /// Lets the controller work until there is nothing to do soon.
    fn settle(&mut self) {
        let end = self.now + MAX_DELAY;
        for _ in 0..MAX_STEPS {
            self.feed();
            match self.controller.step(self.now) {
                Step::Worked => {}
                Step::Idle(Some(due)) if due <= end => self.now = due.max(self.now + 1),
                Step::Idle(_) => return,
            }
        }
        tracing::warn!("the plan is cut short: it has no end");
    }

    /// Tells the controller what there is of the kinds that it follows, and what it has written itself.
    fn feed(&mut self) {
        for (kind, watch) in self.controller.watches() {
            if self.fed.get(&kind).is_some_and(|wide| *wide || !watch.wide) {
                continue;
            }
            self.fed.insert(kind.clone(), watch.wide);
            let labels = LabelSelector::one_of(MANAGED_BY, ["kyverno"]).and(LabelSelector::has(POLICY_NAME));
            let labels = if watch.wide { LabelSelector::default() } else { labels };
            let filter = Filter { labels, ..Filter::default() };
            let listed = self
                .overlay
                .resolve(&watch.api_version, &watch.kind)
                .and_then(|resource| ephor_runtime::watcher::list(&*self.overlay, &resource, &filter));
            match listed {
                Ok((objects, _)) => self.controller.observe(&kind, watch.wide, StoreEvent::Reset(objects), self.now),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    self.unseen.insert(format!("{}: {error}", watch.kind));
                }
            }
        }
        for (kind, change) in self.overlay.take_events() {
            self.global.tell(&kind.group, &kind.kind, &change);
            if let Some(wide) = self.fed.get(&kind) {
                self.controller.observe(&kind, *wide, change, self.now);
            }
        }
    }

    /// Hands over what admission would.
    fn ask(&mut self, event: &Event) {
        if event.is_hidden(&self.config.get()) {
            self.hidden.insert(ObjectId::of(event.subject()).to_string());
            return;
        }
        let mut infos: Vec<_> = self.controller.state().infos.values().cloned().collect();
        infos.retain(|info| self.in_scope(&info.key));
        for info in &infos {
            for mut request in event.requests(info) {
                let name = Str::from(format!("planned-{}", self.requests.len()));
                request.metadata.name.clone_from(&name);
                request.metadata.uid.clone_from(&name);
                self.requests.insert(name, ObjectId::of(event.subject()).to_string());
                if let Ok(request) = request.to_value() {
                    self.controller.observe_requests(StoreEvent::Apply(request), self.now);
                }
            }
        }
    }

    /// Takes in the Secrets that rules have asked for, and those of `triggers`, as they are and as they were.
    fn learn_secrets(&self, triggers: &[TriggerRef]) {
        let triggers = triggers.iter().filter(|trigger| trigger.kind == "Secret");
        let triggers = triggers.map(|trigger| (trigger.namespace.clone(), trigger.name.clone()));
        let Ok(resource) = self.overlay.resolve("v1", "Secret") else { return };
        for (namespace, name) in self.recording.asked_secrets().into_iter().chain(triggers) {
            let id = ObjectId::new("v1", "Secret", &namespace, &name);
            let current = self.overlay.current(&resource, &id).ok().flatten();
            let secrets = current.into_iter().chain(self.former.get(&id).cloned());
            self.recording.learn(&Value::array(secrets.collect()));
        }
    }

    fn result(self) -> Preview {
        let notes = self.recording.notes();
        let mut changes: Vec<Planned> = Vec::new();
        let mut triggers = Vec::new();
        for note in notes {
            let Note::Changed { policy, rule, trigger, change, object, .. } = note else { continue };
            // After a restart, the controller repeats its last write, which changes nothing.
            let Some(change) = change.as_stored(&object) else { continue };
            if self.in_scope(&policy) {
                let about = trigger.as_ref().map(in_words).unwrap_or_default();
                triggers.extend(trigger);
                changes.push(Planned { policy, rule, trigger: about, change });
            }
        }
        self.learn_secrets(&triggers);
        let secrets = self.recording.secrets();
        let state = self.controller.state();
        let mut failures: BTreeMap<(PolicyId, String), String> = BTreeMap::new();
        for (policy, failed) in state.failures.iter().filter(|(policy, _)| self.in_scope(policy)) {
            for (about, why) in failed {
                let known = match about {
                    Subject::Trigger(uid) => {
                        state.index.with_uid(state.index.kinds(), uid).map(|seen| seen.id.to_string())
                    }
                    Subject::Request(name) => self.requests.get(name.as_str()).cloned(),
                    _ => None,
                };
                let what = known.unwrap_or_else(|| about.to_string());
                // The same failure is known of a trigger and of the request about it.
                failures.insert((policy.clone(), what), secrets.text(why).into_owned());
            }
        }
        let failures = failures.into_iter().map(|((policy, what), why)| Failed { policy, what, why });
        Preview {
            changes,
            failures: failures.collect(),
            unseen: self.unseen.iter().cloned().collect(),
            hidden: self.hidden.iter().cloned().collect(),
            filters: self.config.get().resource_filters.clone(),
            secrets,
        }
    }
}

fn in_words(trigger: &TriggerRef) -> String {
    trigger.id().to_string()
}
