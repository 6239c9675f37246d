{{/*
The Deployment of a role: a dict of
  root       the dot of the chart
  component  its name
  role       its values
  container  the values of its container, called `name` there
  arguments, environment, ports   of that container, as lists
*/}}
{{- define "ephor.deployment" -}}
{{- $root := .root }}
{{- $role := .role }}
{{- $container := .container }}
{{- $this := list .root .component .role }}
{{- $ca := $role.caCertificates }}
{{- if not (or $ca.data $ca.volume) }}
{{- $ca = $root.Values.global.caCertificates }}
{{- end }}
{{- $bundle := printf "%s-%s-ca-certificates" (include "ephor.name" $root) .component }}
{{- $scaled := false }}
{{- with $role.autoscaling }}
{{- $scaled = .enabled }}
{{- end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "ephor.name" $root }}-{{ .component }}
  namespace: {{ include "ephor.namespace" $root | quote }}
  labels:
    {{- include "ephor.labels" $this | nindent 4 }}
  {{- with $role.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if not $scaled }}
  replicas: {{ include "ephor.replicas" $role }}
  {{- end }}
  {{- if not (kindIs "invalid" $role.revisionHistoryLimit) }}
  revisionHistoryLimit: {{ int $role.revisionHistoryLimit }}
  {{- end }}
  {{- with $role.updateStrategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "ephor.selector" $this | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "ephor.labels" $this | nindent 8 }}
        {{- with $role.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $role.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "ephor.accountName" $this | quote }}
      automountServiceAccountToken: true
      {{- include "ephor.placement" $this | nindent 6 }}
      {{- with $root.Values.global.imagePullSecrets | default $role.imagePullSecrets | default $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- include "ephor.pullSecrets" . | trim | nindent 8 }}
      {{- end }}
      {{- with $role.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $role.extraInitContainers }}
      initContainers:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ include "ephor.image" (list $root $container.image) | quote }}
          {{- with $container.image.pullPolicy | default $root.Values.image.pullPolicy }}
          imagePullPolicy: {{ . }}
          {{- end }}
          args:
            {{- .arguments | trim | nindent 12 }}
            {{- with include "ephor.extraArgs" $container.extraArgs | trim }}
            {{- . | nindent 12 }}
            {{- end }}
          env:
            {{- include "ephor.environment" $this | nindent 12 }}
            {{- with .environment }}
            {{- . | trim | nindent 12 }}
            {{- end }}
            {{- if or $ca.data $ca.volume }}
            - name: SSL_CERT_FILE
              value: /etc/ssl/certs/ca-certificates.crt
            {{- end }}
            {{- with $container.extraEnvVars }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- .ports | trim | nindent 12 }}
            - name: metrics-port
              containerPort: {{ int $role.metering.port }}
          {{- with $role.startupProbe }}
          startupProbe:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $role.livenessProbe }}
          livenessProbe:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $role.readinessProbe }}
          readinessProbe:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $container.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $container.lifecycle }}
          lifecycle:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $container.securityContext }}
          securityContext:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- if or $ca.data $ca.volume $container.extraVolumeMounts }}
          volumeMounts:
            {{- if or $ca.data $ca.volume }}
            - name: ca-certificates
              mountPath: /etc/ssl/certs/ca-certificates.crt
              readOnly: true
              {{- if not (hasKey ($ca.volume | default dict) "hostPath") }}
              subPath: ca-certificates.crt
              {{- end }}
            {{- end }}
            {{- with $container.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
        {{- with $role.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if or $ca.data $ca.volume $role.extraVolumes }}
      volumes:
        {{- if $ca.data }}
        - name: ca-certificates
          configMap:
            name: {{ $bundle }}
        {{- else if $ca.volume }}
        - name: ca-certificates
          {{- toYaml $ca.volume | nindent 10 }}
        {{- end }}
        {{- with $role.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
{{- if $ca.data }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $bundle }}
  namespace: {{ include "ephor.namespace" $root | quote }}
  labels:
    {{- include "ephor.labels" $this | nindent 4 }}
data:
  ca-certificates.crt: {{ $ca.data | quote }}
{{- end }}
{{- end }}
