{{- define "hubbub.name" -}}
{{- if contains "hubbub" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-hubbub{{ end -}}
{{- end }}

{{- /* labels of a part: (dict "root" . "part" "shuffler") */}}
{{- define "hubbub.selector" -}}
app.kubernetes.io/name: hubbub
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "hubbub.labels" -}}
{{ include "hubbub.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- /* "yes" if a part is of this release: both services, or the one of its party: (dict "root" . "part" "shuffler") */}}
{{- define "hubbub.runs" -}}
{{- if .root.Values.party }}{{ if eq .root.Values.party .part }}yes{{ end }}{{ else if ne .part "issuer" }}yes{{ end -}}
{{- end }}

{{- /* where a service finds the other: (dict "root" . "within" "aggregator:7071") */}}
{{- define "hubbub.peer" -}}
{{- if .root.Values.party -}}
{{ required "peer: where the other party's service is, as HOST:PORT" .root.Values.peer }}
{{- else -}}
{{ include "hubbub.name" .root }}-{{ .within }}
{{- end -}}
{{- end }}

{{- /* an issuer runs in the shuffler's image */}}
{{- define "hubbub.image" -}}
{{- $repository := required "image.repository: where the images of deploy/Containerfile were pushed to" .root.Values.image.repository -}}
{{ $repository }}/hubbub-{{ eq .part "issuer" | ternary "shuffler" .part }}:{{ .root.Values.image.tag }}
{{- end }}

{{- define "hubbub.pod" -}}
serviceAccountName: {{ include "hubbub.name" .root }}
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "hubbub.selector" . | nindent 8 }}
{{- end }}

{{- define "hubbub.hardened" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* a check of a port by our own program, which can show a certificate: (dict "port" 7070 "role" "shuffler") */}}
{{- define "hubbub.probe" -}}
exec:
  command: [/opt/hubbub/bin/python, -m, hubbub.runtime.probe, "127.0.0.1:{{ .port }}", --tls, /etc/hubbub/tls, {{ .role }}]
timeoutSeconds: 6
{{- end }}

{{- define "hubbub.probes" -}}
startupProbe:
  {{- include "hubbub.probe" . | nindent 2 }}
  periodSeconds: 2
  failureThreshold: 30
readinessProbe:
  {{- include "hubbub.probe" . | nindent 2 }}
  periodSeconds: 10
livenessProbe:
  {{- include "hubbub.probe" . | nindent 2 }}
  periodSeconds: 30
  failureThreshold: 4
{{- end }}
