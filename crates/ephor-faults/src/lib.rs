//! A cluster with faults, for tests: writes that are lost, writers that die between two writes, writers that interfere.

use std::sync::Arc;

use ephor_cluster::raw::{self, Method, RawRequest};
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, List, ListQuery, Patch, PatchKind, Resource, Watch,
    WatchQuery, WriteOptions,
};
use ephor_expr::Value;
use parking_lot::{Mutex, MutexGuard};

/// Where a writer dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// Before its write of that number (the first is 0) reaches the cluster.
    Before(usize),
    /// After that write is done, before the writer learns of it.
    After(usize),
}

/// One write, as hooks see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// `create`, `update`, `patch` or `delete`.
    pub verb: &'static str,
    /// The kind of the object.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether it is refused, or changes nothing, if the object is another one by then.
    pub bound: bool,
}

type ReviewHook = Box<dyn Fn(&Value) -> bool + Send>;
type CallHook = Box<dyn FnMut() -> Option<ClusterError> + Send>;
type WatchHook = Box<dyn FnMut() -> Box<dyn Watch> + Send>;
type ListHook = Box<dyn FnMut(&mut List) + Send>;
type Hook = Box<dyn FnMut(&Write) -> Option<ClusterError> + Send>;

/// A view of a cluster whose writes can fail. Several views of one cluster are several processes.
pub struct FaultyCluster {
    inner: Arc<dyn Cluster>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    death: Option<Death>,
    dead: bool,
    writes: Vec<Write>,
    hook: Option<Hook>,
    after: Option<Hook>,
    every_call: Option<CallHook>,
    interrupt: Option<CallHook>,
    allows: Option<ReviewHook>,
    lists: usize,
    after_lists: Option<ListHook>,
    every_watch: Option<CallHook>,
    watches: Option<WatchHook>,
    late: Option<Late>,
}

/// A kind that is defined and not served yet.
struct Late {
    group: &'static str,
    plural: &'static str,
    /// How often it is asked for in vain.
    asked: usize,
}

impl FaultyCluster {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A view without faults.
    pub fn new(inner: Arc<dyn Cluster>) -> Self {
        Self { inner, state: Mutex::default() }
    }

    /// A view whose user dies there: nothing gets through any more.
    pub fn dying(inner: Arc<dyn Cluster>, death: Death) -> Self {
        let view = Self::new(inner);
        view.state().death = Some(death);
        view
    }

    /// Calls `hook` before each write; an error that it gives is the answer instead.
    #[must_use]
    pub fn before_writes(self, hook: impl FnMut(&Write) -> Option<ClusterError> + Send + 'static) -> Self {
        self.state().hook = Some(Box::new(hook));
        self
    }

    /// Calls `hook` after each write that was done; an error that it gives is the answer instead.
    #[must_use]
    pub fn after_writes(self, hook: impl FnMut(&Write) -> Option<ClusterError> + Send + 'static) -> Self {
        self.state().after = Some(Box::new(hook));
        self
    }

    /// Calls `hook` before each call, reads included; an error that it gives is the answer instead.
    #[must_use]
    pub fn before_calls(self, hook: impl FnMut() -> Option<ClusterError> + Send + 'static) -> Self {
        self.state().every_call = Some(Box::new(hook));
        self
    }

    /// The same for a hook that makes calls itself. No hook comes before those.
    #[must_use]
    pub fn interrupted(self, hook: impl FnMut() -> Option<ClusterError> + Send + 'static) -> Self {
        self.state().interrupt = Some(Box::new(hook));
        self
    }

    /// Answers each `SubjectAccessReview` by `allows`.
    #[must_use]
    pub fn with_rights(self, allows: impl Fn(&Value) -> bool + Send + 'static) -> Self {
        self.state().allows = Some(Box::new(allows));
        self
    }

    /// Has `hook` change each list.
    #[must_use]
    pub fn changing_lists(self, hook: impl FnMut(&mut List) + Send + 'static) -> Self {
        self.state().after_lists = Some(Box::new(hook));
        self
    }

    /// Calls `hook` before each watch is opened; an error that it gives is the answer instead.
    #[must_use]
    pub fn before_watches(self, hook: impl FnMut() -> Option<ClusterError> + Send + 'static) -> Self {
        self.state().every_watch = Some(Box::new(hook));
        self
    }

    /// Answers each watch with one made here.
    #[must_use]
    pub fn with_watches(self, make: impl FnMut() -> Box<dyn Watch> + Send + 'static) -> Self {
        self.state().watches = Some(Box::new(make));
        self
    }

    /// Serves a kind only after it was asked for that often, whatever is defined.
    #[must_use]
    pub fn serving_late(self, group: &'static str, plural: &'static str, asked: usize) -> Self {
        self.state().late = Some(Late { group, plural, asked });
        self
    }

    /// How often objects were listed.
    pub fn lists(&self) -> usize {
        self.state().lists
    }

    /// Whether the user has died.
    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// The writes that were begun, dry runs left out.
    pub fn writes(&self) -> Vec<Write> {
        self.state().writes.clone()
    }

