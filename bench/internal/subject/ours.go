package subject

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// The names of crdcache's modes.
const (
	Object = "crdcache-object"
)

// ours returns crdcache's storage modes.
func ours() []Subject {
	return []Subject{
		{Name: Object, Title: "crdcache, object", Ours: true, Bodies: true, Scales: true, New: mode(func(*dynamicinformer.Options) {})},
	}
}

// mode returns a constructor for a factory whose options are changed by set.
func mode(set func(*dynamicinformer.Options)) func(Options) (Cache, error) {
	return func(o Options) (Cache, error) {
		var options dynamicinformer.Options
		options.Config = o.Config
		set(&options)
		factory, err := dynamicinformer.New(options)
		if err != nil {
			return nil, err
		}
		informer, err := factory.ForResource(o.Type)
		if err != nil {
			return nil, err
		}
		functions, err := compiledIndexers(o)
		if err != nil {
			return nil, err
		}
		return &sharedInformer{
			informer: informer,
			lister:   informer.Lister(),
			handler:  o.handler(),
			run:      func(ctx context.Context) { informer.RunWithContext(ctx) },
			indexers: functions,
		}, nil
	}
}

// compiledIndexers are the index functions that users of crdcache have: those of an index config.
func compiledIndexers(o Options) (cache.Indexers, error) {
	config, err := indexers.Parse(indexers.Source{Name: "benchmark", Data: []byte(`
apiVersion: crdcache.dev/v1alpha1
kind: IndexConfig
metadata: {name: benchmark}
spec:
  resources:
  - name: subject
    match: {group: ` + o.Type.Group + `, resource: ` + o.Type.Resource + `}
    indexes:
    - {name: ` + indexName + `, path: .spec.secretName}
`)})
	if err != nil {
		return nil, err
	}
	resource, _ := config.Resource("subject")
	return indexers.Compile(resource).Indexers(), nil
}
