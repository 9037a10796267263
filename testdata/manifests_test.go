package testdata_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifest is one document of one file.
type manifest struct {
	*unstructured.Unstructured
	file string
}

// where names the manifest in a failure message.
func (m manifest) where() string {
	return fmt.Sprintf("%s: %s %s/%s", m.file, m.GetKind(), m.GetNamespace(), m.GetName())
}

// load reads all documents below dir in the order of the file names.
func load(t *testing.T, dir string) []manifest {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %s (error: %v)", dir, err)
	}
	var all []manifest
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(data)
		if err != nil {
			t.Fatalf("decoding %s: %v", file, err)
		}
		for _, o := range objects {
			all = append(all, manifest{Unstructured: o, file: file})
		}
	}
	return all
}

// decode splits a YAML stream and decodes each document. Duplicate keys and documents that are not
// objects are errors. Integers stay integers, so that large ones are not rounded.
func decode(data []byte) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []*unstructured.Unstructured
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		json, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(json); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if o.GetAPIVersion() == "" || o.GetName() == "" {
			return nil, fmt.Errorf("document %d: needs apiVersion and metadata.name", n)
		}
		objects = append(objects, o)
	}
}
