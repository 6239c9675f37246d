//! A controller as others write them, on kube-rs: it keeps a `ConfigMap` for each `Service`, owned by it, and holds the
//! Service with a finalizer until it has cleaned up. Nothing in it knows that there is no cluster.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Error, Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, Config, Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use crate::process::Sandbox;

const FINALIZER: &str = "example.com/card";

async fn reconcile(service: Arc<Service>, client: Arc<Client>) -> Result<Action, Error<kube::Error>> {
    let services = Api::<Service>::default_namespaced(Client::clone(&client));
    let maps = Api::<ConfigMap>::default_namespaced(Client::clone(&client));
    finalizer(&services, FINALIZER, service, |event| async {
        match event {
            Event::Apply(service) => {
                let card = card(&service);
                let parameters = PatchParams::apply("cards").force();
                maps.patch(&card.name_any(), &parameters, &Patch::Apply(&card)).await?;
            }
            Event::Cleanup(service) => {
                let farewell = ConfigMap {
                    metadata: kube::api::ObjectMeta {
                        name: Some(format!("{}-gone", service.name_any())),
                        ..Default::default()
                    },
                    ..Default::default()
                };
                maps.create(&PostParams::default(), &farewell).await?;
            }
        }
        Ok(Action::await_change())
    })
    .await
}

fn card(service: &Service) -> ConfigMap {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref()).into_iter().flatten();
    let ports: Vec<String> = ports.map(|port| port.port.to_string()).collect();
    ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some(format!("{}-card", service.name_any())),
            owner_references: Some(service.controller_owner_ref(&()).into_iter().collect()),
            ..Default::default()
        },
        data: Some(BTreeMap::from([("ports".to_owned(), ports.join(","))])),
        ..Default::default()
    }
}

async fn client(sandbox: &Sandbox) -> Client {
    // Another test may have installed it.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(sandbox.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a server");
    Client::try_from(config).expect("a client")
}

/// Waits until the object that may be there satisfies the condition.
async fn until<K>(api: &Api<K>, name: &str, holds: impl Fn(Option<&K>) -> bool) -> Option<K>
where
    K: Clone + Debug + serde::de::DeserializeOwned,
{
    for _ in 0..1000 {
        let found = api.get_opt(name).await.expect("an answer");
        if holds(found.as_ref()) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    panic!("{name}: {:?}", api.get_opt(name).await);
}

fn with_ports(ports: &'static str) -> impl Fn(Option<&ConfigMap>) -> bool {
    move |map| {
        map.and_then(|map| map.data.as_ref()).and_then(|data| data.get("ports")).is_some_and(|found| found == ports)
    }
}

fn service(port: u16) -> Service {
    let service: Value = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": port}]},
    });
    serde_json::from_value(service).expect("a service")
}

#[tokio::test]
async fn a_controller_from_outside_runs_on_it() {
    let sandbox = Sandbox::start(&["examples/policies/stamp-services.yaml"]);
    let client = client(&sandbox).await;
    let services = Api::<Service>::default_namespaced(client.clone());
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let controller = Controller::new(services.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _: &Error<kube::Error>, _| Action::requeue(Duration::from_millis(100)),
            Arc::new(client.clone()),
        )
        .for_each(|_| std::future::ready(()));
    let controller = tokio::spawn(controller);

    services.create(&PostParams::default(), &service(80)).await.expect("a service");
    let card = until(&maps, "web-card", with_ports("80")).await.expect("a card");
    assert_eq!(card.owner_references()[0].name, "web");

    // What is watched comes as it happens, whoever wrote it, and through admission.
    let merge = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"ports": [{"port": 81}]}}));
    let changed = services.patch("web", &PatchParams::default(), &merge).await.expect("a change");
    assert_eq!(changed.annotations()["example.com/checked-in"], "default");
    until(&maps, "web-card", with_ports("81")).await;

    maps.delete("web-card", &DeleteParams::default()).await.expect("it goes");
    let uid = card.uid();
    until(&maps, "web-card", |map| map.is_some_and(|map| map.uid() != uid)).await;

    // The finalizer holds the Service until the controller is done; what it owns goes with it.
    services.delete("web", &DeleteParams::default()).await.expect("it goes");
    until(&maps, "web-gone", |map| map.is_some()).await;
    until(&services, "web", |service| service.is_none()).await;
    until(&maps, "web-card", |map| map.is_none()).await;
    controller.abort();
}
