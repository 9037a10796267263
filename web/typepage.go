package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/jsonpath"
	"github.com/crdcache/crdcache/internal/printcolumn"
)

// typePage is what is said of a type besides its figures.
type typePage struct {
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	// Hidden says that the values of objects are not shown.
	Hidden     bool     `json:"hidden,omitempty"`
	Columns    []column `json:"columns"`
	Indexes    []index  `json:"indexes"`
	References []string `json:"references,omitempty"`
}

// column is a column of the table of a type.
type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // integer, number, string, boolean or date
	Description string `json:"description,omitempty"`
	// Wide columns are shown where there is room, or when asked for.
	Wide bool `json:"wide,omitempty"`
	// Sort is what to sort by for the order of this column; empty where there is none.
	Sort string `json:"sort,omitempty"`
}

// index is an index of a type.
type index struct {
	Name   string   `json:"name"`
	Parts  []string `json:"parts,omitempty"` // the names of the parts of a composite index
	Types  []string `json:"types,omitempty"`
	Sorted bool     `json:"sorted,omitempty"`
	Unique bool     `json:"unique,omitempty"`
}

// named returns the type that a request names. It fails where its sender sees nothing of that.
func (h *Handler) named(r *http.Request) (*kept, error) {
	k := h.source.find(r.FormValue("type"))
	if k == nil {
		return nil, notFound("this type is not kept")
	}
	if err := h.scoped(r, k); err != nil {
		return nil, err
	}
	if k.scope.empty() {
		return nil, refuse(cmp.Or(k.scope.Reason, "you may not see this type"))
	}
	return k, nil
}

func (h *Handler) typeOf(r *http.Request) (any, error) {
	k, err := h.named(r)
	if err != nil {
		return nil, err
	}
	kind := h.source.kind(k)
	page := typePage{ID: k.id, Kind: kind.Kind, Namespaced: kind.Namespaced, Hidden: h.hidden(k),
		Indexes: h.indexes(k)}
	for _, c := range h.declared(k) {
		page.Columns = append(page.Columns, column{Name: c.Name, Type: c.Type, Description: c.Description,
			Wide: c.Priority > 0, Sort: sortPath(c.JSONPath)})
	}
	if h.needAll(r) == nil && !page.Hidden {
		for _, reference := range k.references {
			page.References = append(page.References, reference.Name)
		}
	}
	return page, nil
}

// indexes are those that can be asked for, the one by namespace first.
func (h *Handler) indexes(k *kept) []index {
	all := []index{{Name: namespaceIndex}}
	if h.hidden(k) {
		return all
	}
	for _, i := range k.indexes {
		all = append(all, index{Name: i.Name, Parts: i.Keys, Types: types(i), Sorted: i.Sorted,
			Unique: i.Unique})
	}
	return all
}

func types(i *indexers.Index) []string {
	if strings.Join(i.Types(), "") == "" {
		return nil
	}
	return i.Types()
}

// declared are the columns of the table behind namespace and name: those of the definition, with the age, as
// kubectl shows them.
func (h *Handler) declared(k *kept) []printcolumn.Definition {
	var all []printcolumn.Definition
	aged := false
	if !h.hidden(k) {
		for _, c := range h.source.columns(k) {
			all = append(all, definitionOf(c))
			aged = aged || c.Name == "Age"
		}
	}
	if !aged {
		all = append(all, printcolumn.Definition{Name: "Age", Type: "date",
			JSONPath: ".metadata.creationTimestamp"})
	}
	return all
}

func definitionOf(c crd.Column) printcolumn.Definition {
	return printcolumn.Definition{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description,
		Priority: c.Priority, JSONPath: c.JSONPath}
}

// sortPath is what a query sorts by for the order of a column.
func sortPath(path string) string {
	if path == ".metadata.creationTimestamp" {
		return "age"
	}
	if _, err := jsonpath.Compile(path); err != nil || strings.ContainsAny(path, ", \t") {
		return ""
	}
	return path
}