    fn alive(&self) -> Result<(), ClusterError> {
        let interrupt = {
            let mut state = self.state();
            if state.dead {
                return Err(died());
            }
            if let Some(error) = state.every_call.as_mut().and_then(|hook| hook()) {
                return Err(error);
            }
            state.interrupt.take()
        };
        let Some(mut interrupt) = interrupt else { return Ok(()) };
        let answer = interrupt();
        self.state().interrupt = Some(interrupt);
        answer.map_or(Ok(()), Err)
    }

    fn write<T>(
        &self,
        verb: &'static str,
        resource: &Resource,
        name: &str,
        bound: bool,
        dry_run: bool,
        act: impl FnOnce() -> Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        self.alive()?;
        if dry_run {
            return act();
        }
        let write = Write { verb, kind: resource.kind.to_string(), name: name.to_owned(), bound };
        let (number, death, hook) = {
            let mut state = self.state();
            state.writes.push(write.clone());
            (state.writes.len() - 1, state.death, state.hook.take())
        };
        if death == Some(Death::Before(number)) {
            self.state().dead = true;
            return Err(died());
        }
        // Not under the lock: the hook may write by another view, or look at this one.
        if let Some(mut hook) = hook {
            let answer = hook(&write);
            self.state().hook = Some(hook);
            if let Some(error) = answer {
                return Err(error);
            }
        }
        let answer = act();
        if death == Some(Death::After(number)) {
            self.state().dead = true;
            return Err(died());
        }
        let hook = self.state().after.take();
        if let Some(mut hook) = hook {
            let lost = hook(&write);
            self.state().after = Some(hook);
            if let Some(error) = lost.filter(|_| answer.is_ok()) {
                return Err(error);
            }
        }
        answer
    }
}

fn died() -> ClusterError {
    ClusterError::unreachable("this process is dead")
}

fn name_of(object: &Value) -> String {
    object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned()
}

fn is_bound(object: &Value) -> bool {
    ["resourceVersion", "uid"].iter().any(|key| object.str_at(&["metadata", key]).is_some_and(|text| !text.is_empty()))
}

impl Cluster for FaultyCluster {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.alive()?;
        let known = self.inner.discovery()?;
        match self.state().late.as_ref().filter(|late| late.asked > 0) {
            Some(late) => {
                let mut known = (*known).clone();
                known.remove(late.group, late.plural);
                Ok(Arc::new(known))
            }
            None => Ok(known),
        }
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.alive()?;
        let found = self.inner.resolve(api_version, kind)?;
        if let Some(late) = &mut self.state().late
            && (found.group.as_str(), found.plural.as_str()) == (late.group, late.plural)
            && late.asked > 0
        {
            late.asked -= 1;
            return Err(ClusterError::no_such_kind(api_version, kind));
        }
        Ok(found)
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        self.alive()?;
        self.inner.get(resource, namespace, name)
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.alive()?;
        self.state().lists += 1;
        let mut list = self.inner.list(resource, query)?;
        if let Some(hook) = &mut self.state().after_lists {
            hook(&mut list);
        }
        Ok(list)
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        if resource.kind == "SubjectAccessReview" {
            // A question, which changes nothing.
            self.alive()?;
            let denied = self.state().allows.as_ref().is_some_and(|allows| !allows(&object));
            let mut answer = self.inner.create(resource, object, options)?;
            if let Some(status) = answer.as_object_mut().and_then(|members| members.get_mut("status")) {
                *status = Value::from([("allowed", Value::Bool(!denied))]);
            }
            return Ok(answer);
        }
        let name = name_of(&object);
        // What exists under that name refuses it.
        self.write("create", resource, &name, true, options.dry_run, || self.inner.create(resource, object, options))
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let (name, bound) = (name_of(&object), is_bound(&object));
        self.write("update", resource, &name, bound, options.dry_run, || self.inner.update(resource, object, options))
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let act = || self.inner.patch(resource, namespace, name, patch, options);
        // Without force, an applied object takes nothing from anybody.
        let bound = is_bound(&patch.document) || patch.kind == PatchKind::Apply && !options.force;
        self.write("patch", resource, name, bound, options.dry_run, act)
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        let act = || self.inner.delete(resource, namespace, name, options);
        let bound = !options.uid.is_empty() || !options.resource_version.is_empty();
        self.write("delete", resource, name, bound, options.dry_run, act)
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        self.alive()?;
        let failed = self.state().every_watch.as_mut().and_then(|hook| hook());
        if let Some(error) = failed {
            return Err(error);
        }
        let made = self.state().watches.as_mut().map(|make| make());
        made.map_or_else(|| self.inner.watch(resource, query), Ok)
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        let act = || self.inner.raw(request);
        let discovery = self.inner.discovery()?;
        let path = request.path.split('?').next().unwrap_or_default();
        let target = raw::target(&discovery, path).filter(|_| request.method == Method::Put);
        let Some(target) = target else {
            self.alive()?;
            return act();
        };
        let (name, bound) = (target.name.unwrap_or_default(), request.body.as_ref().is_some_and(is_bound));
        self.write("update", &target.resource, &name, bound, request.dry_run, act)
    }
}
