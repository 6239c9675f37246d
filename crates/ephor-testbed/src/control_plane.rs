//! Starting and stopping a control plane, and identities on it.
//!
//! Set up as kubeadm does it where policies can see it: RBAC, service accounts for the controllers, the user
//! `kubernetes-admin` in the groups `kubeadm:cluster-admins` and `system:masters`.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::certificates::{Certificates, FRONT_PROXY};
use crate::process::Guarded;
use crate::{Assets, Error};

/// How long a part may take until it is ready; a loaded machine is slow.
const TIMEOUT: Duration = Duration::from_mins(2);
/// How often another port is tried after a process took the chosen one.
const ATTEMPTS: usize = 4;
/// The token of the administrator. The API server is reached from this machine only, and lives as long as a test.
const ADMIN_TOKEN: &str = "ephor-testbed-admin";
const CONTROLLER_TOKEN: &str = "ephor-testbed-controllers";

/// Whether kube-controller-manager runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// Namespaces are emptied, owned objects collected, Deployments get their Pods.
    #[default]
    Run,
    /// Objects stay as they are written.
    Absent,
}

/// What the control plane should be like.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The executables; without, [`Assets::locate`] says.
    pub assets: Option<Assets>,
    /// Whether there are controllers.
    pub controllers: Controllers,
    /// The name of a Node object that looks ready, for policies that ask for one.
    pub node: Option<String>,
    /// Further flags of kube-apiserver, such as `--runtime-config=…`.
    pub api_server_flags: Vec<String>,
}

/// A running control plane. It stops when dropped, or when this process ends.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields are dropped in this order: the directory goes last.
    controllers: Option<Guarded>,
    api_server: Option<Guarded>,
    _etcd: Guarded,
    _sweeper: Guarded,
    assets: Assets,
    directory: PathBuf,
    api_server_flags: Vec<String>,
    url: String,
    ca: String,
}

impl ControlPlane {
    /// Starts one and waits until it serves.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let assets = options.assets.clone().unwrap_or_else(Assets::locate);
        assets.check()?;
        let directory = tempfile::Builder::new()
            .prefix("ephor-cluster-")
            .tempdir_in(room())
            .map_err(Error::file(room()))?
            // From here on the sweeper owns it.
            .keep();
        let sweeper = Guarded::sweeper(&directory)?;
        let certificates = Certificates::generate()?;
        write_identities(&directory, &certificates)?;

