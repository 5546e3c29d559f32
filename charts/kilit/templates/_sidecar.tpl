{{/*
What is injected, written as YAML. "kilit.celObject" turns it into the CEL of a mutating policy; a string that starts
with "=" is CEL already.
*/}}

{{/* Environment of sidecar and reset. The lock and the identity come from the Pod itself, never from text that can be copied. */}}
{{- define "kilit.inject.env" -}}
- name: KILIT_LOCK
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['kilit.dev/lock']"}}
- name: KILIT_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: KILIT_POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: KILIT_POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: KILIT_MODE
  value: "=variables.mode"
- name: KILIT_PORT
  value: "=string(variables.port)"
{{- end -}}

{{/* In a Guaranteed Pod requests equal limits, or it would be Burstable. With Pod-level resources the Pod's own count. */}}
{{- define "kilit.inject.resources" -}}
{{- with .Values.sidecar.resources -}}
has(object.spec.resources) ? Object.spec.initContainers.resources{} : Object.spec.initContainers.resources{
requests: variables.guaranteed ? {{ include "kilit.cel.quantities" .limits }} : {{ include "kilit.cel.quantities" .requests }},
limits: {{ include "kilit.cel.quantities" .limits }}}
{{- end -}}
{{- end -}}

{{- define "kilit.cel.quantities" -}}
{"cpu": {{ .cpu | toString | quote }}, "memory": {{ .memory | toString | quote }}}
{{- end -}}

{{/* On the node's own network the scheduler must know the port, so that it keeps such Pods on different nodes. */}}
{{- define "kilit.inject.ports" -}}
[object.spec.?hostNetwork.orValue(false) ?
Object.spec.initContainers.ports{name: "kilit", containerPort: variables.port, hostPort: variables.port} :
Object.spec.initContainers.ports{name: "kilit", containerPort: variables.port}]
{{- end -}}

{{/*
As a JSON list. Measured: without --jitless a program that asks the socket often drives private memory above 20 MB.
*/}}
{{- define "kilit.inject.command" -}}
{{- list "/usr/local/bin/node" "--max-semi-space-size=1" "--v8-pool-size=0" "--jitless" "/app/sidecar.js" | toJson -}}
{{- end -}}

{{/*
Run once, before the sidecar, at each start of the Pod's init phase: removes the files of a former grant.
*/}}
{{- define "kilit.inject.reset" -}}
name: kilit-reset
image: {{ include "kilit.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: {{ append (include "kilit.inject.command" . | fromJsonArray) "reset" | toJson }}
env:
  {{- include "kilit.inject.env" . | nindent 2 }}
resources: {{ printf "=%s" (include "kilit.inject.resources" .) | quote }}
securityContext:
  {{- include "kilit.securityContext" . | nindent 2 }}
volumeMounts:
  - {name: kilit-run, mountPath: /run/kilit}
{{- end -}}

{{/*
The sidecar. Its startup probe is one long poll that it answers at the grant; when it ends with any code but 0 the
kubelet restarts the whole Pod in place. Its port is declared, so that monitoring can find it.
*/}}
{{- define "kilit.inject.sidecar" -}}
name: kilit
image: {{ include "kilit.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: {{ include "kilit.inject.command" . }}
restartPolicy: Always
restartPolicyRules:
  - action: RestartAllContainers
    exitCodes: {operator: NotIn, values: [0]}
env:
  {{- include "kilit.inject.env" . | nindent 2 }}
ports: {{ printf "=%s" (include "kilit.inject.ports" .) | quote }}
startupProbe:
  httpGet: {path: /started, port: "=variables.port"}
  timeoutSeconds: 600
  periodSeconds: 1
  failureThreshold: 1000000
resources: {{ printf "=%s" (include "kilit.inject.resources" .) | quote }}
securityContext:
  {{- include "kilit.securityContext" . | nindent 2 }}
volumeMounts:
  - {name: kilit-run, mountPath: /run/kilit}
  - {name: kilit-info, mountPath: /etc/kilit, readOnly: true}
  - {name: kilit-api, mountPath: /var/run/secrets/kilit.dev, readOnly: true}
{{- end -}}

{{- define "kilit.inject.volumes" -}}
- name: kilit-run
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: kilit-info
  downwardAPI:
    items:
      - path: token
        fieldRef: {fieldPath: "metadata.annotations['kilit.dev/fencing-token']"}
- name: kilit-api
  projected:
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: "=variables.tokenSeconds"}
      - configMap:
          name: kube-root-ca.crt
          items:
            - {key: ca.crt, path: ca.crt}
{{- end -}}

{{/* What every gated container gets, besides FENCING_TOKEN in mode gate. */}}
{{- define "kilit.inject.mounts" -}}
- {name: kilit-run, mountPath: /run/kilit, readOnly: true}
- {name: kilit-info, mountPath: /etc/kilit, readOnly: true}
{{- end -}}

{{- define "kilit.inject.socketEnv" -}}
name: KILIT_SOCKET
value: /run/kilit/sock
{{- end -}}

{{/* Not created by the kubelet as long as the file or the key is missing. First in the list, so that other variables may refer to it. */}}
{{- define "kilit.inject.tokenEnv" -}}
name: FENCING_TOKEN
valueFrom: {fileKeyRef: {volumeName: kilit-run, path: env, key: FENCING_TOKEN}}
{{- end -}}

{{/*
A value as CEL. Arguments: type (name of the CEL type of an object, or of a list's items), value.
*/}}
{{- define "kilit.celObject" -}}
{{- $type := .type -}}
{{- if kindIs "map" .value -}}
{{ $type }}{
{{- range $i, $key := keys .value | sortAlpha }}{{ if $i }}, {{ end }}{{ $key }}: {{ include "kilit.celObject" (dict "type" (printf "%s.%s" $type $key) "value" (index $.value $key)) }}{{ end -}}
}
{{- else if kindIs "slice" .value -}}
[{{ range $i, $item := .value }}{{ if $i }}, {{ end }}{{ include "kilit.celObject" (dict "type" $type "value" $item) }}{{ end }}]
{{- else if kindIs "string" .value -}}
{{- if hasPrefix "=" .value }}{{ trimPrefix "=" .value | replace "\n" " " }}{{ else }}{{ .value | quote }}{{ end -}}
{{- else -}}
{{ .value }}
{{- end -}}
{{- end -}}

{{/* CEL of a define above. Arguments: root, name of the define, CEL type. */}}
{{- define "kilit.celOf" -}}
{{- $yaml := include (index . 1) (index . 0) -}}
{{- $value := ternary (fromYamlArray $yaml) (fromYaml $yaml) (hasPrefix "- " $yaml) -}}
{{- include "kilit.celObject" (dict "type" (index . 2) "value" $value) -}}
{{- end -}}
