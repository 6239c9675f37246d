{{/* What names begin with. */}}
{{- define "ephor.name" -}}
{{ .Values.fullnameOverride | default "kyverno" }}
{{- end }}

{{/* The namespace of all objects. */}}
{{- define "ephor.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{/* The ConfigMap that roles follow. */}}
{{- define "ephor.configName" -}}
{{ .Values.config.name | default (include "ephor.name" .) }}
{{- end }}

{{/* The ConfigMap about metrics. */}}
{{- define "ephor.metricsConfigName" -}}
{{ .Values.metricsConfig.name | default (printf "%s-metrics" (include "ephor.name" .)) }}
{{- end }}

{{/* The account of a role: (list . component values). Roles in one process have one. */}}
{{- define "ephor.accountName" -}}
{{- $component := index . 1 }}
{{- $role := index . 2 }}
{{- with index . 0 -}}
{{- if .Values.allInOne.enabled }}
{{- $component = "admission-controller" }}
{{- $role = .Values.admissionController }}
{{- end }}
{{- $role.rbac.serviceAccount.name | default (printf "%s-%s" (include "ephor.name" .) $component) }}
{{- end }}
{{- end }}

{{/* Labels by which Deployments, Services and roles find what is theirs: (list . component) */}}
{{- define "ephor.selector" -}}
{{- $component := index . 1 }}
{{- with index . 0 -}}
app.kubernetes.io/component: {{ $component }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: {{ include "ephor.name" . | quote }}
{{- end }}
{{- end }}

{{/* Labels of an object: (list . component) */}}
{{- define "ephor.labels" -}}
{{ include "ephor.selector" . }}
{{- with index . 0 }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- with .Values.customLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/*
An image: (list . image), where the image is that of a role. Where it names an image of Kyverno, its repository, tag and
digest do not count.
*/}}
{{- define "ephor.image" -}}
{{- $image := index . 1 }}
{{- range list "kyverno/kyverno" "kyverno/background-controller" "kyverno/reports-controller" "kyverno/cleanup-controller" }}
{{- if or (eq ($image.repository | default "") .) (hasSuffix (printf "/%s" .) ($image.repository | default "")) }}
{{- $image = dict "registry" $image.registry }}
{{- end }}
{{- end }}
{{- with index . 0 }}
{{- with .Values.global.image.registry | default $image.registry | default .Values.image.registry }}
{{- . }}/
{{- end }}
{{- $image.repository | default .Values.image.repository }}
{{- with $image.digest | default .Values.image.digest }}
{{- printf "@%s" . }}
{{- else }}
{{- printf ":%s" ($image.tag | default .Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}
