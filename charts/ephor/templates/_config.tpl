{{/* What no policy sees, as one text. */}}
{{- define "ephor.resourceFilters" -}}
{{- $name := include "ephor.name" . }}
{{- $namespace := .Release.Namespace }}
{{- $left := .Values.config.resourceFiltersExclude }}
{{- range .Values.config.resourceFilters }}
{{- if not (has . $left) }}
{{ . }}
{{- end }}
{{- end }}
{{- range .Values.config.resourceFiltersInclude }}
{{ . }}
{{- end }}
{{- if .Values.config.excludeKyvernoNamespace }}
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
{{- $selector := .Values.config.webhooks.namespaceSelector | default dict }}
{{- $expressions := $selector.matchExpressions | default list }}
{{- if .Values.config.excludeKyvernoNamespace }}
{{- $own := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" (list .Release.Namespace) }}
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
{{- with .Values.config.webhooks.objectSelector }}
{{- $webhooks = merge (dict "objectSelector" .) $webhooks }}
{{- end }}
{{- toJson $webhooks }}
{{- end }}
