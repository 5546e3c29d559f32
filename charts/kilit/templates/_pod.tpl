{{/*
Variables that the injecting and the refusing policy share: both must read a Pod alike.
*/}}
{{- define "kilit.podVariables" -}}
- name: inits
  expression: object.spec.?initContainers.orValue([])
# How many proxies of a service mesh stand first; the two injected containers come right after them.
- name: at
  expression: >-
    variables.inits.all(c, c.name in {{ include "kilit.cel.meshNames" . }}) ? variables.inits.size() :
    variables.inits.transformList(i, c, !(c.name in {{ include "kilit.cel.meshNames" . }}), i)[0]
- name: modeText
  expression: object.metadata.?annotations['kilit.dev/mode'].orValue('gate')
- name: mode
  expression: "variables.modeText == 'standby' ? 'standby' : 'gate'"
- name: gated
  expression: variables.mode == 'gate'
- name: portText
  expression: object.metadata.?annotations['kilit.dev/port'].orValue('{{ .Values.sidecar.port }}')
- name: portValid
  expression: variables.portText.matches('^[1-9][0-9]{0,4}$') && int(variables.portText) <= 65535
- name: port
  expression: "variables.portValid ? int(variables.portText) : {{ .Values.sidecar.port }}"
{{- end -}}

{{/* What can be injected. Without a leading "!", so that YAML takes it for a plain string. */}}
{{- define "kilit.cel.notStatic" -}}
('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({})) == false
{{- end -}}

{{- define "kilit.cel.linux" -}}
object.spec.?os.?name.orValue('linux') == 'linux'
{{- end -}}

{{- define "kilit.cel.meshNames" -}}
[{{ range $i, $name := .Values.mesh.initContainers }}{{ if $i }}, {{ end }}'{{ $name }}'{{ end }}]
{{- end -}}
