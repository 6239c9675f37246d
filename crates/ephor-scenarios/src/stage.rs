//! A control plane with everything that scenarios rely on, and an engine on it.

use std::path::{Path, PathBuf};

use ephor_expr::Value;

use crate::api::{Api, ApiError, Kind};
use crate::engine::{Engine, Flavour, Subject};
use crate::scenario::read_objects;
use crate::sweep::{Baseline, sweep};
use crate::test_env::TestEnv;

/// Where things are.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Definitions of kinds: the engine's, and those that scenarios use.
    pub definitions: Vec<PathBuf>,
}

/// A control plane with an engine.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order: the engine goes before its API server.
    engine: Engine,
    flavour: Flavour,
    subject: Subject,
    /// What was there in the beginning; a sandbox is not swept but thrown away.
    baseline: Option<Baseline>,
    environment: Vec<(String, String)>,
    api: Api,
    env: TestEnv,
}

impl Stage {
    /// Starts everything. What goes wrong is told in words: there is nothing else to do about it.
    pub fn start(subject: &Subject, flavour: Flavour, folders: &Folders) -> Result<Self, String> {
        let env = match subject {
            Subject::Sandbox { binary } => TestEnv::sandbox(binary)?,
            Subject::Nothing | Subject::Roles { .. } => TestEnv::control_plane()?,
        };
        let api = Api::from_kubeconfig(&env.kubeconfig()).map_err(|error| error.to_string())?;
        for folder in &folders.definitions {
            install_folder(&api, folder)?;
        }
        for text in [subject.manifests()?, include_str!("../data/permissions.yaml").to_owned()] {
            let objects = ephor_expr::yaml::parse_values(&text, &ephor_expr::yaml::Limits::default());
            // The engine's processes stand beside the control plane: its Deployments would only wait for nodes.
            let objects = objects.map_err(|error| error.to_string())?.into_iter();
            for object in objects.filter(|object| object.str_at(&["kind"]) != Some("Deployment")) {
                install(&api, &object)?;
            }
        }
        let (engine, baseline) = match &env {
            TestEnv::ControlPlane(plane) => {
                let engine = Engine::start(subject, flavour, plane)?;
                (engine, Some(Baseline::of(&api).map_err(|error| error.to_string())?))
            }
            TestEnv::Sandbox { .. } => (Engine::default(), None),
        };
        let environment = environment(&env, subject)?;
        Ok(Self { engine, flavour, subject: subject.clone(), baseline, environment, api, env })
    }

    /// The API server.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The environment of scripts.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// The kubeconfig and the logs are here.
    pub fn directory(&self) -> &Path {
        self.env.directory()
    }

    /// The flags that the engine runs with.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Restarts the engine with other flags.
    pub fn change_flavour(&mut self, flavour: Flavour) -> Result<(), String> {
        let TestEnv::ControlPlane(plane) = &self.env else { return Err("a sandbox has no flags".to_owned()) };
        let renew = flavour.has_own_certificates() || self.flavour.has_own_certificates();
        self.engine = Engine::default();
        // The next one need not wait until the lease of the dead runs out.
        self.delete_all("coordination.k8s.io/v1", "Lease");
        if renew {
            self.delete_all("v1", "Secret");
        }
        self.engine = Engine::start(&self.subject, flavour, plane)?;
        self.flavour = flavour;
        Ok(())
    }

    /// Deletes objects of the engine's own namespace.
    fn delete_all(&self, api_version: &str, kind: &str) {
        let Ok(kind) = self.api.kind(api_version, kind) else { return };
        for object in self.api.list(&kind, Some("kyverno"), &[]).unwrap_or_default() {
            if let Some(name) = object.str_at(&["metadata", "name"]) {
                // What cannot be deleted makes the scenario fail that looks at it.
                let _ = self.api.delete(&kind, Some("kyverno"), name);
            }
        }
    }

    /// Takes away what a scenario left, and sees whether the engine still lives. False if it is of no use any more.
    pub fn clean(&mut self) -> Result<bool, String> {
        self.engine.check()?;
        match &self.baseline {
            Some(baseline) => sweep(&self.api, baseline).map(|()| true),
            None => Ok(false),
        }
    }
}

fn install_folder(api: &Api, folder: &Path) -> Result<(), String> {
    let entries = folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    for file in files {
        for object in read_objects(&file).map_err(|error| error.to_string())? {
            install(api, &object).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

fn install(api: &Api, object: &Value) -> Result<(), String> {
    let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
    let kind: Kind = api.kind(text(&["apiVersion"]), text(&["kind"])).map_err(|error| error.to_string())?;
    match api.create(&kind, object.str_at(&["metadata", "namespace"]), object) {
        Ok(_) | Err(ApiError::Refused { code: 409, .. }) => Ok(()),
        Err(error) => Err(format!("{} {}: {error}", kind.kind, text(&["metadata", "name"]))),
    }
}

/// Scripts call upstream's binary for its JMESPath; here it is ours by that name.
fn environment(env: &TestEnv, subject: &Subject) -> Result<Vec<(String, String)>, String> {
    let mut environment = env.environment();
    let (Subject::Roles { binary, .. } | Subject::Sandbox { binary }) = subject else { return Ok(environment) };
    let programs = env.directory().join("bin");
    std::fs::create_dir_all(&programs).map_err(|error| error.to_string())?;
    let binary = binary.canonicalize().map_err(|error| format!("{}: {error}", binary.display()))?;
    for name in ["kyverno", "kubectl-kyverno"] {
        std::os::unix::fs::symlink(&binary, programs.join(name)).map_err(|error| error.to_string())?;
    }
    for (name, value) in &mut environment {
        if name == "PATH" {
            *value = format!("{}:{value}", programs.display());
        }
    }
    Ok(environment)
}
