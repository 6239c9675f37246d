//! Settings as users write them.

use super::*;

fn admission(arguments: &[&str], variables: &[(&str, &str)]) -> Result<AdmissionSettings, SettingsError> {
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    let environment = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    AdmissionSettings::parse(&arguments, &environment)
}

#[test]
fn without_flags_the_defaults_are_upstreams() {
    let settings = admission(&[], &[]).unwrap();
    assert_eq!((settings.port, settings.service_port, settings.webhook_timeout), (9443, 443, 10));
    assert_eq!(settings.common.namespace, "kyverno");
    assert_eq!(settings.common.exceptions, ExceptionScope::Disabled);
    assert_eq!(settings.ca_secret, "kyverno-svc.kyverno.svc.kyverno-tls-ca");
    assert_eq!(settings.renew_before, Duration::from_hours(360));
    assert_eq!(settings.common.own_account(), "system:serviceaccount:kyverno:kyverno-admission-controller");
}

#[test]
fn flags_are_read_as_go_reads_them() {
    let settings = admission(
        &[
            "-webhookServerPort=1",
            "--webhookTimeout",
            "5",
            "--shadow",
            "--autoUpdateWebhooks=F",
            "--v=4",
            "-serverIP=::1",
        ],
        &[("KYVERNO_NAMESPACE", "ephor")],
    )
    .unwrap();
    assert_eq!((settings.port, settings.webhook_timeout, settings.common.log.verbosity), (1, 5, 4));
    assert!(settings.shadow && !settings.auto_update_webhooks);
    assert_eq!(settings.server_address, Some(ServerAddress { host: "::1".into(), port: 1 }));
    assert_eq!(settings.tls_secret, "kyverno-svc.ephor.svc.kyverno-tls-pair");
}

#[test]
fn addresses_may_carry_a_port() {
    for (text, host, port) in
        [("10.0.0.1", "10.0.0.1", 9443), ("10.0.0.1:7", "10.0.0.1", 7), ("[::1]:7", "::1", 7), ("[::1]", "::1", 9443)]
    {
        let settings = admission(&[&format!("--serverIP={text}")], &[]).unwrap();
        assert_eq!(settings.server_address, Some(ServerAddress { host: host.into(), port }), "{text}");
    }
}

#[test]
fn a_flag_beats_its_variable() {
    let on = [("FLAG_PROTECT_MANAGED_RESOURCES", "true")];
    assert!(admission(&[], &on).unwrap().common.protect_managed_resources);
    assert!(!admission(&["--protectManagedResources=false"], &on).unwrap().common.protect_managed_resources);
}

#[test]
fn exceptions_count_only_from_a_named_place() {
    for (arguments, scope) in [
        (&["--enablePolicyException"][..], ExceptionScope::Disabled),
        (&["--exceptionNamespace=x"], ExceptionScope::Disabled),
        (&["--enablePolicyException", "--exceptionNamespace=x"], ExceptionScope::Namespace("x".into())),
        (&["--enablePolicyException", "--exceptionNamespace=*"], ExceptionScope::Everywhere),
    ] {
        assert_eq!(admission(arguments, &[]).unwrap().common.exceptions, scope, "{arguments:?}");
    }
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (arguments, variables, error) in [
        (&["--webhookTimout=5"][..], &[][..], "unknown flag `--webhookTimout` (did you mean `--webhookTimeout`?)"),
        (&["--genWorkers=5"], &[], "unknown flag `--genWorkers`"),
        (&["serve"], &[], "unexpected argument `serve`"),
        (&["--v"], &[], "flag `--v` needs a value"),
        (&["--v=-1"], &[], "`-1` is not a value of flag `--v`: expected a whole number"),
        (
            &["--webhookTimeout=31"],
            &[],
            "`31` is not a value of flag `--webhookTimeout`: expected seconds from 1 to 30",
        ),
        (
            &["--enableTuf"],
            &[],
            "`--enableTuf=true` is not supported yet: image verification is not part of this version; only the default \
             `false` is accepted",
        ),
        (&[], &[("FLAG_DUMP_PATCH", "true")], "unknown variable `FLAG_DUMP_PATCH` (did you mean `FLAG_DUMP_PATCHES`?)"),
        (
            &[],
            &[("FLAG_DUMP_PATCHES", "yes")],
            "`yes` is not a value of variable `FLAG_DUMP_PATCHES`: expected `true` or `false`",
        ),
    ] {
        assert_eq!(admission(arguments, variables).unwrap_err().to_string(), error);
    }
}

