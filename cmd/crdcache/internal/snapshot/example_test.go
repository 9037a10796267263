package snapshot_test

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/snapshot"
)

func Example() {
	var out bytes.Buffer
	w := snapshot.NewWriter(&out, snapshot.Origin{Tool: "my-operator v1"})
	section := w.BeginType(snapshot.Type{Group: "example.com", Version: "v1", Resource: "gizmos", Kind: "Gizmo",
		Namespaced: true})
	if err := section.Add(
		[]byte(`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a","namespace":"web"}}`), nil); err != nil {
		fmt.Println(err)
	}
	if err := section.Close("4711"); err != nil {
		fmt.Println(err)
	}
	if err := w.Commit(); err != nil {
		fmt.Println(err)
	}

	f, err := snapshot.NewFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	gizmos := f.Objects(schema.GroupResource{Group: "example.com", Resource: "gizmos"})
	fmt.Println(gizmos.Type().ResourceVersion)
	for record, err := range gizmos.All {
		fmt.Println(record.Key, err)
	}
	// Output:
	// 4711
	// web/a <nil>
}
