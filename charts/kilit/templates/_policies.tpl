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

{{/* What an administrator writes on a lock: JSON with exactly these three, in this order. For a raw string of CEL. */}}
{{- define "kilit.cel.request" -}}
^\s*\{\s*"token"\s*:\s*"[1-9][0-9]{0,17}"\s*,\s*"by"\s*:\s*"([^"\\[:cntrl:]]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})+"\s*,\s*"reason"\s*:\s*"([^"\\[:cntrl:]]|\\["\\/bfnrt]|\\u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]){1,256}"\s*\}\s*$
{{- end -}}
