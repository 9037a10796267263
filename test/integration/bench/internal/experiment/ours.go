package experiment

import (
	"context"
	"strings"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers"
)

// The subjects that are crdcache's caches, one for each storage mode and pruning.
const (
	Object            = "crdcache-object"
	Packed            = "crdcache-packed"
	PackedTrimmed     = "crdcache-packed-trimmed"
	Kept              = "crdcache-kept"
	KeptWhole         = "crdcache-kept-whole"
	CompressedTrimmed = "crdcache-compressed"
	AdaptiveTrimmed   = "crdcache-adaptive"
	Metadata          = "crdcache-metadata"
	NotStored         = "crdcache-none"
)

// The storage of most subjects.
var (
	packedStorage = dynamicinformer.Storage{Mode: dynamicinformer.StoragePacked}
	pruned        = dynamicinformer.Prune{Presets: []dynamicinformer.PrunePreset{
		dynamicinformer.PruneManagedFields}}
)

// storageModes returns crdcache's storage modes.
func storageModes() []Subject {
	object := dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}
	compressed := dynamicinformer.Storage{Mode: dynamicinformer.StorageCompressed, Compression: s2.New()}
	adaptive := dynamicinformer.Storage{Mode: dynamicinformer.StorageAdaptive, Compression: s2.New()}
	metadata := dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}
	none := dynamicinformer.Storage{Mode: dynamicinformer.StorageNone}
	return []Subject{
		{Name: Object, Title: "crdcache, object", IsCrdcache: true,
			New: constructorFor(dynamicinformer.ResourceOptions{Storage: object})},
		{Name: Packed, Title: "crdcache, packed", IsCrdcache: true,
			New: constructorFor(dynamicinformer.ResourceOptions{Storage: packedStorage})},
		{Name: PackedTrimmed, Title: "crdcache, packed, pruned", IsCrdcache: true,
			New: constructorFor(dynamicinformer.ResourceOptions{Storage: packedStorage, Prune: pruned})},
		{Name: Kept, Title: "crdcache, packed, five kept fields", IsCrdcache: true,
			New: keepCacheConstructor(packedStorage, nil)},
		{Name: KeptWhole, Title: "the same, 1 % whole", IsCrdcache: true,
			New: keepCacheConstructor(packedStorage, onePercentSelector())},
		{Name: CompressedTrimmed, Title: "crdcache, compressed, pruned", IsCrdcache: true,
			New: constructorFor(dynamicinformer.ResourceOptions{Storage: compressed, Prune: pruned})},
		{Name: AdaptiveTrimmed, Title: "crdcache, adaptive, pruned", IsCrdcache: true,
			New: constructorFor(dynamicinformer.ResourceOptions{Storage: adaptive, Prune: pruned})},
		{Name: Metadata, Title: "crdcache, metadata", IsCrdcache: true,
			New: constructorFor(dynamicinformer.ResourceOptions{Storage: metadata, Prune: pruned})},
		{Name: NotStored, Title: "crdcache, none", IsCrdcache: true,
			New: keepCacheConstructor(none, nil)},
	}
}

// constructorFor returns a constructor for a factory's informer with these options.
func constructorFor(resourceOptions dynamicinformer.ResourceOptions) func(Options) (Cache, error) {
	return func(o Options) (Cache, error) {
		cache, _, err := newModeInformer(resourceOptions, o)
		return cache, err
	}
}

// newModeInformer returns a factory's informer with these options, also as a cache.
func newModeInformer(resourceOptions dynamicinformer.ResourceOptions,
	o Options) (Cache, *dynamicinformer.Informer, error) {
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: o.Config, Defaults: resourceOptions})
	if err != nil {
		return nil, nil, err
	}
	informer, err := factory.ForResource(o.GVR)
	if err != nil {
		return nil, nil, err
	}
	functions, err := compiledIndexes(o)
	if err != nil {
		return nil, nil, err
	}
	handler := o.handler()
	if o.Handler == KeyHandler {
		handler = dynamicinformer.EveryEvent(dynamicinformer.MetadataOnly(handler)) // each event is measured
	}
	return &sharedInformer{
		informer:    informer,
		lister:      informer.Lister(),
		handler:     handler,
		run:         func(ctx context.Context) { informer.RunWithContext(ctx) },
		jsonBytes:   func() (int64, error) { return jsonBytes(informer.Snapshot()) },
		addIndex:    func() error { return informer.AddIndexes(functions) },
		waitForIdle: informer.Compress,
	}, informer, nil
}

// newReplica returns the PackedTrimmed cache of the first of several replicas that share the objects by UID.
// dropped returns the number of received objects of other replicas.
func newReplica(o Options, replicas int) (cache Cache, dropped func() int64, err error) {
	cache, informer, err := newModeInformer(dynamicinformer.ResourceOptions{
		Storage: packedStorage, Prune: pruned,
		Shard: dynamicinformer.NewShard(sharding.ByUID, sharding.Split(replicas)[0]),
	}, o)
	if err != nil {
		return nil, nil, err
	}
	return cache, func() int64 { return informer.Stats().ShardDropped }, nil
}

func compiledIndexes(o Options) (*indexers.Functions, error) {
	config, err := indexers.Parse(indexers.Source{Name: "benchmark", Data: []byte(`
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: benchmark}
spec:
  resources:
  - name: subject
    match: {group: "` + o.GVR.Group + `", resource: ` + o.GVR.Resource + `}
    indexes:
    - {name: ` + indexName + `, path: .` + strings.Join(indexField, ".") + `}
`)})
	if err != nil {
		return nil, err
	}
	resource, _ := config.Resource("subject")
	return indexers.Compile(resource), nil
}
