//! Checks of the profiles that confine containers: `AppArmor`, `SELinux`, seccomp.

use super::super::pod::{Pod, SeLinux};
use super::super::standard::Version;
use super::super::violation::Violations;
use super::privileges::is_exempt;

/// The start of the annotations that set `AppArmor` profiles; the container's name follows.
pub(crate) const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

fn confines(profile: &str) -> bool {
    matches!(profile, "RuntimeDefault" | "Localhost")
}

pub(super) fn app_armor(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    let field = "securityContext.appArmorProfile.type";
    // Profiles of the same name count once for the plural, annotations one by one.
    let mut first_bad = None;
    let mut several = false;
    let mut note = |profile| several |= *first_bad.get_or_insert(profile) != profile;
    if let Some(profile) = pod.security.app_armor
        && !confines(profile)
    {
        note(profile);
        found.forbid(format!("spec.{field}"), profile);
    }
    for container in &pod.containers {
        if let Some(profile) = container.security.and_then(|security| security.app_armor)
            && !confines(profile)
        {
            note(profile);
            found.forbid_in(container, field, profile);
        }
    }
    let mut annotated = 0;
    for (key, value) in pod.annotations.iter().flat_map(|annotations| annotations.iter()) {
        let profile = value.as_str().unwrap_or_default();
        let allowed = matches!(profile, "" | "runtime/default") || profile.starts_with("localhost/");
        if key.starts_with(APPARMOR_ANNOTATION) && !allowed {
            annotated += 1;
            found.forbid(format!("metadata.annotations[{key}]"), profile);
        }
    }
    if several || annotated + usize::from(first_bad.is_some()) > 1 {
        found.reason = "forbidden AppArmor profiles";
    }
}

pub(super) fn se_linux(pod: &Pod<'_>, version: Version, found: &mut Violations) {
    each_bad_option(&pod.security.se_linux, version, |option, value| {
        found.forbid(format!("spec.securityContext.seLinuxOptions.{option}"), value);
    });
    for container in &pod.containers {
        let Some(security) = container.security else { continue };
        each_bad_option(&security.se_linux, version, |option, value| {
            found.forbid_in(container, &format!("securityContext.seLinuxOptions.{option}"), value);
        });
    }
}

fn each_bad_option(options: &SeLinux<'_>, version: Version, mut report: impl FnMut(&str, &str)) {
    let allowed = match options.kind {
        "" | "container_t" | "container_init_t" | "container_kvm_t" => true,
        "container_engine_t" => version.at_least(31),
        _ => false,
    };
    if !allowed {
        report("type", options.kind);
    }
    for (option, value) in [("user", options.user), ("role", options.role)] {
        if !value.is_empty() {
            report(option, value);
        }
    }
}

const SECCOMP: &str = "securityContext.seccompProfile.type";

pub(super) fn seccomp_baseline(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    if let Some(profile) = pod.security.seccomp
        && !confines(profile)
    {
        found.forbid(format!("spec.{SECCOMP}"), profile);
    }
    for container in &pod.containers {
        if let Some(profile) = container.security.and_then(|security| security.seccomp)
            && !confines(profile)
        {
            found.forbid_in(container, SECCOMP, profile);
        }
    }
}

pub(super) fn seccomp_restricted(pod: &Pod<'_>, version: Version, found: &mut Violations) {
    if is_exempt(pod, version) {
        return;
    }
    // Missing profiles count only where no profile is wrong.
    seccomp_baseline(pod, version, found);
    if found.is_empty() && pod.security.seccomp.is_none() {
        for container in &pod.containers {
            if container.security.and_then(|security| security.seccomp).is_none() {
                found.require_in(container, SECCOMP);
            }
        }
    }
}
