// Package packaging_test tests the files of packaging: the chart and the manifests of crdcached with Helm and
// kustomize, the dashboard and the alerts with Prometheus' parser and engine, and the editors' schema of
// configs.
package packaging_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// TestReleaseNames verifies that valid release names that YAML could read as a number or a boolean stay text
// in all objects.
func TestReleaseNames(t *testing.T) {
	values := `{fullnameOverride: "", persistence: {enabled: true}, certificate: {enabled: true},
		serviceMonitor: {enabled: true}, tls: {secretName: "2024"}, priorityClassName: "1e3", enabled: true}`
	for release, want := range map[string]string{
		"crdcached": "crdcached", "team": "team-crdcached", "1e3": "crdcached-1e3", "on": "on-crdcached",
		"a.crdcached.b": "a-crdcached-b", "7crdcached": "crdcached-7crdcached",
		strings.Repeat("a", 29) + "." + strings.Repeat("b", 23): strings.Repeat("a", 29) + "-crdcached",
	} {
		rendered, err := renderAs(t, release, "2024", values)
		if err != nil {
			t.Errorf("rendering the release %s: %v", release, err)
			continue
		}
		checkTypes(t, rendered)
		if service := rendered["Service "+want]; service == nil {
			t.Errorf("%s: no Service is named %s: %v", release, want, slices.Sorted(maps.Keys(rendered)))
		}
		for key, object := range rendered {
			if namespace, ok := valueAt(object, "metadata.namespace").(string); !ok && !strings.HasPrefix(key,
				"ClusterRole") {
				t.Errorf("%s: the namespace of %s is %v, want text", release, key, namespace)
			}
			labels, _ := valueAt(object, "metadata.labels").(map[string]any)
			if labels["app.kubernetes.io/instance"] != release {
				t.Errorf("%s: the instance of %s is %v, want the release", release, key,
					labels["app.kubernetes.io/instance"])
			}
		}
	}
	if _, err := render(t, `{fullnameOverride: "7up"}`); err == nil {
		t.Error("render() with a fullnameOverride that is not a Service name succeeded, want an error")
	}
}

func TestLint(t *testing.T) {
	for name, values := range map[string]string{"defaults": "{}", "all options": allValues} {
		t.Run(name, func(t *testing.T) {
			parsedValues := map[string]any{}
			if err := yaml.Unmarshal([]byte(values), &parsedValues); err != nil {
				t.Fatal(err)
			}
			for _, message := range lint.RunAll(chartFolder, parsedValues, "crdcached").Messages {
				if !strings.Contains(message.Error(), "icon is recommended") {
					t.Errorf("lint: %v", message)
				}
			}
		})
	}
}

