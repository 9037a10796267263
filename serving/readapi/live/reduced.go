package live

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/serving/readapi"
)

// withoutDropped returns a type without the selectable fields that an informer does not store, and these
// fields. Each object would look as if it had no value.
func withoutDropped(t readapi.Type, informer *dynamicinformer.Informer) (*readapi.Type, []string) {
	var dropped []string
	t.Versions = slices.Clone(t.Versions)
	if v := t.Version(informer.GVR().Version); v != nil {
		v.SelectableFields = slices.DeleteFunc(slices.Clone(v.SelectableFields), func(field string) bool {
			isDropped := informer.Drops(field)
			if isDropped {
				dropped = append(dropped, field)
			}
			return isDropped
		})
	}
	return &t, dropped
}

// warnDroppedColumns adds a warning about the columns that read fields which the cache does not store.
func (c *collection) warnDroppedColumns(header http.Header) {
	var dropped []string
	if v := c.typ.Version(c.gvr.Version); v != nil {
		for _, column := range v.Columns {
			if c.drops(column.JSONPath) {
				dropped = append(dropped, column.Name)
			}
		}
	}
	if len(dropped) > 0 {
		readapi.AddWarning(header, fmt.Sprintf("the cache does not store the fields of these columns, so their cells can be empty: %s",
			strings.Join(dropped, ", ")))
	}
}

// drops reports whether the cache may lack values of a JSONPath.
func (c *collection) drops(path string) bool {
	parsed, err := jsonpath.Compile(path)
	if err != nil {
		return c.informer.History().Pruned
	}
	return slices.ContainsFunc(parsed.Reads(), func(r jsonpath.Read) bool {
		return slices.ContainsFunc(r.Fields(), c.informer.Drops)
	})
}
