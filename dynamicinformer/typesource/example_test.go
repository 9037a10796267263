package typesource_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// fixed is a Source of constant types.
type fixed []typesource.Type

func (f fixed) Subscribe(listener typesource.Listener) (stop func()) {
	for _, t := range f {
		listener.SetType(t)
	}
	listener.SetComplete()
	return func() {}
}

// printer is a Listener that prints the types.
type printer struct{}

func (printer) SetType(t typesource.Type)                  { fmt.Println(t.Kind, t.Versions) }
func (printer) RemoveType(gr schema.GroupResource, _ bool) { fmt.Println(gr, "removed") }
func (printer) SetUnknown(map[schema.GroupVersion]error)   {}
func (printer) SetComplete()                               { fmt.Println("complete") }

// Give a factory a fixed set of types.
func Example() {
	types := fixed{{
		GroupResource: schema.GroupResource{Group: "example.com", Resource: "widgets"},
		Kind:          "Widget", Namespaced: true, Versions: []string{"v1"}, Established: true,
	}}
	stop := types.Subscribe(printer{}) // dynamicinformer.Options.Types takes the source
	defer stop()

	// Output:
	// Widget [v1]
	// complete
}
