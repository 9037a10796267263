package live

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/readapi"
)

// selectableFields returns the fields that a CustomResourceDefinition declares for field selectors.
func selectableFields(t readapi.Type, version string) []string {
	if v := t.Version(version); v != nil {
		return v.SelectableFields
	}
	return nil
}

// droppedSelectableField returns a field that clients can select by and that the cache does not store. It
// returns "" if there is none, or if the definition is unknown. Requests by such a field are forwarded.
func (s *Server) droppedSelectableField(informer *dynamicinformer.Informer) string {
	stored, ok := s.definitions.Informer().Snapshot().Stored(informer.GVR().GroupResource().String())
	if !ok {
		return ""
	}
	typ, err := definedType(stored)
	if err != nil {
		return ""
	}
	fields := selectableFields(typ, informer.GVR().Version)
	if i := slices.IndexFunc(fields, informer.Drops); i >= 0 {
		return fields[i]
	}
	return ""
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
