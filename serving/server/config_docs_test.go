package server

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFieldsAreDocumented verifies that docs/crdcached.md has each field of a config file with its default.
func TestFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/crdcached.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| field | default | meaning |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	got := Config{APIVersion: ConfigAPIVersion, Kind: ConfigKind}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			t.Fatalf("the row %q has not three cells", row)
		}
		values := strings.Split(strings.TrimSpace(cells[2]), ", ")
		for i, name := range strings.Split(strings.TrimSpace(cells[1]), ", ") {
			name = strings.Trim(name, "`")
			documented = append(documented, name)
			if i >= len(values) {
				continue
			}
			value := strings.Trim(values[i], "`")
			if _, err := strconv.Atoi(value); err != nil && value == values[i] {
				continue // the default is described in words
			}
			nested := strings.ReplaceAll(name, ".", ": {") + ": " + value + strings.Repeat("}",
				strings.Count(name, "."))
			if err := decode([]byte(nested), &got); err != nil {
				t.Errorf("decoding %s: %v", nested, err)
			}
		}
	}
	want := fieldNames(reflect.TypeFor[Config](), "")
	slices.Sort(documented)
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("documented fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(DefaultConfig(), got); diff != "" {
		t.Errorf("documented defaults (-want +got):\n%s", diff)
	}
}

// TestFieldsOfChart verifies that the schema of the Helm chart has each field of a config file that the chart
// does not set itself.
func TestFieldsOfChart(t *testing.T) {
	text, err := os.ReadFile("../packaging/crdcached/chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]object `json:"properties"`
	}
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	got := []string{"types", "indexConfigs", "persistenceDirectory"}
	var add func(object, string)
	add = func(o object, path string) {
		for name, field := range o.Properties {
			if len(field.Properties) == 0 {
				got = append(got, path+name)
			}
			add(field, path+name+".")
		}
	}
	add(schema.Properties["config"], "")
	slices.Sort(got)
	if diff := cmp.Diff(fieldNames(reflect.TypeFor[Config](), ""), got); diff != "" {
		t.Errorf("fields (-config +schema):\n%s", diff)
	}
}

// fieldNames returns the paths of all fields of a config, sorted.
func fieldNames(of reflect.Type, path string) []string {
	var names []string
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "apiVersion" || name == "kind":
		case isConfigStruct(field.Type):
			names = append(names, fieldNames(field.Type, fmt.Sprintf("%s%s.", path, name))...)
		default:
			names = append(names, path+name)
		}
	}
	slices.Sort(names)
	return names
}