        let (etcd, etcd_url) = start_etcd(&assets, &directory)?;
        let fixed = api_server_flags(&directory, &etcd_url, &options.api_server_flags);
        let (api_server, url, flags) = start_api_server(&assets, &directory, &fixed)?;
        write_kubeconfig(&directory, "kubeconfig", &url, &certificates.ca, ADMIN_TOKEN, "kubernetes-admin")?;
        write_kubeconfig(&directory, "controllers", &url, &certificates.ca, CONTROLLER_TOKEN, "controllers")?;
        let mut plane = Self {
            controllers: None,
            api_server: Some(api_server),
            _etcd: etcd,
            _sweeper: sweeper,
            assets,
            directory,
            api_server_flags: flags,
            url,
            ca: certificates.ca,
        };
        plane.wait_until_ready()?;
        plane.ask(&[
            "create",
            "clusterrolebinding",
            "kubeadm:cluster-admins",
            "--clusterrole=cluster-admin",
            "--group=kubeadm:cluster-admins",
        ])?;
        if options.controllers == Controllers::Run {
            plane.start_controllers()?;
        }
        if let Some(node) = &options.node {
            plane.create_node(node)?;
        }
        Ok(plane)
    }

    /// A kubeconfig file of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Where the API server is: `https://127.0.0.1:port`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The certificate of the authority that signed the API server's, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    /// The administrator's bearer token.
    pub fn admin_token(&self) -> &'static str {
        ADMIN_TOKEN
    }

    /// A directory that lives as long as the control plane. Logs are in it: `etcd.log`, `kube-apiserver.log`,
    /// `kube-controller-manager.log`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The environment in which kubectl talks to this control plane, for scripts.
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let shown = |path: PathBuf| path.display().to_string();
        vec![
            ("KUBECONFIG".to_owned(), shown(self.kubeconfig())),
            // Ports are used again by other control planes with other kinds.
            ("KUBECACHEDIR".to_owned(), shown(self.directory.join("cache"))),
            ("PATH".to_owned(), format!("{}:{path}", self.assets.directory().display())),
        ]
    }

    /// kubectl as the administrator.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(self.assets.tool("kubectl"));
        command.envs(self.environment());
        command
    }

    /// Runs kubectl as the administrator and gives what it prints.
    pub fn ask(&self, arguments: &[&str]) -> Result<String, Error> {
        let output = self.kubectl().args(arguments).output().map_err(Error::run("kubectl"))?;
        answer(arguments, &output)
    }

    /// A kubeconfig file of a service account, which is created with its namespace if missing, with a token for a
    /// day. It may do what RBAC gives it: nothing at first.
    pub fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        // What exists already is fine: the token says whether it does.
        let _ = self.ask(&["create", "namespace", namespace]);
        let _ = self.ask(&["create", "serviceaccount", name, "--namespace", namespace]);
        let token = self.ask(&["create", "token", name, "--namespace", namespace, "--duration=24h"])?;
        let file = format!("{namespace}-{name}.kubeconfig");
        write_kubeconfig(&self.directory, &file, &self.url, &self.ca, token.trim(), name)?;
        Ok(self.directory.join(file))
    }

    /// Kills the API server. Everything else keeps running.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts it again at the same address and waits until it serves.
    pub fn start_api_server(&mut self) -> Result<(), Error> {
        self.api_server = None;
        self.api_server = Some(spawn(&self.assets, &self.directory, "kube-apiserver", &self.api_server_flags)?);
        self.wait_until_ready()
    }

    /// Kills the API server and starts it again.
    pub fn restart_api_server(&mut self) -> Result<(), Error> {
        self.stop_api_server();
        self.start_api_server()
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        while self.ask(&["get", "--raw", "/readyz"]).is_err() {
            let Some(server) = self.api_server.as_mut() else { break };
            if !server.is_running() {
                return Err(server.complaint("ended"));
            }
            if start.elapsed() > TIMEOUT {
                return Err(server.complaint("does not get ready"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn start_controllers(&mut self) -> Result<(), Error> {
        let path = |name: &str| self.directory.join(name).display().to_string();
        let kubeconfig = path("controllers");
        let flags = [
            format!("--kubeconfig={kubeconfig}"),
            "--use-service-account-credentials=true".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--root-ca-file={}", path("ca.crt")),
            format!("--service-account-private-key-file={}", path("service-account.key")),
            format!("--cluster-signing-cert-file={}", path("ca.crt")),
            format!("--cluster-signing-key-file={}", path("ca.key")),
            // No kubelet renews the lease of a Node here.
            "--controllers=*,-node-lifecycle-controller,-node-ipam-controller".to_owned(),
        ];
        let mut controllers = spawn(&self.assets, &self.directory, "kube-controller-manager", &flags)?;
        // Pods can be created once their namespace has its service account, which a controller makes.
        let start = Instant::now();
        while self.ask(&["get", "serviceaccount", "default", "--namespace", "default"]).is_err() {
            if !controllers.is_running() {
                return Err(controllers.complaint("ended"));
            }
            if start.elapsed() > TIMEOUT {
                return Err(controllers.complaint("does not get ready"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.controllers = Some(controllers);
        Ok(())
    }

    fn create_node(&self, name: &str) -> Result<(), Error> {
        let node = format!(
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  labels:\n    kubernetes.io/arch: amd64\n    \
             kubernetes.io/hostname: {name}\n    kubernetes.io/os: linux\n    \
             node-role.kubernetes.io/control-plane: \"\"\n"
        );
        let file = self.directory.join("node.yaml");
        fs::write(&file, node).map_err(Error::file(&file))?;
        self.ask(&["create", "--filename", &file.display().to_string()])?;
        let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}"#;
        self.ask(&["patch", "node", name, "--subresource=status", "--type=merge", "--patch", status])?;
        Ok(())
    }
}

/// What kubectl printed, or why it failed.
fn answer(arguments: &[&str], output: &Output) -> Result<String, Error> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Kubectl { arguments: arguments.join(" "), message })
}

/// Where directories of control planes go: memory, if there is a place for it. etcd writes a lot.
fn room() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// A port that is free now. Another process may take it before you do.
pub fn free_port() -> Result<u16, Error> {
    let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(Error::file("127.0.0.1"))
}

fn spawn(assets: &Assets, directory: &Path, name: &str, flags: &[String]) -> Result<Guarded, Error> {
    Guarded::spawn(&assets.tool(name), flags, &[], &directory.join(format!("{name}.log")))
}

fn start_etcd(assets: &Assets, directory: &Path) -> Result<(Guarded, String), Error> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let url = format!("http://127.0.0.1:{}", free_port()?);
        let flags = [
            format!("--data-dir={}", directory.join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            "--log-level=warn".to_owned(),
            // It is thrown away anyway.
            "--unsafe-no-fsync".to_owned(),
        ];
        let mut etcd = spawn(assets, directory, "etcd", &flags)?;
        if listens(&mut etcd, &url) {
            return Ok((etcd, url));
        }
        last = Some(etcd.complaint("does not listen"));
    }
    Err(last.unwrap_or_else(|| Error::Build("etcd".to_owned())))
}

fn start_api_server(
    assets: &Assets,
    directory: &Path,
    fixed: &[String],
) -> Result<(Guarded, String, Vec<String>), Error> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let port = free_port()?;
        let mut flags = fixed.to_vec();
        flags.push(format!("--secure-port={port}"));
        let mut server = spawn(assets, directory, "kube-apiserver", &flags)?;
        let url = format!("https://127.0.0.1:{port}");
        if listens(&mut server, &url) {
            return Ok((server, url, flags));
        }
        last = Some(server.complaint("does not listen"));
    }
    Err(last.unwrap_or_else(|| Error::Build("kube-apiserver".to_owned())))
}

/// Waits until the process listens at the address; false if it ends or takes too long.
fn listens(process: &mut Guarded, url: &str) -> bool {
    let address = url.rsplit('/').next().unwrap_or_default();
    let start = Instant::now();
    while start.elapsed() < TIMEOUT && process.is_running() {
        if std::net::TcpStream::connect(address).is_ok() {
            // If the port was taken by another, ours ends at once.
            std::thread::sleep(Duration::from_millis(50));
            return process.is_running();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn api_server_flags(directory: &Path, etcd_url: &str, further: &[String]) -> Vec<String> {
    let path = |name: &str| directory.join(name).display().to_string();
    let mut flags = vec![
        format!("--etcd-servers={etcd_url}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        // There is no address that Pods could reach.
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--cert-dir={}", path("certs")),
        format!("--tls-cert-file={}", path("server.crt")),
        format!("--tls-private-key-file={}", path("server.key")),
        format!("--client-ca-file={}", path("ca.crt")),
        format!("--requestheader-client-ca-file={}", path("front-proxy-ca.crt")),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", path("front-proxy.crt")),
        format!("--proxy-client-key-file={}", path("front-proxy.key")),
        format!("--token-auth-file={}", path("tokens.csv")),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", path("service-account.pub")),
        format!("--service-account-signing-key-file={}", path("service-account.key")),
    ];
    flags.extend_from_slice(further);
    flags
}

fn write_identities(directory: &Path, certificates: &Certificates) -> Result<(), Error> {
    let tokens = format!(
        "{ADMIN_TOKEN},kubernetes-admin,,\"kubeadm:cluster-admins,system:masters\"\n\
         {CONTROLLER_TOKEN},system:kube-controller-manager,,\n"
    );
    let files = [
        ("ca.crt", &certificates.ca),
        ("ca.key", &certificates.ca_key),
        ("front-proxy-ca.crt", &certificates.front_proxy_ca),
        ("front-proxy.crt", &certificates.front_proxy),
        ("front-proxy.key", &certificates.front_proxy_key),
        ("server.crt", &certificates.server),
        ("server.key", &certificates.server_key),
        ("service-account.key", &certificates.service_account_key),
        ("service-account.pub", &certificates.service_account_public),
        ("tokens.csv", &tokens),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        fs::write(&path, text).map_err(Error::file(path))?;
    }
    Ok(())
}

fn write_kubeconfig(directory: &Path, file: &str, url: &str, ca: &str, token: &str, user: &str) -> Result<(), Error> {
    // The certificate is part of the text, so that the file can be copied.
    let mut text =
        String::from("apiVersion: v1\nkind: Config\ncurrent-context: ephor\nclusters:\n- name: ephor\n  cluster:\n");
    let ca = base64(ca.as_bytes());
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "    server: {url}\n    certificate-authority-data: {ca}\nusers:\n- name: {user}\n  user:\n    token: {token}\n\
         contexts:\n- name: ephor\n  context:\n    cluster: ephor\n    user: {user}\n"
    );
    let path = directory.join(file);
    fs::write(&path, text).map_err(Error::file(path))
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
