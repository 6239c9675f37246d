{{/* How many replicas of a role there are at least: its values. */}}
{{- define "ephor.replicas" -}}
{{- $replicas := 1 }}
{{- if not (kindIs "invalid" .replicas) }}
{{- $replicas = int .replicas }}
{{- end }}
{{- with .autoscaling }}
{{- if .enabled }}
{{- $replicas = int .minReplicas }}
{{- end }}
{{- end }}
{{- $replicas }}
{{- end }}

{{/* The features of a role, as JSON: (list . values) */}}
{{- define "ephor.features" -}}
{{- toJson (mergeOverwrite (deepCopy (index . 0).Values.features) ((index . 1).featuresOverride | default dict)) }}
{{- end }}

{{/* Flags that all roles know, as a list: the features and the values of a role. */}}
{{- define "ephor.flags" -}}
{{- $metering := (index . 1).metering }}
{{- with index . 0 -}}
- --loggingFormat={{ .logging.format }}
- --v={{ int .logging.verbosity }}
- --enablePolicyException={{ .policyExceptions.enabled }}
- --exceptionNamespace={{ .policyExceptions.namespace }}
- --protectManagedResources={{ .protectManagedResources.enabled }}
- --omitEvents={{ join "," (.omitEvents.eventTypes | default list) }}
- --metricsPort={{ int $metering.port }}
{{- if $metering.disabled }}
- --disableMetrics=true
{{- end }}
{{- with .globalContext.maxApiCallResponseLength }}
- --maxAPICallResponseLength={{ int . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Flags given by name and value. Helm reads numbers of files as floats, which print otherwise than they are written. */}}
{{- define "ephor.extraArgs" -}}
{{- range $name, $value := . }}
{{- if kindIs "invalid" $value }}
- {{ printf "--%s" $name | quote }}
{{- else if kindIs "string" $value }}
- {{ printf "--%s=%s" $name $value | quote }}
{{- else }}
- {{ printf "--%s=%s" $name (toJson $value) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The environment of every role: (list . component values) */}}
{{- define "ephor.environment" -}}
{{- $component := index . 1 }}
{{- $account := include "ephor.accountName" . }}
{{- with index . 0 -}}
- name: INIT_CONFIG
  value: {{ include "ephor.configName" . | quote }}
- name: METRICS_CONFIG
  value: {{ include "ephor.metricsConfigName" . | quote }}
- name: KYVERNO_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: KYVERNO_POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: KYVERNO_SERVICEACCOUNT_NAME
  value: {{ $account | quote }}
- name: KYVERNO_DEPLOYMENT
  value: {{ include "ephor.name" . }}-{{ $component }}
{{- with .Values.global.extraEnvVars }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Names of Secrets, or objects with names, as a list of objects. */}}
{{- define "ephor.pullSecrets" -}}
{{- range . }}
{{- if kindIs "string" . }}
- name: {{ . | quote }}
{{- else }}
- name: {{ .name | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Near what Pods run: (list . component values) */}}
{{- define "ephor.affinity" -}}
{{- $role := index . 2 }}
{{- if $role.affinity }}
{{- toYaml $role.affinity }}
{{- else }}
{{- with $role.nodeAffinity }}
nodeAffinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $role.podAffinity }}
podAffinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $role.antiAffinity.enabled }}
podAntiAffinity:
  {{- if $role.podAntiAffinity }}
  {{- toYaml $role.podAntiAffinity | nindent 2 }}
  {{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "ephor.selector" . | nindent 12 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Where Pods run: (list . component values) */}}
{{- define "ephor.placement" -}}
{{- $global := (index . 0).Values.global }}
{{- $affinity := include "ephor.affinity" . | trim }}
{{- with index . 2 -}}
dnsPolicy: {{ .dnsPolicy }}
{{- with .dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .hostNetwork }}
hostNetwork: true
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector | default $global.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations | default $global.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $affinity }}
affinity:
  {{- . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
