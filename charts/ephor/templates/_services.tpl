{{/* What Services have in common: values of a Service, the name of its port, and the port of the container. */}}
{{- define "ephor.servicePort" -}}
{{- $values := index . 0 -}}
type: {{ $values.type }}
{{- with $values.trafficDistribution }}
trafficDistribution: {{ . | quote }}
{{- end }}
ports:
  - name: {{ index . 1 }}
    port: {{ int $values.port }}
    protocol: TCP
    targetPort: {{ index . 1 }}
    {{- if and $values.nodePort (ne $values.type "ClusterIP") }}
    nodePort: {{ int $values.nodePort }}
    {{- end }}
{{- end }}

{{/* The Service of a role's metrics, and what makes Prometheus' operator read them: (list . component values name) */}}
{{- define "ephor.metrics" -}}
{{- $this := . }}
{{- $role := index . 2 }}
{{- $service := index . 3 }}
{{- with index . 0 }}
{{- if $role.metricsService.create }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $service }}
  namespace: {{ include "ephor.namespace" . | quote }}
  labels:
    {{- include "ephor.labels" $this | nindent 4 }}
  {{- with $role.metricsService.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "ephor.servicePort" (list $role.metricsService "metrics-port") | nindent 2 }}
  selector:
    {{- include "ephor.selector" $this | nindent 4 }}
{{- end }}
{{- if $role.serviceMonitor.enabled }}
{{- if not $role.metricsService.create }}
{{- fail "a serviceMonitor finds metrics by the metricsService: metricsService.create must be true" }}
{{- end }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "ephor.name" . }}-{{ index $this 1 }}
  namespace: {{ $role.serviceMonitor.namespace | default (include "ephor.namespace" .) | quote }}
  labels:
    {{- include "ephor.labels" $this | nindent 4 }}
    {{- with $role.serviceMonitor.additionalLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $role.serviceMonitor.additionalAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "ephor.selector" $this | nindent 6 }}
  namespaceSelector:
    matchNames:
      - {{ include "ephor.namespace" . | quote }}
  endpoints:
    - port: metrics-port
      {{- with $role.serviceMonitor.interval }}
      interval: {{ . | quote }}
      {{- end }}
      {{- with $role.serviceMonitor.scrapeTimeout }}
      scrapeTimeout: {{ . | quote }}
      {{- end }}
      {{- if $role.serviceMonitor.secure }}
      scheme: https
      {{- with $role.serviceMonitor.tlsConfig }}
      tlsConfig:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with $role.serviceMonitor.relabelings }}
      relabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $role.serviceMonitor.metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* How many Pods of a role may be evicted at once: (list . component values) */}}
{{- define "ephor.disruptionBudget" -}}
{{- $this := . }}
{{- $role := index . 2 }}
{{- $budget := $role.podDisruptionBudget }}
{{- if and $budget.enabled (gt (int (include "ephor.replicas" $role)) 1) }}
{{- with index . 0 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "ephor.name" . }}-{{ index $this 1 }}
  namespace: {{ include "ephor.namespace" . | quote }}
  labels:
    {{- include "ephor.labels" $this | nindent 4 }}
spec:
  {{- if not (kindIs "invalid" $budget.maxUnavailable) }}
  maxUnavailable: {{ $budget.maxUnavailable }}
  {{- else if not (kindIs "invalid" $budget.minAvailable) }}
  minAvailable: {{ $budget.minAvailable }}
  {{- end }}
  {{- with $budget.unhealthyPodEvictionPolicy }}
  unhealthyPodEvictionPolicy: {{ . }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "ephor.selector" $this | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}
