{{/* What names begin with. */}}
{{- define "ephor.name" -}}
{{ .Values.fullnameOverride | default "kyverno" }}
{{- end }}

{{/* Labels by which Deployments, Services and roles find what is theirs: (list . component) */}}
{{- define "ephor.selector" -}}
{{- $component := index . 1 }}
{{- with index . 0 -}}
app.kubernetes.io/component: {{ $component }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: {{ include "ephor.name" . }}
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

{{- define "ephor.image" -}}
{{- if .Values.image.registry -}}
{{ .Values.image.registry }}/
{{- end -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
