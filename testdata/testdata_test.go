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

	"github.com/crdcache/crdcache/readapi/testcluster"
)

func TestCRDs(t *testing.T) {
	for _, c := range loadCRDs(t) {
		t.Run(c.Metadata.Name, func(t *testing.T) {
			if want := c.Spec.Names.Plural + "." + c.Spec.Group; c.Metadata.Name != want {
				t.Errorf("name is %q, want %q", c.Metadata.Name, want)
			}
			if len(c.Spec.Names.ShortNames) == 0 || len(c.Spec.Names.Categories) == 0 {
				t.Error("the CRD has no short name or no category")
			}
			stored := 0
			for _, v := range c.Spec.Versions {
				if v.Storage {
					stored++
				}
			}
			if stored != 1 {
				t.Errorf("has %d storage versions, want 1", stored)
			}
		})
	}
}

// TestCRDsCover verifies that the CRDs have the features that other tests need.
func TestCRDsCover(t *testing.T) {
	type column struct {
		Type     string
		Priority int
	}
	columns := map[column]bool{}
	got := map[string]bool{}
	for _, c := range loadCRDs(t) {
		got["scope "+c.Spec.Scope] = true
		if len(c.Spec.Versions) == 2 && c.Spec.Conversion.Strategy == "None" {
			got["two versions"] = true
		}
		for _, v := range c.Spec.Versions {
			_, status := v.Subresources["status"]
			got[fmt.Sprintf("status subresource %v", status)] = true
			if _, scale := v.Subresources["scale"]; scale {
				got["scale subresource"] = true
			}
			if len(v.SelectableFields) > 0 {
				got["selectable fields"] = true
			}
			for _, col := range v.Columns {
				columns[column{col.Type, col.Priority}] = true
			}
		}
	}
	want := map[string]bool{
		"scope Cluster": true, "scope Namespaced": true, "two versions": true, "scale subresource": true,
		"status subresource true": true, "status subresource false": true, "selectable fields": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("features of the CRDs (-want +got):\n%s", diff)
	}
	for _, typ := range []string{"string", "integer", "number", "boolean", "date"} {
		for priority := range 2 {
			if !columns[column{typ, priority}] {
				t.Errorf("no CRD has a printer column of type %s with priority %d", typ, priority)
			}
		}
	}
}

// TestObjectsFitTheirCRD verifies that an API server accepts all objects, and neither drops nor adds fields.
// Therefore reads from files and from a server are equal. TestAnswers of integration/readapi does the same
// with a real API server, which also validates the values.
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

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, o := range append(load(t, "crds"), load(t, "objects")...) {
		// The key has no version, because an object in another version is the same object.
		key := strings.Join([]string{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(),
			o.GetName()}, "|")
		if other, ok := seen[key]; ok {
			t.Errorf("%s is also in %s", o.where(), other)
		}
		seen[key] = o.file
	}
}

func TestReferencesResolve(t *testing.T) {
	objects := load(t, "objects")
	known := map[string]bool{}
	for _, o := range objects {
		known[o.GetKind()+"|"+o.GetNamespace()+"|"+o.GetName()] = true
	}
	for _, o := range objects {
		expect := func(kind, namespace, name string) {
			if !known[kind+"|"+namespace+"|"+name] {
				t.Errorf("%s: the referenced %s %q does not exist", o.where(), kind, name)
			}
		}
		spec, _, _ := unstructured.NestedMap(o.Object, "spec")
		switch o.GetKind() {
		case "Workload":
			expect("Environment", "", spec["environment"].(string))
		case "Release":
			expect("Workload", o.GetNamespace(), spec["workload"].(string))
		case "Route":
			for _, b := range spec["backends"].([]any) {
				expect("Workload", o.GetNamespace(), b.(map[string]any)["workload"].(string))
			}
		}
		for _, owner := range o.GetOwnerReferences() {
			namespace := o.GetNamespace()
			if owner.Kind == "Environment" {
				namespace = ""
			}
			expect(owner.Kind, namespace, owner.Name)
			if filepath.Base(o.file) != "50-owned.yaml" {
				t.Errorf("%s: owned objects belong in 50-owned.yaml, so that they can be left out", o.where())
			}
		}
	}
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
