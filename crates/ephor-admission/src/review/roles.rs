//! Which roles a user has: `RoleBinding`s and `ClusterRoleBinding`s, trimmed to what that needs.
//!
//! Upstream's rules: roles are `namespace:name`; cluster roles come from `ClusterRoleBinding`s, and
//! from `RoleBinding`s of the request's namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_engine::matching::UserInfo;
use ephor_expr::{Str, Value};
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// The bindings of a cluster. Clones are the same mirror.
#[derive(Debug, Clone, Default)]
pub struct Roles(Arc<RwLock<Index>>);

#[derive(Debug, Default)]
struct Index {
    /// Bindings by namespace (empty for cluster-wide ones) and name.
    bindings: BTreeMap<(Str, Str), Arc<Binding>>,
    users: FxHashMap<Str, Vec<Arc<Binding>>>,
    groups: FxHashMap<Str, Vec<Arc<Binding>>>,
}

#[derive(Debug, PartialEq)]
struct Binding {
    namespace: Str,
    role: RoleRef,
    users: Vec<Str>,
    groups: Vec<Str>,
}

#[derive(Debug, PartialEq)]
enum RoleRef {
    /// `namespace:name`.
    Role(Str),
    ClusterRole(Str),
}

impl Roles {
    /// Follows the bindings of a cluster until `stop`.
    pub fn follow(cluster: &Arc<dyn Cluster>, stop: &CancellationToken) -> (Self, Vec<Watcher>) {
        let roles = Self::default();
        let watchers = [true, false].map(|namespaced| {
            let kind = if namespaced { "RoleBinding" } else { "ClusterRoleBinding" };
            let watched = WatchTarget::all("rbac.authorization.k8s.io/v1", kind);
            let mirror = roles.clone();
            Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| mirror.apply(namespaced, change))
        });
        (roles, watchers.into())
    }

    /// Takes in a change of `RoleBinding`s (`namespaced`) or of `ClusterRoleBinding`s.
    pub fn apply(&self, namespaced: bool, change: StoreEvent) {
        // Everything is read before the lock is taken: a rule must not see a user who lost roles half-way.
        let read = |object: &Value| Some((key(object), Arc::new(Binding::of(object)?)));
        let index = || self.0.write();
        match change {
            StoreEvent::Reset(objects) => {
                let listed: Vec<_> = objects.iter().filter_map(read).collect();
                let mut index = index();
                let mut next = Index::default();
                let others = index.bindings.iter().filter(|((namespace, _), _)| namespace.is_empty() == namespaced);
                next.bindings = others.map(|(key, binding)| (key.clone(), Arc::clone(binding))).chain(listed).collect();
                next.rebuild();
                *index = next;
            }
            StoreEvent::Apply(object) => {
                let (key, binding) = (key(&object), read(&object));
                let mut index = index();
                index.remove(&key);
                if let Some((key, binding)) = binding {
                    index.add(key, binding);
                }
            }
            StoreEvent::Delete(object) => index().remove(&key(&object)),
        }
    }

    /// Adds to `user` the roles that it has in a request about `namespace`.
    pub fn fill(&self, user: &mut UserInfo, namespace: &str) {
        let index = self.0.read();
        let by_group = user.groups.iter().filter_map(|group| index.groups.get(group)).flatten();
        let found = index.users.get(&user.username).into_iter().flatten().chain(by_group);
        let (mut roles, mut cluster_roles) = (Vec::new(), Vec::new());
        for binding in found {
            match &binding.role {
                RoleRef::Role(name) => roles.push(name.clone()),
                RoleRef::ClusterRole(name) if binding.namespace.is_empty() || binding.namespace == namespace => {
                    cluster_roles.push(name.clone());
                }
                RoleRef::ClusterRole(_) => {}
            }
        }
        for names in [&mut roles, &mut cluster_roles] {
            names.sort_unstable();
            names.dedup();
        }
        (user.roles, user.cluster_roles) = (roles, cluster_roles);
    }
}

fn key(object: &Value) -> (Str, Str) {
    let text = |name| Str::new(object.str_at(&["metadata", name]).unwrap_or_default());
    (text("namespace"), text("name"))
}