// TestOptions renders all options together, and checks the effect of each.
func TestOptions(t *testing.T) {
	rendered := mustRender(t, allValues)
	const pod = "StatefulSet cache: spec.template.spec."
	for location, want := range map[string]string{
		"ClusterRole cache-types: rules.0":                      `{"apiGroups":[""],"resources":["pods"],"verbs":["get","list","watch"]}`,
		"ClusterRole cache-types: rules.1":                      `{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","list","watch"]}`,
		"ClusterRole cache-types: rules.2":                      `{"apiGroups":["example.com"],"resources":["*"],"verbs":["get","list","watch"]}`,
		"ClusterRole cache-types: rules.3":                      `{"apiGroups":["example.org"],"resources":["widgets"],"verbs":["get","list","watch"]}`,
		"ClusterRole cache-types: rules.4":                      `{"apiGroups":[""],"resources":["services"],"verbs":["get","list","watch"]}`,
		"ClusterRoleBinding cache-delegator: roleRef.name":      `"system:auth-delegator"`,
		"ClusterRoleBinding cache-types: subjects.0.name":       `"cache"`,
		"RoleBinding cache-authentication-reader: roleRef.name": `"extension-apiserver-authentication-reader"`,
		"StatefulSet cache: spec.replicas":                      `3`,
		"StatefulSet cache: spec.serviceName":                   `"cache"`,
		"StatefulSet cache: spec.volumeClaimTemplates.0.spec":   `{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"20Gi"}},"storageClassName":"fast"}`,
		pod + "serviceAccountName":                              `"cache"`,
		pod + "containers.0.image":                              `"r.example.com/c@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`,
		pod + "containers.0.imagePullPolicy":                    `"Always"`,
		pod + "containers.0.args.4":                             `"--v=2"`,
		pod + "containers.0.env.0.value":                        `"11536MiB"`,
		pod + "containers.0.resources":                          `{"limits":{"cpu":4,"memory":"13184Mi"},"requests":{"cpu":2,"memory":"6592Mi"}}`,
		pod + "containers.0.volumeMounts.2":                     `{"mountPath":"/var/lib/crdcached","name":"cache"}`,
		pod + "volumes.0.configMap.name":                        `"cache"`,
		pod + "volumes.1.secret.secretName":                     `"serving"`,
		pod + "imagePullSecrets":                                `[{"name":"registry"}]`,
		pod + "nodeSelector":                                    `{"disk":"ssd"}`,
		pod + "tolerations":                                     `[{"key":"a","operator":"Exists"}]`,
		pod + "affinity":                                        `{"nodeAffinity":{}}`,
		pod + "priorityClassName":                               `"system-cluster-critical"`,
		"Certificate cache: spec.secretName":                    `"serving"`,
		"Certificate cache: spec.dnsNames.0":                    `"cache.crdcached.svc"`,
		"Certificate cache: spec.issuerRef":                     `{"kind":"ClusterIssuer","name":"corporate"}`,
		"Service cache: spec.type":                              `"LoadBalancer"`,
		"Service cache: spec.ports.0.port":                      `8443`,
		"ServiceMonitor cache: metadata.labels.release":         `"prometheus"`,
		"ServiceMonitor cache: spec.endpoints.0.interval":       `"30s"`,
		"ServiceMonitor cache: spec.endpoints.0.tlsConfig":      `{"ca":{"secret":{"key":"ca.crt","name":"serving"}},"serverName":"cache.crdcached.svc"}`,
		"ScrapeConfig cache-objects: metadata.labels.release":   `"prometheus"`,
		"ScrapeConfig cache-objects: spec.scrapeInterval":       `"30s"`,
		"ScrapeConfig cache-objects: spec.staticConfigs.0":      `{"targets":["cache.crdcached.svc:8443"]}`,
		"ClusterRole cache-objects: rules":                      `[{"nonResourceURLs":["/metrics/objects"],"verbs":["get"]}]`,
		"NetworkPolicy cache: spec.egress.0.ports":              `[{"port":16443}]`,
		"PodDisruptionBudget cache: spec.maxUnavailable":        `"50%"`,
		"Issuer cache: kind":                                    `null`,
		"Deployment cache: kind":                                `null`,
		"ServiceAccount cache: metadata.namespace":              `"crdcached"`,
	} {
		key, path, _ := strings.Cut(location, ": ")
		if got, err := json.Marshal(valueAt(rendered[key], path)); err != nil || string(got) != want {
			t.Errorf("%s is %s (%v), want %s", location, got, err, want)
		}
	}

	config := rendered.file(t, "ConfigMap cache", "server.yaml")
	for path, want := range map[string]any{
		"kind": "ServerConfig", "storage": "Packed", "memoryBudget": "3968Mi", "limits.requests": float64(1000000),
		"persistenceDirectory": "/var/lib/crdcached", "indexConfigs.0": "/etc/crdcached/indexes.yaml", "types.4": "services",
	} {
		if got := valueAt(config, path); got != want {
			t.Errorf("%s of server.yaml is %v, want %v", path, got, want)
		}
	}
	if kind := rendered.file(t, "ConfigMap cache", "indexes.yaml")["kind"]; kind != "IndexConfig" {
		t.Errorf("the kind of indexes.yaml = %v, want IndexConfig", kind)
	}
}

// TestDisabled verifies that neither a NetworkPolicy nor a PodDisruptionBudget is rendered if they are
// disabled.
func TestDisabled(t *testing.T) {
	rendered := mustRender(t, `{networkPolicy: {enabled: false}, podDisruptionBudget: {enabled: false}}`)
	for _, key := range slices.Sorted(maps.Keys(rendered)) {
		switch kind, _, _ := strings.Cut(key, " "); kind {
		case "NetworkPolicy", "PodDisruptionBudget", "ServiceMonitor", "ScrapeConfig", "Certificate", "Issuer",
			"StatefulSet":
			t.Errorf("%s is rendered although it is disabled", key)
		}
	}
}

