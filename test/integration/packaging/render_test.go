package packaging_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
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
