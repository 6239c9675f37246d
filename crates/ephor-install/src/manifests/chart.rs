//! The files of the chart, as they lie in `charts/ephor`.

macro_rules! template {
    ($name:literal) => {
        (concat!("templates/", $name), include_str!(concat!("../../../../charts/ephor/templates/", $name)))
    };
}

/// Default values.
pub(super) const VALUES: &str = include_str!("../../../../charts/ephor/values.yaml");

/// Which values there are.
pub(super) const SCHEMA: &str = include_str!("../../../../charts/ephor/values.schema.json");

/// Grafana's dashboard: the name of the file, and its text.
pub(super) const DASHBOARD: (&str, &str) =
    ("files/grafana/ephor.json", include_str!("../../../../charts/ephor/files/grafana/ephor.json"));

/// Name and versions.
pub(super) const CHART: &str = include_str!("../../../../charts/ephor/Chart.yaml");

/// Templates by name; those that begin with `_` define parts, the others are rendered.
pub(super) const TEMPLATES: &[(&str, &str)] = &[
    template!("_config.tpl"),
    template!("_deployment.tpl"),
    template!("_names.tpl"),
    template!("_pod.tpl"),
    template!("_roles.tpl"),
    template!("_services.tpl"),
    template!("admission-controller/availability.yaml"),
    template!("admission-controller/deployment.yaml"),
    template!("admission-controller/rbac.yaml"),
    template!("admission-controller/service.yaml"),
    template!("background-controller/deployment.yaml"),
    template!("background-controller/rbac.yaml"),
    template!("cleanup-controller/deployment.yaml"),
    template!("cleanup-controller/rbac.yaml"),
    template!("config.yaml"),
    template!("crds.yaml"),
    template!("grafana.yaml"),
    template!("reports-controller/deployment.yaml"),
    template!("reports-controller/rbac.yaml"),
    template!("user-roles.yaml"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn files(folder: &Path, found: &mut Vec<String>, root: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found, root);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn all_templates_of_the_chart_are_here() {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/ephor");
        let mut found = Vec::new();
        files(&chart.join("templates"), &mut found, &chart);
        // Helm shows the notes after an installation, which `ephor install` does not carry out.
        found.retain(|name| name != "templates/NOTES.txt");
        found.sort();
        assert_eq!(found, TEMPLATES.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
    }
}
