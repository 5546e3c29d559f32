{{/* Labels of every object of the chart. Argument: (list $ "component"). */}}
{{- define "kilit.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: kilit
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/part-of: kilit
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{/* Labels that select the operator's Pods; they never change. */}}
{{- define "kilit.selector" -}}
app.kubernetes.io/name: kilit
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* The image of operator and sidecar; a digest wins over the tag. */}}
{{- define "kilit.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The operator's user name: the policies know the operator by it, together with a token bound to a Pod. */}}
{{- define "kilit.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Release.Name }}
{{- end -}}

{{/* Security context of operator, sidecar and reset: passes the restricted Pod Security Standard, whatever the Pod says. */}}
{{- define "kilit.securityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "kilit.requireKubernetes" -}}
{{- if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "kilit needs Kubernetes 1.36 or newer on every node, this cluster is %s. Below it the API server has no MutatingAdmissionPolicy v1, and a kubelet starts a program without its fencing token." .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
