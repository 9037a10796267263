package controllerruntime_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// exception is a spec of controller-runtime's suite that fails with this cache, with the reason.
type exception struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// readExceptions reads the list of exceptions.
func readExceptions(t *testing.T) []exception {
	t.Helper()
	text, err := os.ReadFile("exceptions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Exceptions []exception `json:"exceptions"`
	}
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		t.Fatal(err)
	}
	return list.Exceptions
}

// TestDocumentedExceptions checks that the documentation lists exactly the exceptions.
func TestDocumentedExceptions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/controller-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| spec: ") {
			documented++
		}
	}
	list := readExceptions(t)
	for _, e := range list {
		if e.Reason == "" {
			t.Errorf("%q has no reason", e.Name)
		}
		if line := "| spec: " + e.Name + " | " + e.Reason + " |\n"; !strings.Contains(string(page), line) {
			t.Errorf("docs/controller-runtime.md does not contain the line %q", line)
		}
	}
	if documented != len(list) {
		t.Errorf("docs/controller-runtime.md lists %d specs that fail, want the %d of exceptions.yaml",
			documented, len(list))
	}
}
