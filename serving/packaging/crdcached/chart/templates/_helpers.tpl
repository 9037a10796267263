{{- /* The name of all objects. A Service's name starts with a letter and has no dots, unlike a release's. */ -}}
{{- define "crdcached.fullname" -}}
{{- $release := .Release.Name | replace "." "-" }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if regexMatch "^[0-9]" $release }}{{ printf "crdcached-%s" ($release | trunc 30 | trimSuffix "-") }}
{{- else if contains "crdcached" $release }}{{ $release | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-crdcached" ($release | trunc 30 | trimSuffix "-") }}
{{- end }}
{{- end }}

{{- define "crdcached.selector" -}}
app.kubernetes.io/name: crdcached
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "crdcached.labels" -}}
{{ include "crdcached.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{- define "crdcached.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "crdcached.fullname" .)) }}
{{- end }}

{{- define "crdcached.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* MiB of a quantity in Mi or Gi. */ -}}
{{- define "crdcached.mebibytes" -}}
{{- if hasSuffix "Gi" . }}{{ mul 1024 (trimSuffix "Gi" . | int) }}{{ else }}{{ trimSuffix "Mi" . | int }}{{ end }}
{{- end }}

{{- /* A number of MiB as a quantity. */ -}}
{{- define "crdcached.quantity" -}}
{{- if mod . 1024 }}{{ . }}Mi{{ else }}{{ div . 1024 }}Gi{{ end }}
{{- end }}

{{- /*
Memory of the container. The request is the program, the objects (at most memoryBudget) and the watches, rounded up to
64 MiB. The limit is twice the request. GOMEMLIMIT is 7/8 of the limit. docs/crdcached.md has the measurements.
*/ -}}
{{- define "crdcached.memory" -}}
{{- $s := .Values.sizing }}
{{- $objects := mul 64 (divf (mulf $s.objects $s.bytesPerObject) 1048576 64 | ceil | int) }}
{{- with .Values.config.memoryBudget }}{{ $objects = min $objects (include "crdcached.mebibytes" . | int) }}{{ end }}
{{- $request := mul 64 (divf (add 80 $objects (divf $s.watches 2 | ceil | int)) 64 | ceil | int) }}
{{- with (.Values.resources.requests | default dict).memory }}{{ $request = include "crdcached.mebibytes" . | int }}{{ end }}
{{- $limit := mul 2 $request }}
{{- with (.Values.resources.limits | default dict).memory }}{{ $limit = include "crdcached.mebibytes" . | int }}{{ end }}
{{- if gt $request $limit }}{{ fail (printf "resources.limits.memory: %dMi is less than the request of %dMi: raise it, or lower sizing or resources.requests.memory" $limit $request) }}{{ end }}
budget: {{ include "crdcached.quantity" $objects }}
request: {{ include "crdcached.quantity" $request }}
limit: {{ include "crdcached.quantity" $limit }}
goLimit: {{ div (mul 7 $limit) 8 }}MiB
{{- end }}

{{- define "crdcached.serverConfig" -}}
{{- $config := deepCopy .Values.config }}
{{- $_ := set $config "apiVersion" "crdcache.dev/v1beta1" }}
{{- $_ := set $config "kind" "ServerConfig" }}
{{- $_ := set $config "memoryBudget" (include "crdcached.memory" . | fromYaml).budget }}
{{- with .Values.types }}{{ $_ := set $config "types" . }}{{ end }}
{{- $files := list }}
{{- range $file, $_ := .Values.indexConfigs }}{{ $files = append $files (printf "/etc/crdcached/%s" $file) }}{{ end }}
{{- with $files }}{{ $_ := set $config "indexConfigs" . }}{{ end }}
{{- if .Values.persistence.enabled }}{{ $_ := set $config "persistenceDirectory" "/var/lib/crdcached" }}{{ end }}
{{- toYaml $config }}
{{- end }}

{{- /* Rules for reading the cached types, with one rule for each group, and .Values.rules. */ -}}
{{- define "crdcached.rules" -}}
{{- if not (or .Values.types .Values.indexConfigs) }}{{ fail "types and indexConfigs are empty: name the types to cache" }}{{ end }}
{{- $groups := dict }}
{{- range $name := .Values.types }}
{{- $parts := splitList "." $name }}
{{- $resource := first $parts }}
{{- $group := rest $parts }}
{{- $versioned := regexMatch "^v[0-9]+((alpha|beta)[0-9]+)?$" (first $group | default "") }}
{{- if $versioned }}{{ $group = rest $group }}{{ end }}
{{- $exact := regexMatch "^[a-z][a-z0-9-]*$" $resource }}
{{- $group = join "." $group }}
{{- if and (or $exact (and (eq $resource "*") $group)) (or $group $versioned) (not (contains "*" $group)) }}
{{- $_ := set $groups $group (append (get $groups $group | default list) $resource | uniq) }}
{{- else if not $.Values.rules }}
{{- fail (printf "types: cannot derive the rights to read %q: write it as resource.group, such as deployments.apps or pods.v1., or add its rule to rules" $name) }}
{{- end }}
{{- end }}
{{- range $group, $resources := $groups }}
- apiGroups: [{{ $group | quote }}]
  resources: {{ toJson $resources }}
  verbs: [get, list, watch]
{{- end }}
{{- with .Values.rules }}
{{ toYaml . }}
{{- end }}
{{- if not (or $groups .Values.rules) }} []{{ end }}
{{- end }}
