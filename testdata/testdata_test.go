// Package testdata_test checks the manifests in this folder without an API server. They must parse strictly,
// fit their CRDs, have valid references to each other, and have the variety that the README describes.
//
// The pattern ./... does not match folders named testdata. Run these tests with go test ./testdata.
package testdata_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestObjectsFitTheirCRD verifies that an API server accepts all objects, and neither drops nor adds fields.
// Therefore reads from files and from a server are equal. TestAnswers of test/integration/readapi does the
// same with a real API server, which also validates the values.
func TestObjectsFitTheirCRD(t *testing.T) {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Paths: []string{"crds", "objects"}})
	if err != nil {
		t.Fatal(err)
	}
	config := cluster.Config()
	config.WarningHandler = rest.NoWarnings{} // of deprecated versions
	client := dynamic.NewForConfigOrDie(config)
	for _, o := range load(t, "objects") {
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		stored, err := client.Resource(plural).Namespace(o.GetNamespace()).Get(t.Context(), o.GetName(),
			metav1.GetOptions{})
		if err != nil {
			t.Errorf("Get of %s: %v", o.where(), err)
			continue
		}
		if diff := cmp.Diff(withoutMetadata(o.Unstructured), withoutMetadata(stored)); diff != "" &&
			o.GetKind() != "Namespace" {
			t.Errorf("%s (-manifest +stored):\n%s", o.where(), diff)
		}
	}
}

func withoutMetadata(o *unstructured.Unstructured) map[string]any {
	content := maps.Clone(o.Object)
	delete(content, "metadata")
	return content
}

// TestReadme checks that the table of files is complete and has the right counts.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	perFile := map[string]int{}
	for _, m := range append(load(t, "crds"), load(t, "objects")...) {
		perFile[m.file]++
	}
	for file, n := range perFile {
		row := fmt.Sprintf("| `%s` | %d |", filepath.ToSlash(file), n)
		if !slices.ContainsFunc(strings.Split(string(readme), "\n"), func(line string) bool {
			return strings.HasPrefix(line, row)
		}) {
			t.Errorf("README.md has no row that starts with %q", row)
		}
	}
}
