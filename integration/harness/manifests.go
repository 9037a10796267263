package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	// Keep the modules in go.mod. Tests only need their folders with definitions.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ReadManifests returns the objects in files and folders. Folders are read recursively; only .yaml, .yml and
// .json files count. ReadManifests fails the test if a document is not an object.
func ReadManifests(t testing.TB, paths ...string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := read(paths)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func read(paths []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			named := file == path
			if err != nil || entry.IsDir() || !named && !slices.Contains([]string{".yaml", ".yml", ".json"},
				filepath.Ext(file)) {
				return err
			}
			found, err := readFile(file)
			objects = append(objects, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("there are no objects in %q", paths)
	}
	return objects, nil
}

func readFile(file string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []*unstructured.Unstructured
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			object.Object, err = parse(document)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: document %d: %w", file, number, err)
		case len(object.Object) == 0:
			continue // an empty document
		case object.GetKind() == "" || object.GetName() == "":
			return nil, fmt.Errorf("%s: document %d has no kind or no name", file, number)
		}
		objects = append(objects, object)
	}
}

// parse decodes integers as int64, because float64 cannot represent large ones.
func parse(document []byte) (map[string]any, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	err = json.Unmarshal(text, &fields)
	return fields, err
}

// CertManagerCRDs returns the folder of cert-manager's definitions.
func CertManagerCRDs(t testing.TB) string {
	t.Helper()
	return filepath.Join(ModuleFolder(t, "github.com/cert-manager/cert-manager"), "deploy", "crds")
}

// PrometheusOperatorCRDs returns the folder of the Prometheus operator's definitions.
func PrometheusOperatorCRDs(t testing.TB) string {
	t.Helper()
	return filepath.Join(ModuleFolder(t, "github.com/prometheus-operator/prometheus-operator"), "example",
		"prometheus-operator-crd")
}

// ModuleFolder asks the go command for the folder of a module in the module cache. The build of this package
// or "go mod download" puts it there.
func ModuleFolder(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding the module %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}
