package cel_test

import (
	"fmt"

	_ "github.com/crdcache/crdcache/adapters/cel"
	"github.com/crdcache/crdcache/indexers"
)

func Example() {
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(`
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: lamps}
spec:
  resources:
  - name: lamps
    match: {group: example.com, version: v1, resource: lamps}
    indexes:
    - name: room
      cel: 'self.spec.rooms.map(r, r.name + "." + self.metadata.namespace)'
      whenCEL: self.spec.watts > 2
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	lamp := map[string]any{
		"metadata": map[string]any{"name": "lamp", "namespace": "hall"},
		"spec":     map[string]any{"watts": int64(3), "rooms": []any{map[string]any{"name": "a"}}},
	}
	fmt.Println(indexers.Compile(config.Resources[0]).Keys(lamp)[0])
	// Output: [a.hall]
}
