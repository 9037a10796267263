package indexers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// configWithBothErrors has errors in the config itself, and errors that only the schemas reveal.
const configWithBothErrors = `  - name: w
    match: {group: demo.crdcache.dev, resource: workloads}
    prune: {remove: [.spec.image]}
    indexes:
    - {name: a, pathes: .spec.tier}
    - {name: b, path: .spec.tire}
    - {name: c, each: ".spec.ports[", key: [{name: x, path: .nowhere}, {name: y, path: $.spec.nowhere}]}
    - {name: d, path: .metadata.labels.example.com/team}
    - {name: e, path: .spec.tier, type: Int, when: '@.spec.paused'}
    - {name: f, path: .spec.image}
    - {name: g, path: .spec.tier, order: Sorted, default: '1', type: [x]}
  - name: nothing
  - name: other
    match: {group: demo.crdcache.dev, resource: route}
`

func checkSources(text string, definitions []*crd.Definition, err error) (*indexers.Config, error) {
	source := indexers.Source{Name: "c.yaml", Data: []byte(strings.Replace(configWith(text), "NAME", "n", 1))}
	return indexers.CheckSources(indexers.CheckOptions{Definitions: func([]string) ([]*crd.Definition,
		error) {
		return definitions, err
	}}, source)
}

// TestDecodingAndSchemaErrorsTogether verifies that CheckSources reports all errors in the order of the file,
// one for each cause.
func TestDecodingAndSchemaErrorsTogether(t *testing.T) {
	config, err := checkSources(configWithBothErrors, definitions(t), nil)
	var configErr *indexers.ConfigError
	if !errors.As(err, &configErr) || config != nil {
		t.Fatalf("CheckSources of a broken config = %v, %v; want only a *ConfigError", config, err)
	}
	positions := func(all []indexers.Diagnostic) (out []string) {
		for _, d := range all {
			text, _, _ := strings.Cut(d.String(), ": ")
			out = append(out, strings.TrimPrefix(text, "c.yaml:")+" "+string(d.Code))
		}
		return out
	}
	want := []string{"10:17 E001", "11:28 E301", "12:35 E102", "13:47 E020", "14:41 E307", "16:70 E003",
		"17:5 E004", "19:49 E304"}
	if diff := cmp.Diff(want, positions(configErr.Diagnostics)); diff != "" {
		t.Errorf("positions of the errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"14:54 W308", "15:23 W001"}, positions(configErr.Warnings)); diff != "" {
		t.Errorf("positions of the warnings (-want +got):\n%s", diff)
	}
}

func TestCheckSources(t *testing.T) {
	validConfig := "  - name: w\n    match: {group: demo.crdcache.dev, resource: workloads}\n    indexes: [{name: a, path: .metadata.name, when: '@.spec.paused'}]\n"
	config, err := checkSources(validConfig, definitions(t), nil)
	if err != nil || len(config.Resources) != 1 || len(config.Warnings) != 1 {
		t.Errorf("CheckSources of a valid config = %+v, %v; want one resource and one warning", config, err)
	}
	unreachable := errors.New("the server does not answer")
	if config, err = checkSources(validConfig, nil, unreachable); !errors.Is(err, unreachable) ||
		config != nil {
		t.Errorf("CheckSources without the CRDs = %+v, %v; want only the error %q", config, err, unreachable)
	}
	var configErr *indexers.ConfigError
	_, err = checkSources(configWithBothErrors, nil, unreachable)
	if !errors.Is(err, unreachable) || !errors.As(err, &configErr) || len(configErr.Diagnostics) != 5 {
		t.Errorf("CheckSources of a broken config without the CRDs: got the error %v, want 5 findings and %q",
			err, unreachable)
	}
	if config, err = indexers.Load("nowhere.yaml"); !errors.As(err, &configErr) || config != nil ||
		configErr.Diagnostics[0].Code != "E017" {
		t.Errorf("Load of a file that does not exist = %+v, %v; want only a finding E017", config, err)
	}
}
