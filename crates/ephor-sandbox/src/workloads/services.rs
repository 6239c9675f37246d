//! Services: a cluster IP, an address of the load balancer, and Endpoints of the Pods that they select.

use ephor_cluster::object;
use ephor_cluster::write::Part;
use ephor_expr::{Map, Str, Value};

use super::pods::{address, is_ready};
use super::write::Controller;

/// Brings all Services in step.
pub(super) fn reconcile(controller: &Controller) {
    let pods = controller.list("v1", "Pod");
    let endpoints = controller.list("v1", "Endpoints");
    for service in controller.list("v1", "Service") {
        let kind = service.str_at(&["spec", "type"]).unwrap_or("ClusterIP");
        if object::is_deleting(&service) || kind == "ExternalName" {
            continue;
        }
        if service.str_at(&["spec", "clusterIP"]).is_none_or(str::is_empty) {
            let ip = address(object::text(&service, "uid"), 10, 96);
            let ips = Value::array(vec![Value::from(ip.as_str())]);
            controller.set_spec(&service, Value::from([("clusterIP", Value::from(ip)), ("clusterIPs", ips)]));
        }
        if kind == "LoadBalancer" && service.at(&["status", "loadBalancer", "ingress"]).is_none() {
            let ip = Value::from([("ip", Value::from(address(object::text(&service, "uid"), 198, 18)))]);
            let ingress = Value::from([("ingress", Value::array(vec![ip]))]);
            controller.set_status(&service, Value::from([("loadBalancer", ingress)]));
        }
        let Some(selector) = service.at(&["spec", "selector"]).and_then(Value::as_object).filter(|s| !s.is_empty())
        else {
            continue;
        };
        let selected =
            |pod: &&Value| object::namespace(pod) == object::namespace(&service) && is_ready(pod) && has(pod, selector);
        let subsets = subsets(&service, &pods.iter().filter(selected).collect::<Vec<_>>());
        let same = |found: &&Value| {
            object::name(found) == object::name(&service) && object::namespace(found) == object::namespace(&service)
        };
        if let Some(present) = endpoints.iter().find(same) {
            controller.merge(present, "subsets", subsets, Part::Object);
            continue;
        }
        let metadata = Value::from([
            ("name", Value::from(object::name(&service))),
            ("namespace", Value::from(object::namespace(&service))),
        ]);
        let wanted = Value::from([
            ("apiVersion", Value::from("v1")),
            ("kind", Value::from("Endpoints")),
            ("metadata", metadata),
            ("subsets", subsets),
        ]);
        if let Err(error) = controller.create(wanted) {
            tracing::debug!(%error, "a Service stays without Endpoints");
        }
    }
}

fn has(pod: &Value, selector: &Map) -> bool {
    selector.iter().all(|(key, value)| pod.at(&["metadata", "labels", key]) == Some(value))
}

fn subsets(service: &Value, pods: &[&Value]) -> Value {
    if pods.is_empty() {
        return Value::array(Vec::new());
    }
    let addresses = pods.iter().map(|pod| {
        let target = Value::from([
            ("kind", Value::from("Pod")),
            ("name", Value::from(object::name(pod))),
            ("namespace", Value::from(object::namespace(pod))),
            ("uid", Value::from(object::text(pod, "uid"))),
        ]);
        Value::from([("ip", pod.at(&["status", "podIP"]).cloned().unwrap_or_default()), ("targetRef", target)])
    });
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default().iter().map(|port| {
        let target = port.get("targetPort").filter(|target| target.as_i64().is_some());
        let number = target.or_else(|| port.get("port")).cloned().unwrap_or_default();
        let protocol = port.get("protocol").cloned().unwrap_or_else(|| Value::from("TCP"));
        let name = port.get("name").map(|name| ("name", name.clone()));
        let members = name.into_iter().chain([("port", number), ("protocol", protocol)]);
        Value::object(members.map(|(key, value)| (Str::new_static(key), value)).collect())
    });
    Value::array(vec![Value::from([
        ("addresses", Value::array(addresses.collect())),
        ("ports", Value::array(ports.collect())),
    ])])
}
