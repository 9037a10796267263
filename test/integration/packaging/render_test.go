package packaging_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// crdcachedFolder has the manifests of crdcached, and chartFolder its chart.
const (
	crdcachedFolder = "../../../serving/packaging/crdcached"
	chartFolder     = crdcachedFolder + "/chart"
)

// objects are manifests by "Kind name".
type objects map[string]map[string]any

// add adds the objects in YAML documents.
func (o objects) add(t *testing.T, text []byte) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object map[string]any
		if err := decoder.Decode(&object); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if object != nil {
			key := fmt.Sprint(object["kind"], " ", valueAt(object, "metadata.name"))
			if o[key] != nil {
				t.Errorf("two objects have the name %s", key)
			}
			o[key] = object
		}
	}
}

// valueAt returns the value at a path such as "spec.ports.0.port", or nil.
func valueAt(value any, path string) any {
	for _, step := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i < len(v) {
				value = v[i]
				continue
			}
			return nil
		default:
			return nil
		}
	}
	return value
}

// render returns the objects of the release "crdcached" in the namespace "crdcached".
func render(t *testing.T, values string) (objects, error) {
	t.Helper()
	return renderAs(t, "crdcached", "crdcached", values)
}

func renderAs(t *testing.T, release, namespace, values string) (objects, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	parsedValues := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &parsedValues); err != nil {
		t.Fatal(err)
	}
	renderValues, err := util.ToRenderValues(chart, parsedValues, common.ReleaseOptions{Name: release,
		Namespace: namespace, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, renderValues)
	if err != nil {
		return nil, err
	}
	rendered := objects{}
	for name, text := range files {
		if path.Ext(name) == ".yaml" {
			rendered.add(t, []byte(text))
		}
	}
	return rendered, nil
}

// mustRender renders valid values, and decodes the objects of built-in types without unknown fields.
func mustRender(t *testing.T, values string) objects {
	t.Helper()
	rendered, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	checkTypes(t, rendered)
	return rendered
}

func checkTypes(t *testing.T, rendered objects) {
	t.Helper()
	strict := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		serializer.SerializerOptions{Strict: true})
	for key, object := range rendered {
		group, _, _ := strings.Cut(object["apiVersion"].(string), "/")
		switch group {
		case "cert-manager.io", "monitoring.coreos.com", "apiregistration.k8s.io", "apiextensions.k8s.io":
			continue // the scheme does not have these groups
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := strict.Decode(text, nil, nil); err != nil {
			t.Errorf("decoding %s: %v", key, err)
		}
	}
}

// TestKustomize compares the chart with the manifests for kustomize, object by object.
func TestKustomize(t *testing.T) {
	for folder, values := range map[string]string{
		"base": `
image: {repository: crdcached}`,
		"example": `
types: [certificates.cert-manager.io, issuers.cert-manager.io, clusterissuers.cert-manager.io]
config: {memoryBudget: 256Mi}
resources: {requests: {memory: 1Gi}}
image: {repository: registry.example.com/crdcached, tag: v1.0.0}
certificate: {enabled: true}
apiService: {enabled: true}
serviceMonitor: {enabled: true}
objectMetrics: {enabled: true}`,
	} {
		t.Run(folder, func(t *testing.T) {
			manifests, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
				crdcachedFolder+"/"+folder)
			if err != nil {
				t.Fatal(err)
			}
			text, err := manifests.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			want, got := objects{}, mustRender(t, values)
			want.add(t, text)
			delete(want, "Namespace crdcached") // helm creates it with --create-namespace
			want.normalize(t)
			got.normalize(t)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-kustomize +Helm):\n%s", diff)
			}
		})
	}
}

// normalize removes the intended differences: Helm's labels and the checksum of the config, kustomize's hash
// of the ConfigMap, defaults of the API server, tags of images, and the text form of server.yaml.
func (o objects) normalize(t *testing.T) {
	t.Helper()
	for key, object := range maps.Clone(o) {
		if name := configMapHash.ReplaceAllString(key, "$1"); name != key {
			delete(o, key)
			key, o[name] = name, object
		}
		normalized := normalize("", object).(map[string]any)
		o[key] = normalized
		if object["kind"] == "ConfigMap" {
			normalized["data"].(map[string]any)["server.yaml"] = o.file(t, key, "server.yaml")
		}
	}
}

// file parses a file of YAML in a ConfigMap.
func (o objects) file(t *testing.T, key, name string) map[string]any {
	t.Helper()
	data, _ := o[key]["data"].(map[string]any)
	text, _ := data[name].(string)
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil || content == nil {
		t.Fatalf("%s of %s: %v\n%s", name, key, err, text)
	}
	return content
}

var configMapHash = regexp.MustCompile(`^((?:ConfigMap )?crdcached)-[a-z0-9]{10}$`)

func normalize(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, value := range v {
			switch key {
			case "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
				"helm.sh/chart", "helm.sh/resource-policy", "checksum/config", "imagePullPolicy", "creationTimestamp":
				continue
			}
			if n := normalize(key, value); n != nil {
				result[key] = n
			}
		}
		if len(result) == 0 && (field == "annotations" || field == "labels") {
			return nil
		}
		return result
	case []any:
		result := []any{}
		for _, value := range v {
			result = append(result, normalize("", value))
		}
		return result
	case string:
		if field == "name" {
			return configMapHash.ReplaceAllString(v, "$1")
		}
		if field == "image" {
			return strings.TrimSuffix(v, ":v0.0.0")
		}
	case int64:
		return float64(v)
	}
	return value
}

// allValues sets each value of the chart, and none to its default.
const allValues = `
types: ["*.example.com", deployments.apps, pods.v1., widgets.v1beta1.example.org, services]
indexConfigs:
  indexes.yaml:
    apiVersion: crdcache.dev/v1beta1
    kind: IndexConfig
    metadata: {name: platform}
    spec: {resources: [{name: widgets, match: {group: example.com, resource: widgets}, indexes: [{name: class, path: .spec.class}]}]}
config: {storage: Packed, history: 10, secrets: true, tokenAudiences: [a], page: {enabled: true, hosts: ["a:1"]},
  watches: {min: 1m, max: 1h30m, writeTimeout: 10s}, limits: {requests: 1000000, bytesPerSecond: 1Mi, burstBytes: 1Gi}}
rules: [{apiGroups: [""], resources: [services], verbs: [get, list, watch]}]
sizing: {objects: 1000000, bytesPerObject: 4096, watches: 5000}
resources: {requests: {cpu: 2}, limits: {cpu: 4}}
replicas: 3
image: {repository: r.example.com/c, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
extraArgs: [--v=2]
persistence: {enabled: true, size: 20Gi, storageClassName: fast}
tls: {secretName: serving}
certificate: {enabled: true, issuerRef: {name: corporate, kind: ClusterIssuer}}
service: {type: LoadBalancer, port: 8443}
apiService: {enabled: true, caBundle: YQ==}
serviceMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}}
objectMetrics: {enabled: true}
networkPolicy: {apiServerPorts: [16443]}
podDisruptionBudget: {maxUnavailable: 50%}
fullnameOverride: cache
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: system-cluster-critical
`