impl Binding {
    fn of(object: &Value) -> Option<Self> {
        let (namespace, _) = key(object);
        let name = object.str_at(&["roleRef", "name"])?;
        let role = match object.str_at(&["roleRef", "kind"])? {
            "Role" => RoleRef::Role(format!("{namespace}:{name}").into()),
            "ClusterRole" => RoleRef::ClusterRole(name.into()),
            _ => return None,
        };
        let mut binding = Self { namespace, role, users: Vec::new(), groups: Vec::new() };
        for subject in object.get("subjects").and_then(Value::as_array).unwrap_or_default() {
            let Some(name) = subject.str_at(&["name"]) else { continue };
            match subject.str_at(&["kind"]) {
                Some("User") => binding.users.push(name.into()),
                Some("Group") => binding.groups.push(name.into()),
                Some("ServiceAccount") => {
                    let own = subject.str_at(&["namespace"]).filter(|own| !own.is_empty());
                    let namespace = own.unwrap_or(&binding.namespace);
                    binding.users.push(format!("system:serviceaccount:{namespace}:{name}").into());
                }
                _ => {}
            }
        }
        Some(binding)
    }
}

impl Index {
    fn add(&mut self, key: (Str, Str), binding: Arc<Binding>) {
        self.list(&binding);
        self.bindings.insert(key, binding);
    }

    fn list(&mut self, binding: &Arc<Binding>) {
        for (index, names) in [(&mut self.users, &binding.users), (&mut self.groups, &binding.groups)] {
            for name in names {
                index.entry(name.clone()).or_default().push(Arc::clone(binding));
            }
        }
    }

    fn remove(&mut self, key: &(Str, Str)) {
        let Some(binding) = self.bindings.remove(key) else { return };
        for (index, names) in [(&mut self.users, &binding.users), (&mut self.groups, &binding.groups)] {
            for name in names {
                if let Some(list) = index.get_mut(name) {
                    list.retain(|other| !Arc::ptr_eq(other, &binding));
                    if list.is_empty() {
                        index.remove(name);
                    }
                }
            }
        }
    }

    fn rebuild(&mut self) {
        self.users.clear();
        self.groups.clear();
        let bindings: Vec<_> = self.bindings.values().cloned().collect();
        for binding in &bindings {
            self.list(binding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}"}},
                "roleRef":{{"kind":"{}","name":"{}"}},"subjects":{subjects}}}"#,
            role.0, role.1
        );
        Value::from_json(&text).unwrap()
    }

    fn roles_of(roles: &Roles, username: &str, groups: &[&str], namespace: &str) -> (Vec<Str>, Vec<Str>) {
        let groups = groups.iter().map(Str::new).collect();
        let mut user = UserInfo { username: username.into(), groups, ..UserInfo::default() };
        roles.fill(&mut user, namespace);
        (user.roles, user.cluster_roles)
    }

    #[test]
    fn users_have_the_roles_bound_to_them_and_to_their_groups() {
        let roles = Roles::default();
        let alice = r#"[{"kind":"User","name":"alice"}]"#;
        roles.apply(
            true,
            StoreEvent::Reset(vec![
                binding("a", "own", ("Role", "reader"), alice),
                binding("a", "edit", ("ClusterRole", "edit"), r#"[{"kind":"Group","name":"dev"}]"#),
                binding("a", "robot", ("Role", "robot"), r#"[{"kind":"ServiceAccount","name":"r"}]"#),
            ]),
        );
        roles.apply(false, StoreEvent::Reset(vec![binding("", "all", ("ClusterRole", "view"), alice)]));
        let list = |names: &[&str]| names.iter().map(Str::new).collect::<Vec<_>>();
        for (user, groups, namespace, own, cluster) in [
            ("alice", &["dev"][..], "a", &["a:reader"][..], &["edit", "view"][..]),
            ("alice", &["dev"], "b", &["a:reader"], &["view"]),
            ("system:serviceaccount:a:r", &[], "", &["a:robot"], &[]),
            ("bob", &[], "a", &[], &[]),
        ] {
            assert_eq!(roles_of(&roles, user, groups, namespace), (list(own), list(cluster)), "{user} in {namespace}");
        }

        roles.apply(false, StoreEvent::Apply(binding("", "all", ("ClusterRole", "admin"), alice)));
        roles.apply(true, StoreEvent::Delete(binding("a", "own", ("Role", "reader"), "[]")));
        assert_eq!(roles_of(&roles, "alice", &[], "a"), (list(&[]), list(&["admin"])));
        roles.apply(false, StoreEvent::Reset(Vec::new()));
        assert_eq!(roles_of(&roles, "alice", &["dev"], "a"), (list(&[]), list(&["edit"])));
    }
}