#[test]
fn defaults_written_out_are_accepted_and_what_has_no_effect_is_told() {
    let settings = admission(
        &["--enableTuf=false", "--resyncPeriod=900s", "--clientRateLimitQPS=300", "--otelConfig=prometheus"],
        &[],
    )
    .unwrap();
    let names: Vec<_> = settings.common.without_effect.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["clientRateLimitQPS"]);
}

#[test]
fn the_background_role_has_flags_of_its_own() {
    let environment = [("BACKGROUND_SCAN_INTERVAL".to_owned(), "30s".to_owned())].into();
    let settings = BackgroundSettings::parse(&["--genWorkers=3".to_owned()], &environment).unwrap();
    assert_eq!((settings.workers, settings.scan_interval), (3, Duration::from_secs(30)));
    assert!(BackgroundSettings::parse(&["--webhookTimeout=5".to_owned()], &BTreeMap::new()).is_err());
}

#[test]
fn the_reports_role_stores_the_results_that_are_asked_for() {
    let parse = |flag: &str| ReportsSettings::parse(&[flag.to_owned()], &BTreeMap::new());
    let settings = parse("--allowedResults=fail,error").unwrap();
    assert_eq!(settings.allowed_results, ["fail", "error"]);
    assert!(settings.skip_resource_filters && !settings.open_reports);
    assert!(parse("--allowedResults=failed").unwrap_err().to_string().contains("`fail`"));
    assert!(parse("--backgroundScanInterval=0s").is_err());
}

#[test]
fn the_cleanup_role_takes_upstreams_flags() {
    let parse = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        CleanupSettings::parse(&arguments, &BTreeMap::new())
    };
    let settings = parse(&["--caSecretName=a", "--tlsSecretName=b", "--cleanupServerPort=1"]).unwrap();
    assert_eq!((settings.ttl_interval, settings.limit, settings.health_port), (Duration::from_mins(1), None, None));
    assert_eq!(settings.common.own_account(), "system:serviceaccount:kyverno:kyverno-cleanup-controller");
    assert_eq!(settings.common.without_effect.len(), 3);
    let settings = parse(&["-ttlReconciliationInterval=10s", "--cleanup-limit=5", "--healthPort=2"]).unwrap();
    assert_eq!(
        (settings.ttl_interval, settings.limit, settings.health_port),
        (Duration::from_secs(10), Some(5), Some(2))
    );
    assert!(parse(&["--ttlReconciliationInterval=0s"]).is_err());
}

#[test]
fn roles_in_one_process_take_the_flags_of_all() {
    let parse = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        AllSettings::parse(&arguments, &BTreeMap::new())
    };
    let settings = parse(&[]).unwrap();
    assert!(settings.background.is_some() && settings.reports.is_some() && settings.cleanup.is_some());
    let own = "system:serviceaccount:kyverno:kyverno-admission-controller";
    let told = &settings.admission;
    for account in [&told.background_account, &told.reports_account, &told.cleanup_account] {
        assert_eq!(account, own);
    }

    let settings = parse(&["--genWorkers", "3", "--webhookTimeout=5", "--servicePort=8", "--backgroundScanWorkers=4"]);
    let settings = settings.unwrap();
    assert_eq!((settings.admission.webhook_timeout, settings.admission.service_port), (5, 8));
    assert_eq!(settings.background.as_ref().unwrap().workers, 3);
    assert_eq!(settings.reports.as_ref().unwrap().workers, 4);
    for common in [&settings.admission.common, &settings.cleanup.as_ref().unwrap().common] {
        assert_eq!(common.without_effect, []);
    }

    // The switch of the admission role, which the reports role would refuse.
    assert!(!parse(&["--admissionReports=false"]).unwrap().admission.admission_reports);
    let some = parse(&["--roles=admission,reports"]).unwrap();
    assert!(some.background.is_none() && some.reports.is_some() && some.cleanup.is_none());
    assert_eq!(some.admission.background_account, "");
    for (flag, error) in [
        ("--roles=reports", "`admission`, and of"),
        ("--roles=admission,images", "`admission`, and of"),
        ("--reports-storage=aggregated", "need a role with a port"),
        ("--healthPort=1", "unknown flag `--healthPort`"),
        ("--genWorker=1", "did you mean `--genWorkers`?"),
    ] {
        let said = parse(&[flag]).unwrap_err().to_string();
        assert!(said.contains(error), "{flag}: {said}");
    }
    assert!(admission(&["--roles=admission"], &[]).is_err());
}
