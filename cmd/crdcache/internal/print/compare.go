package print

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/display"
)

// redactor replaces the values of Secrets by marks. Equal values get equal marks while the process runs.
var redactor = display.NewRedactor(false)

// comparison matches list elements by the fields that identify them in Kubernetes' types and in most CRDs.
var comparison = display.Comparison{
	IdentityFields: []string{"name", "type", "key", "uid"},
	Ignore: func(path []display.Step) bool {
		return len(path) <= 3 && slices.Contains(ignoredFields, PathText(path))
	}}

// Compare returns the fields that differ between two states of an object, ordered by path. The values of
// Secrets are redacted.
func Compare(resource schema.GroupResource, before, after map[string]any) []display.Change {
	return comparison.Changes(redactor.RedactPair(resource, before, after))
}

// ignoredFields change with every write or over time, or repeat other fields.
var ignoredFields = []string{
	pathStep(RowField), ".metadata.resourceVersion", ".metadata.generation",
	".metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
}

// PathText formats a path, with list elements by name or by index.
func PathText(path []display.Step) string {
	var text strings.Builder
	for _, s := range path {
		switch {
		case s.Index < 0:
			text.WriteString(pathStep(s.Key))
		case s.IdentityField != "":
			fmt.Fprintf(&text, "[%s=%v]", s.IdentityField, s.Element.(map[string]any)[s.IdentityField])
		default:
			fmt.Fprintf(&text, "[%d]", s.Index)
		}
	}
	return text.String()
}

// pathStep returns the text that appends a key to a path.
func pathStep(key string) string {
	if strings.ContainsAny(key, ".[]'\" /") || key == "" {
		return "['" + strings.ReplaceAll(key, "'", `\'`) + "']"
	}
	return "." + key
}
