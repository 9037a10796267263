package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// typePage is the page of a type: its columns, indexes and references.
type typePage struct {
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	// Hidden is set if the values of objects are not shown.
	Hidden bool `json:"hidden,omitempty"`
	// Reduced is set if the cache does not store all fields.
	Reduced    bool     `json:"reduced,omitempty"`
	Columns    []column `json:"columns"`
	Indexes    []index  `json:"indexes"`
	References []string `json:"references,omitempty"`
}

type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // integer, number, string, boolean or date
	Description string `json:"description,omitempty"`
	// Wide columns are shown if there is room, or on request.
	Wide bool `json:"wide,omitempty"`
	// Sort is the sort key of the column. It is empty if the page cannot sort by the column.
	Sort string `json:"sort,omitempty"`
}

type index struct {
	Name   string   `json:"name"`
	Parts  []string `json:"parts,omitempty"` // the names of the parts of a composite index
	Types  []string `json:"types,omitempty"`
	Sorted bool     `json:"sorted,omitempty"`
}

// requestedType returns the type of a request. It returns an error if the user may not see any object of the
// type.
func (h *Handler) requestedType(r *http.Request) (*visibleType, error) {
	typ := h.source.find(r.FormValue("type"))
	if typ == nil {
		return nil, notFound("this type is not cached")
	}
	if err := h.setScopes(r, typ); err != nil {
		return nil, err
	}
	if typ.scope.empty() {
		return nil, forbiddenError(cmp.Or(typ.scope.Reason, "you are not allowed to see this type"))
	}
	return typ, nil
}

func (h *Handler) typeDetails(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	kind := h.source.kind(typ)
	page := typePage{ID: typ.id, Kind: kind.Kind, Namespaced: kind.Namespaced, Hidden: h.hidesValues(typ),
		Indexes: h.indexes(typ), Reduced: isReduced(typ.informer)}
	for _, c := range h.tableColumns(typ) {
		page.Columns = append(page.Columns, column{Name: c.Name, Type: c.Type, Description: c.Description,
			Wide: c.Priority > 0, Sort: sortPath(c.JSONPath)})
	}
	if h.requireAll(r) == nil && !page.Hidden {
		page.References = naming.Texts(typ.references, func(r *indexers.Reference) string { return r.Name })
	}
	return page, nil
}

// indexes returns the indexes that can be queried, the namespace index first.
func (h *Handler) indexes(typ *visibleType) []index {
	indexes := []index{{Name: namespaceIndex}}
	if h.hidesValues(typ) {
		return indexes
	}
	for _, i := range typ.indexes {
		indexes = append(indexes, index{Name: i.Name, Parts: i.Keys, Types: typeNames(i), Sorted: i.Sorted})
	}
	return indexes
}

func typeNames(i *indexers.Index) []string {
	if strings.Join(i.Types(), "") == "" {
		return nil
	}
	return i.Types()
}

// tableColumns returns the columns after namespace and name: the columns of the CRD and the age, as in
// kubectl.
func (h *Handler) tableColumns(typ *visibleType) []crd.Column {
	var columns []crd.Column
	hasAge := false
	if !h.hidesValues(typ) {
		for _, c := range h.source.columns(typ) {
			columns = append(columns, c)
			hasAge = hasAge || c.Name == "Age"
		}
	}
	if !hasAge {
		columns = append(columns, crd.Column{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"})
	}
	return columns
}

func sortPath(path string) string {
	if path == ".metadata.creationTimestamp" {
		return "age"
	}
	if _, err := jsonpath.Compile(path); err != nil || strings.ContainsAny(path, ", \t") {
		return ""
	}
	return path
}
