package readapi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Refuser is a Collection that can refuse requests, for example of a type that the source of a copy could not
// read.
type Refuser interface {
	Collection
	// Refused returns the error for all requests for a version of the type, or nil if it is served.
	Refused(version string) error
}

// TablePrinter is a Collection that prints its own tables, as a kube-apiserver does for built-in types.
type TablePrinter interface {
	Collection
	// TableColumns returns the columns, beginning with the name. If there are none, the columns of the type
	// are used.
	TableColumns() []metav1.TableColumnDefinition
	// Cells returns the cells of an object.
	Cells(Object) ([]any, error)
	// Sort sorts the objects of a table. They are sorted by key before.
	Sort([]Object)
}

func (t *resource) tablePrinter() (TablePrinter, bool) {
	p, ok := t.collection.(TablePrinter)
	return p, ok && len(p.TableColumns()) > 0
}

func (t *resource) refused() error {
	if r, ok := t.collection.(Refuser); ok {
		return r.Refused(t.gv.Version)
	}
	return nil
}
