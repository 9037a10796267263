package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/config"
)

// selectable reports a field selector over a field that custom resources cannot be selected by: the server
// would reject every list.
func (k *checker) selectable(version crd.Version) {
	if k.resource.FieldSelector == nil {
		return
	}
	fields := []string{"metadata.name", "metadata.namespace"}
	for _, field := range version.SelectableFields {
		fields = append(fields, strings.TrimPrefix(field, "."))
	}
	for _, r := range k.resource.FieldSelector.Requirements() {
		if slices.Contains(fields, r.Field) {
			continue
		}
		hint := "the server selects by " + strings.Join(fields, ", ") + "; use an index for others"
		if near := config.Nearest(r.Field, fields); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		k.fail(config.CodeUnselectable, k.resource.At.Fields, fmt.Sprintf("%s has no selectable field %q",
			k.name, r.Field), hint)
	}
}
