package packed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// readManifests returns the objects of the repository's test data as JSON: definitions, and objects of many
// kinds.
func readManifests(t testing.TB) [][]byte {
	t.Helper()
	var all [][]byte
	for _, pattern := range []string{"../../testdata/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no manifests: %v", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for document := range bytes.SplitSeq(text, []byte("\n---")) {
				converted, err := yaml.YAMLToJSON(document)
				if err != nil {
					t.Fatalf("YAMLToJSON of %s: %v", file, err)
				}
				all = append(all, converted)
			}
		}
	}
	return all
}

// TestPackTruncated packs every prefix and every suffix of an object.
func TestPackTruncated(t *testing.T) {
	packer := testPackers(t)["paths"]
	document := certificate(1)
	for n := range document {
		compareWithUnstructured(t, packer, document[:n])
		compareWithUnstructured(t, packer, document[n:])
		if o, _, more := packer.TryNext(document[:n], 0); o != nil || !more {
			t.Fatalf("after %d bytes: packed %v, truncated %v", n, o != nil, more)
		}
	}
}

// TestPackDamaged verifies that Pack and unstructured.UnmarshalJSON agree about objects with changed bytes.
func TestPackDamaged(t *testing.T) {
	packers := testPackers(t)
	document := certificate(1)
	for n := 0; n < len(document); n += 5 {
		for _, c := range []byte("\"}0\xff") {
			damaged := bytes.Clone(document)
			damaged[n] = c
			compareWithUnstructured(t, packers["paths"], damaged)
		}
	}
}
