{{/*
CEL that the policies share. Each define yields one expression without line breaks.
*/}}

{{/* The operator: its user name *and* a token bound to a Pod. Impersonation alone cannot add the latter. */}}
{{- define "kilit.cel.operator" -}}
request.userInfo.username == '{{ include "kilit.user" . }}' && request.userInfo.?extra['authentication.kubernetes.io/pod-uid'].hasValue()
{{- end -}}

{{/* Whom a namespace needs to be deleted: the last one is a controller manager without --use-service-account-credentials. */}}
{{- define "kilit.cel.collector" -}}
request.userInfo.username in ['system:serviceaccount:kube-system:generic-garbage-collector', 'system:serviceaccount:kube-system:namespace-controller', 'system:kube-controller-manager']
{{- end -}}

{{- define "kilit.cel.token" -}}^(0|[1-9][0-9]{0,17})${{- end -}}
{{- define "kilit.cel.base" -}}^(0|[1-9][0-9]{0,15})${{- end -}}
{{- define "kilit.cel.lockName" -}}^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?${{- end -}}
