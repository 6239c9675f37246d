{{/* Flags that all roles know, as a list. */}}
{{- define "ephor.flags" -}}
{{- with .Values.features -}}
- --loggingFormat={{ .logging.format }}
- --v={{ int .logging.verbosity }}
- --enablePolicyException={{ .policyExceptions.enabled }}
- --exceptionNamespace={{ .policyExceptions.namespace }}
- --protectManagedResources={{ .protectManagedResources.enabled }}
- --omitEvents={{ join "," .omitEvents.eventTypes }}
{{- end }}
{{- end }}

{{/* Flags given by name and value. */}}
{{- define "ephor.extraArgs" -}}
{{- range $name, $value := . }}
- {{ printf "--%s=%v" $name $value | quote }}
{{- end }}
{{- end }}

{{/* The environment of every role: (list . component) */}}
{{- define "ephor.environment" -}}
{{- $component := index . 1 }}
{{- with index . 0 -}}
- name: INIT_CONFIG
  value: {{ include "ephor.name" . }}
- name: METRICS_CONFIG
  value: {{ include "ephor.name" . }}-metrics
- name: KYVERNO_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: KYVERNO_POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: KYVERNO_SERVICEACCOUNT_NAME
  value: {{ include "ephor.name" . }}-{{ $component }}
- name: KYVERNO_DEPLOYMENT
  value: {{ include "ephor.name" . }}-{{ $component }}
{{- end }}
{{- end }}

{{/* Nothing that a process without files and privileges needs. */}}
{{- define "ephor.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop:
    - ALL
privileged: false
readOnlyRootFilesystem: true
runAsGroup: 65532
runAsNonRoot: true
runAsUser: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Where pods run: the values of a role. */}}
{{- define "ephor.placement" -}}
dnsPolicy: {{ .dnsPolicy }}
{{- if .hostNetwork }}
hostNetwork: true
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
