{{/*
The account of a role of Ephor, its cluster role, which gathers others by label, and what binds both:
(list . component values)
*/}}
{{- define "ephor.account" -}}
{{- $component := index . 1 }}
{{- $rbac := (index . 2).rbac }}
{{- $account := include "ephor.accountName" . }}
{{- $extra := concat ($rbac.coreClusterRole.extraResources | default list) ($rbac.clusterRole.extraResources | default list) }}
{{- with index . 0 -}}
{{- $name := include "ephor.name" . }}
{{- if or (eq $component "admission-controller") (not .Values.allInOne.enabled) -}}
apiVersion: v1
kind: ServiceAccount
automountServiceAccountToken: {{ $rbac.serviceAccount.automountServiceAccountToken }}
metadata:
  name: {{ $account | quote }}
  namespace: {{ include "ephor.namespace" . | quote }}
  labels:
    {{- include "ephor.labels" (list . $component) | nindent 4 }}
  {{- with $rbac.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
---
{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}:{{ $component }}
  # Not the labels that the role gathers by: it would gather itself.
  labels:
    app.kubernetes.io/instance: {{ .Release.Name | quote }}
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
aggregationRule:
  clusterRoleSelectors:
    - matchLabels:
        rbac.kyverno.io/aggregate-to-{{ $component }}: "true"
    - matchLabels:
        {{- include "ephor.selector" (list . $component) | nindent 8 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}:{{ $component }}
  labels:
    {{- include "ephor.labels" (list . $component) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}:{{ $component }}
subjects:
  - kind: ServiceAccount
    name: {{ $account | quote }}
    namespace: {{ include "ephor.namespace" . | quote }}
{{- if $rbac.createViewRoleBinding }}
---
# Policies read what they like in the cluster, except for Secrets and the like.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}:{{ $component }}:view
  labels:
    {{- include "ephor.labels" (list . $component) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $rbac.viewRoleName | quote }}
subjects:
  - kind: ServiceAccount
    name: {{ $account | quote }}
    namespace: {{ include "ephor.namespace" . | quote }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}:{{ $component }}
  namespace: {{ include "ephor.namespace" . | quote }}
  labels:
    {{- include "ephor.labels" (list . $component) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}:{{ $component }}
subjects:
  - kind: ServiceAccount
    name: {{ $account | quote }}
    namespace: {{ include "ephor.namespace" . | quote }}
{{- with $extra }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}:{{ $component }}:additional
  labels:
    rbac.kyverno.io/aggregate-to-{{ $component }}: "true"
rules:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* What every role reads. */}}
{{- define "ephor.commonRules" -}}
- apiGroups: [kyverno.io]
  resources: [clusterpolicies, policies, policyexceptions, globalcontextentries]
  verbs: [get, list, watch]
- apiGroups: [policies.kyverno.io]
  resources:
    - generatingpolicies
    - mutatingpolicies
    - namespacedgeneratingpolicies
    - namespacedmutatingpolicies
    - namespacedvalidatingpolicies
    - policyexceptions
    - validatingpolicies
  verbs: [get, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, clusterroles, rolebindings, clusterrolebindings]
  verbs: [get, list, watch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch, update]
{{- end }}