// TestMemory verifies that the memory is derived from the expected load.
func TestMemory(t *testing.T) {
	for values, want := range map[string]string{
		`{}`: "512Mi 1Gi 2Gi 1792MiB",
		`{sizing: {objects: 1000, bytesPerObject: 1000, watches: 10}}`:                     "64Mi 192Mi 384Mi 336MiB",
		`{sizing: {objects: 1, watches: 0}}`:                                               "64Mi 192Mi 384Mi 336MiB",
		`{sizing: {objects: 5000000}}`:                                                     "9792Mi 10304Mi 20608Mi 18032MiB",
		`{sizing: {objects: 5000000}, config: {memoryBudget: 2Gi}}`:                        "2Gi 2560Mi 5Gi 4480MiB",
		`{resources: {limits: {memory: 3Gi}}}`:                                             "512Mi 1Gi 3Gi 2688MiB",
		`{resources: {requests: {memory: 4Gi}}}`:                                           "512Mi 4Gi 8Gi 7168MiB",
		`{resources: {requests: {memory: 600Mi}, limits: {memory: 1Gi, cpu: 500m}}}`:       "512Mi 600Mi 1Gi 896MiB",
		`{sizing: {objects: 5000000}, resources: {limits: {memory: 1Gi}, requests: null}}`: "",
	} {
		rendered, err := render(t, values)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "1024Mi is less than the request of 10304Mi") {
				t.Errorf("%s: the error is %v, want one about the memory limit", values, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		config := rendered.file(t, "ConfigMap crdcached", "server.yaml")
		container := valueAt(rendered["Deployment crdcached"], "spec.template.spec.containers.0")
		got := fmt.Sprint(config["memoryBudget"], " ", valueAt(container, "resources.requests.memory"), " ",
			valueAt(container, "resources.limits.memory"), " ", valueAt(container, "env.0.value"))
		if got != want {
			t.Errorf("%s: budget, request, limit and GOMEMLIMIT are %s, want %s", values, got, want)
		}
	}
}

// TestBadValues verifies that errors name the value and its problem.
func TestBadValues(t *testing.T) {
	for values, want := range map[string][]string{
		`{types: []}`:                              {"types and indexConfigs are empty: name the types to cache"},
		`{types: [deployments]}`:                   {`cannot derive the rights to read "deployments"`, "deployments.apps"},
		`{types: ["*"]}`:                           {`cannot derive the rights to read "*"`},
		`{types: ["*.*"]}`:                         {`cannot derive the rights to read "*.*"`},
		`{types: ["*.v1."]}`:                       {`cannot derive the rights to read "*.v1."`},
		`{types: ["cert*.example.com"]}`:           {`cannot derive the rights to read "cert*.example.com"`},
		`{types: ["a/b"]}`:                         {"/types/0", "does not match pattern"},
		`{replica: 3}`:                             {"additional properties 'replica' not allowed"},
		`{replicas: two}`:                          {"/replicas", "got string, want integer"},
		`{replicas: 0}`:                            {"/replicas", "minimum: got 0, want 1"},
		`{config: {types: [a]}}`:                   {"/config", "additional properties 'types' not allowed"},
		`{config: {storage: decoded}}`:             {"/config/storage", "must be one of 'Adaptive', 'Compressed', 'Packed'"},
		`{config: {memoryBudget: 2G}}`:             {"/config/memoryBudget", "does not match pattern"},
		`{config: {watches: {min: 5}}}`:            {"/config/watches/min", "got number, want string"},
		`{config: {limits: {requests: -1}}}`:       {"/config/limits/requests", "minimum: got -1, want 0"},
		`{indexConfigs: {server.yaml: {}}}`:        {"/indexConfigs", "server.yaml"},
		`{indexConfigs: {a.yaml: {kind: Widget}}}`: {"/indexConfigs/a.yaml", "missing properties"},
		`{rules: [{apiGroups: [""], resources: [pods], verbs: [delete]}]}`: {"/rules/0/verbs/0", "'get', 'list', 'watch'"},
		`{sizing: {objects: 10k}}`:                {"/sizing/objects", "got string, want integer"},
		`{resources: {limits: {memory: lots}}}`:   {"/resources/limits/memory", "does not match pattern"},
		`{persistence: {enabled: true, size: 5}}`: {"/persistence/size", "got number, want string"},
		`{image: {digest: abc}}`:                  {"/image/digest", "does not match pattern"},
		`{service: {port: 70000}}`:                {"/service/port", "maximum: got 70,000, want 65,535"},
		`{apiService: {enabled: true}}`:           {"apiService.caBundle: set the CA"},
	} {
		_, err := render(t, values)
		if err == nil {
			t.Errorf("render() with %s succeeded, want an error", values)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error does not contain %q: %v", values, part, err)
			}
		}
	}
}

// TestDefaultsAreDescribed verifies that the schema describes each value of values.yaml.
func TestDefaultsAreDescribed(t *testing.T) {
	var values, schema map[string]any
	for name, target := range map[string]*map[string]any{"values.yaml": &values,
		"values.schema.json": &schema} {
		text, err := os.ReadFile(chartFolder + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, target); err != nil {
			t.Fatal(err)
		}
	}
	described := schema["properties"].(map[string]any)
	delete(described, "global")
	delete(described, "enabled")
	want, got := slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(values))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-schema +values.yaml):\n%s", diff)
	}
}

// TestArtifactHub verifies that the annotations for Artifact Hub are valid and name the chart's default
// image.
func TestArtifactHub(t *testing.T) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	annotations := chart.Metadata.Annotations
	var images []struct{ Name, Image string }
	if err := yaml.UnmarshalStrict([]byte(regexp.MustCompile(`(?m)^  platforms: .*\n`).ReplaceAllString(
		annotations["artifacthub.io/images"], "")), &images); err != nil || len(images) != 1 ||
		images[0].Image != "ghcr.io/crdcache/crdcached:"+chart.Metadata.AppVersion {
		t.Errorf("the images are %v (%v), want the chart's default image", images, err)
	}
	var links []struct{ Name, URL string }
	if err := yaml.UnmarshalStrict([]byte(annotations["artifacthub.io/links"]), &links); err != nil || len(links) == 0 {
		t.Errorf("the links are %v (%v)", links, err)
	}
}
