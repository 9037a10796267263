package readapi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Refusing is a Collection whose objects cannot all be read, as those of a type that a server has and a copy
// of it has not.
type Refusing interface {
	Collection
	// Refused is the error of every request for a version of the type; nil: it is served.
	Refused(version string) error
}

// Printing is a Collection that prints its objects by itself, as a kube-apiserver does with those of built-in
// types.
type Printing interface {
	Collection
	// TableColumns are the columns of its tables, the first of which is the name. Without any, tables are
	// made from the columns of the type.
	TableColumns() []metav1.TableColumnDefinition
	// Cells are those of an object.
	Cells(Object) ([]any, error)
	// Arrange puts the objects of a table in order. They come in that of lists.
	Arrange([]Object)
}

// printing returns the collection if it prints by itself.
func (t *resource) printing() (Printing, bool) {
	p, ok := t.collection.(Printing)
	return p, ok && len(p.TableColumns()) > 0
}

// refused is why nothing of the resource is served.
func (t *resource) refused() error {
	if r, ok := t.collection.(Refusing); ok {
		return r.Refused(t.gv.Version)
	}
	return nil
}
