package indexers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// brokenTwice has errors in the config itself, and errors that only the schemas reveal.
const brokenTwice = `  - name: w
    match: {group: demo.crdcache.dev, resource: workloads}
    prune: {remove: [.spec.image]}
    indexes:
    - {name: a, pathes: .spec.tier}
    - {name: b, path: .spec.tire}
    - {name: c, each: ".spec.ports[", key: [{name: x, path: .nowhere}, {name: y, path: $.spec.nowhere}]}
    - {name: d, path: .metadata.labels.example.com/team}
    - {name: e, path: .spec.tier, type: int, when: '@.spec.paused'}
    - {name: f, path: .spec.image}
    - {name: g, path: .spec.tier, order: sorted, missing: {value: 1}, type: [x]}
  - name: nothing
  - name: other
    match: {group: demo.crdcache.dev, resource: route}
`

func checkSources(text string, definitions []*crd.Definition, err error) (*indexers.Config, error) {
	source := indexers.Source{Name: "c.yaml", Data: []byte(strings.Replace(header(text), "NAME", "n", 1))}
	return indexers.CheckSources(indexers.CheckOptions{Definitions: func([]string) ([]*crd.Definition,
		error) {
		return definitions, err
	}}, source)
}

// TestDecodingAndSchemaErrorsTogether verifies that CheckSources reports all errors in the order of the file,
// one for each cause.
func TestDecodingAndSchemaErrorsTogether(t *testing.T) {
	config, err := checkSources(brokenTwice, definitions(t), nil)
	var wrong *indexers.ConfigError
	if !errors.As(err, &wrong) || config != nil {
		t.Fatalf("got %v, %v", config, err)
	}
	places := func(all []indexers.Diagnostic) (out []string) {
		for _, d := range all {
			text, _, _ := strings.Cut(d.String(), ": ")
			out = append(out, strings.TrimPrefix(text, "c.yaml:")+" "+string(d.Code))
		}
		return out
	}
	want := []string{"10:17 E001", "11:28 E301", "12:35 E102", "13:47 E020", "14:41 E307", "16:77 E003",
		"17:5 E004", "19:49 E304"}
	if diff := cmp.Diff(want, places(wrong.Diagnostics)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"14:54 W308", "15:23 W001"}, places(wrong.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestCheckSources(t *testing.T) {
	sound := "  - name: w\n    match: {group: demo.crdcache.dev, resource: workloads}\n    indexes: [{name: a, path: .metadata.name, when: '@.spec.paused'}]\n"
	config, err := checkSources(sound, definitions(t), nil)
	if err != nil || len(config.Resources) != 1 || len(config.Warnings) != 1 {
		t.Errorf("got %+v, %v", config, err)
	}
	away := errors.New("the server does not answer")
	if config, err = checkSources(sound, nil, away); !errors.Is(err, away) || config != nil {
		t.Errorf("got %+v, %v", config, err)
	}
	var wrong *indexers.ConfigError
	if _, err = checkSources(brokenTwice, nil, away); !errors.Is(err, away) || !errors.As(err, &wrong) ||
		len(wrong.Diagnostics) != 5 {
		t.Errorf("got %v", err)
	}
	if config, err = indexers.Load("nowhere.yaml"); !errors.As(err, &wrong) || config != nil ||
		wrong.Diagnostics[0].Code != "E017" {
		t.Errorf("got %+v, %v", config, err)
	}
}
