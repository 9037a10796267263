// Package testdata_test checks the manifests in this folder without an API server. They must parse strictly,
// fit their CRDs, have valid references to each other, and have the variety that the README describes.
//
// The pattern ./... does not match folders named testdata. Run these tests with go test ./testdata.
package testdata_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
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
				for _, part := range []string{"spec", "status"} {
					for _, problem := range v.Schema.OpenAPIV3Schema.Properties[part].untidy("." + part) {
						t.Errorf("%s: %s", v.Name, problem)
					}
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
		t.Errorf("what the CRDs cover (-want +got):\n%s", diff)
	}
	for _, typ := range []string{"string", "integer", "number", "boolean", "date"} {
		for priority := range 2 {
			if !columns[column{typ, priority}] {
				t.Errorf("no CRD has a printer column of type %s with priority %d", typ, priority)
			}
		}
	}
}

func TestObjectsFitTheirCRD(t *testing.T) {
	kinds := served(loadCRDs(t))
	namespaces := map[string]bool{}
	for _, o := range load(t, "objects") {
		if problems := validation.IsDNS1123Subdomain(o.GetName()); len(problems) > 0 {
			t.Errorf("%s: bad name: %v", o.where(), problems)
		}
		for _, problem := range metadataProblems(o.Unstructured) {
			t.Errorf("%s: %s", o.where(), problem)
		}
		if o.GetKind() == "Namespace" && o.GetAPIVersion() == "v1" {
			namespaces[o.GetName()] = true
			continue
		}
		kind, ok := kinds[o.GroupVersionKind()]
		if !ok {
			t.Errorf("%s: no CRD serves %s", o.where(), o.GroupVersionKind())
			continue
		}
		for _, problem := range kind.version.Schema.OpenAPIV3Schema.problemsOfObject(o.Object) {
			t.Errorf("%s: %s", o.where(), problem)
		}
		switch ns := o.GetNamespace(); {
		case kind.crd.Spec.Scope == "Cluster" && ns != "":
			t.Errorf("%s: is cluster-scoped and has a namespace", o.where())
		case kind.crd.Spec.Scope == "Namespaced" && !namespaces[ns]:
			t.Errorf("%s: no manifest before it creates the namespace", o.where())
		}
	}
}

// metadataProblems checks the syntax of labels and annotations.
func metadataProblems(o *unstructured.Unstructured) []string {
	var found []string
	for key, value := range o.GetLabels() {
		found = append(found, validation.IsQualifiedName(key)...)
		found = append(found, validation.IsValidLabelValue(value)...)
	}
	for key := range o.GetAnnotations() {
		found = append(found, validation.IsQualifiedName(key)...)
	}
	return found
}

// problemsOfObject checks a complete object. The API server defines metadata, so only its presence is checked
// here.
func (n *node) problemsOfObject(object map[string]any) []string {
	rest := map[string]any{}
	for k, v := range object {
		if k != "metadata" {
			rest[k] = v
		}
	}
	return n.problems("", rest)
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
