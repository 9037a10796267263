package session

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/internal/packed"
)

// onlyNames fails to print what was decoded for it.
type onlyNames struct{ print.NamePrinter }

func (onlyNames) Print(*unstructured.Unstructured) error { return errors.New("it was decoded") }

// TestNamesAreNotDecoded: printing names reads no more of packed objects than that.
func TestNamesAreNotDecoded(t *testing.T) {
	object, err := (&packed.Packer{}).Pack([]byte(`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a","namespace":"web"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	names, err := print.New(print.Format{Name: print.Name}, &out, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := printItem(object, onlyNames{names.(print.NamePrinter)}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "gizmo.example.com/a\n" {
		t.Errorf("printed %q", out.String())
	}
}
