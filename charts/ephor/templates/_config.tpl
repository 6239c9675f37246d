{{/* What no policy sees, as one text. */}}
{{- define "ephor.resourceFilters" -}}
{{- $name := include "ephor.name" . }}
{{- $namespace := include "ephor.namespace" . }}
{{- $left := .Values.config.resourceFiltersExclude | default list }}
{{- $open := .Values.config.resourceFiltersExcludeNamespaces | default list }}
{{- range $filter := .Values.config.resourceFilters }}
{{- /* A filter of Kyverno's own chart may be a template, about objects of that chart. */}}
{{- $stays := not (or (has $filter $left) (contains "{{" $filter)) }}
{{- range $open }}
{{- if contains (printf ",%s," .) $filter }}
{{- $stays = false }}
{{- end }}
{{- end }}
{{- if $stays }}
{{ $filter }}
{{- end }}
{{- end }}
{{- range .Values.config.resourceFiltersInclude }}
{{- if not (contains "{{" .) }}
{{ . }}
{{- end }}
{{- end }}
{{- range .Values.config.resourceFiltersIncludeNamespaces }}
[*/*,{{ . }},*]
{{- end }}
{{- if and .Values.config.excludeKyvernoNamespace (not (has $namespace $open)) }}
[*/*,{{ $namespace }},*]
{{- end }}
{{- range list "admission-controller" "background-controller" "cleanup-controller" "reports-controller" }}
[ClusterRole,*,{{ $name }}:{{ . }}]
[ClusterRole,*,{{ $name }}:{{ . }}:*]
[ClusterRoleBinding,*,{{ $name }}:{{ . }}]
[ClusterRoleBinding,*,{{ $name }}:{{ . }}:*]
{{- end }}
{{- if not .Values.config.excludeKyvernoNamespace }}
{{- range list "ServiceAccount" "Deployment" "Pod" "Pod/*" "Service" "ConfigMap" "Secret" "PodDisruptionBudget" "NetworkPolicy" "Job" "ServiceMonitor" }}
[{{ . }},{{ $namespace }},{{ $name }}]
[{{ . }},{{ $namespace }},{{ $name }}-*]
{{- end }}
{{- range list "Role" "RoleBinding" }}
[{{ . }},{{ $namespace }},{{ $name }}:*]
{{- end }}
{{- end }}
{{- end }}

{{/* What resource webhooks are limited to, as JSON. */}}
{{- define "ephor.webhooks" -}}
{{- $limits := .Values.config.webhooks | default dict }}
{{- if kindIs "slice" $limits }}
{{- $limits = index $limits 0 }}
{{- end }}
{{- $selector := $limits.namespaceSelector | default dict }}
{{- $expressions := $selector.matchExpressions | default list }}
{{- if .Values.config.excludeKyvernoNamespace }}
{{- $own := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" (list (include "ephor.namespace" .)) }}
{{- $expressions = concat $expressions (list $own) }}
{{- end }}
{{- $namespaces := dict }}
{{- if $expressions }}
{{- $namespaces = dict "matchExpressions" $expressions }}
{{- end }}
{{- with $selector.matchLabels }}
{{- $namespaces = merge (dict "matchLabels" .) $namespaces }}
{{- end }}
{{- $webhooks := dict "namespaceSelector" $namespaces }}
{{- with $limits.objectSelector }}
{{- $webhooks = merge (dict "objectSelector" .) $webhooks }}
{{- end }}
{{- toJson $webhooks }}
{{- end }}
