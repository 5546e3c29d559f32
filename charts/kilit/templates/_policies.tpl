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

{{/* What both policies of fenced Leases reckon with: as a list of variables. */}}
{{- define "kilit.fencedVariables" -}}
- name: created
  expression: request.operation == 'CREATE'
- name: wasFenced
  expression: "!variables.created && oldObject.metadata.?labels['kilit.dev/fenced'].orValue('') == 'true'"
- name: base
  expression: params.metadata.?annotations['kilit.dev/token-base'].orValue('0')
- name: baseValid
  expression: variables.base.matches('{{ include "kilit.cel.base" . }}')
- name: token
  expression: object.metadata.?annotations['kilit.dev/fencing-token'].orValue('')
- name: replacedToken
  expression: "variables.created ? '' : oldObject.metadata.?annotations['kilit.dev/fencing-token'].orValue('')"
# What was written while the Lease was not fenced counts for nothing: a great number would come true, and fall again
# when the Lease is deleted and created anew.
- name: oldToken
  expression: >-
    variables.wasFenced && variables.replacedToken.matches('{{ include "kilit.cel.token" . }}') ? variables.replacedToken : '0'
- name: time
  expression: object.metadata.?annotations['kilit.dev/fenced-acquire-time'].orValue('')
- name: replacedTime
  expression: "variables.created ? '' : oldObject.metadata.?annotations['kilit.dev/fenced-acquire-time'].orValue('')"
- name: holder
  expression: object.spec.?holderIdentity.orValue('')
- name: oldHolder
  expression: "variables.created ? '' : oldObject.spec.?holderIdentity.orValue('')"
# A creation replaces nothing, so it has no revision to take a token from; the first write after it has.
- name: granted
  expression: >-
    !variables.created && variables.holder != '' &&
    (variables.holder != variables.oldHolder || object.spec.?acquireTime != oldObject.spec.?acquireTime ||
    variables.oldToken == '0')
- name: wantedToken
  expression: >-
    !variables.granted ? variables.oldToken :
    !variables.baseValid ? 'none' :
    int(variables.oldToken) + 1 > int(oldObject.metadata.resourceVersion) + int(variables.base) ?
    string(int(variables.oldToken) + 1) :
    string(int(oldObject.metadata.resourceVersion) + int(variables.base))
# For whom the token is: a later holder that got none, because this policy was away, can tell that it is not its own.
- name: wantedTime
  expression: >-
    variables.granted ? (has(object.spec.acquireTime) ? string(object.spec.acquireTime) : '') :
    variables.oldToken == '0' ? '' : variables.replacedTime
{{- end -}}

{{/* What an administrator writes on a lock: JSON with exactly these three, in this order. For a raw string of CEL. */}}
{{- define "kilit.cel.request" -}}
^\s*\{\s*"token"\s*:\s*"[1-9][0-9]{0,17}"\s*,\s*"by"\s*:\s*"([^"\\[:cntrl:]]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})+"\s*,\s*"reason"\s*:\s*"([^"\\[:cntrl:]]|\\["\\/bfnrt]|\\u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]){1,256}"\s*\}\s*$
{{- end -}}
