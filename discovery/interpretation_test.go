package discovery_test

import (
	"slices"
	"testing"

	"github.com/crdcache/crdcache/discovery"
)

func TestInterpretationMatches(t *testing.T) {
	names, versions := []string{"widgets", "widget", "Widget", "wd"}, []string{"v2", "v1"}
	for text, want := range map[string]bool{
		"widgets": true, "Widget": true, "wd": true, "gadgets": false, "widgets.example.com": true,
		"widgets.exam":           true,
		"widgets.v1.example.com": true, "widgets.v3.example.com": false,
		"widgets.other.com": false, "*": true,
		"*.example.com": true, "*.other.com": false, "wid*.*.com": true, "wd*": false, "widgets.*": true,
		"*.v2.example.com": true,
	} {
		name, err := discovery.ParseName(text)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(name.Interpretations,
			func(r discovery.Interpretation) bool { return r.Matches("example.com", versions, names) })
		if got != want {
			t.Errorf("Matches() for the name %s = %v, want %v", text, got, want)
		}
	}
}
