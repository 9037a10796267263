package cli_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var updateSchemas = flag.Bool("update-schemas", false, "write the schemas of the API server into schemas.zip")

const schemasPath = "../../../cmd/crdcache/internal/columns/schemas.zip"

// TestBuiltinSchemas verifies that the schemas for files are those of an API server of the same version.
func TestBuiltinSchemas(t *testing.T) {
	var index struct{ Paths map[string]any }
	readRaw(t, "/openapi/v3", &index)
	files := map[string][]byte{}
	for path := range index.Paths {
		group, version, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/"), "/")
		if version == "" {
			group, version = "", group
		}
		if !strings.HasPrefix(path, "api") || !scheme.Scheme.IsGroupRegistered(group) &&
			group != "apiextensions.k8s.io" && group != "apiregistration.k8s.io" {
			continue
		}
		if text := schemasOf(t, path, group, version); text != nil {
			files[strings.TrimPrefix(group+"/"+version, "/")+".json"] = text
		}
	}
	if *updateSchemas {
		writeSchemas(t, files)
	}
	archive, err := zip.OpenReader(schemasPath)
	must(t, err)
	defer archive.Close()
	got := map[string][]byte{}
	for _, file := range archive.File {
		text, err := fs.ReadFile(archive, file.Name)
		must(t, err)
		got[file.Name] = text
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("schemas.zip: run the test with -update-schemas (-server +file):\n%.2000s", diff)
	}
}

func writeSchemas(t *testing.T, files map[string][]byte) {
	t.Helper()
	var content bytes.Buffer
	archive := zip.NewWriter(&content)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := archive.Create(name)
		must(t, err)
		_, _ = file.Write(files[name]) // Close reports the error
	}
	must(t, archive.Close())
	must(t, os.WriteFile(schemasPath, content.Bytes(), 0o600))
}

func readRaw(t *testing.T, path string, target any) {
	t.Helper()
	must(t, json.Unmarshal([]byte(harness.Kubectl(t, "get", "--raw", path)), target))
}

// schemasOf returns the schemas of the kinds of a document, and those to which they refer. It returns nil for
// a document without kinds.
func schemasOf(t *testing.T, path, group, version string) []byte {
	t.Helper()
	var document struct {
		Components struct{ Schemas map[string]map[string]any }
	}
	readRaw(t, "/openapi/v3/"+path, &document)
	all := document.Components.Schemas
	kinds, others := map[string]any{}, map[string]any{}
	var addReferences func(value any)
	addReferences = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			reference, _ := value["$ref"].(string)
			name := strings.TrimPrefix(reference, "#/components/schemas/")
			if name != "" && others[name] == nil {
				others[name] = all[name]
				addReferences(map[string]any(all[name]))
			}
			for _, child := range value {
				addReferences(child)
			}
		case []any:
			for _, child := range value {
				addReferences(child)
			}
		}
	}
	for _, schema := range all {
		properties, _ := schema["properties"].(map[string]any)
		gvks, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(gvks) != 1 || properties["metadata"] == nil || properties["items"] != nil {
			continue
		}
		gvk := gvks[0].(map[string]any)
		if gvk["group"] == group && gvk["version"] == version {
			kinds[gvk["kind"].(string)] = schema
			addReferences(map[string]any(schema))
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"kinds": kinds, "others": others})
	must(t, err)
	return text
}
