// Package bind applies an index config to the informers of a factory.
//
// # Usage
//
//	config, err := indexers.Load("indexes.yaml")
//	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Types: tracker.Types()})
//	binding, err := bind.New(factory, config, bind.Options{})
//	err = tracker.WaitForSync(ctx)                   // after go tracker.Run(ctx)
//	stop := binding.Follow(tracker)                  // without a tracker: binding.Resolve(catalog)
//	err = factory.Start(ctx)
//	err = factory.WaitForSync(ctx)
//	querier, err := binding.Querier("certs")
//	result, err := querier.ByIndex("issuer", "letsencrypt")
//
// [Definitions] reads the CustomResourceDefinitions of a cluster to check a config before it is bound.
// [Binding.Apply] replaces the config; package reload calls it when a file changes.
//
// # Consistency
//
// Each resource of the config is matched with the types of the server. With Follow, later types are bound
// when they appear, and the factory's informers handle removed types. Informers are shared; each resource has
// its own indexes in them, see [Target.Source]. Only indexes can change while an informer runs. Other changes
// need a new informer, which answers after its first list. Patterns of namespaces follow created and deleted
// namespaces with the same informer: with one watch, or with one watch per namespace if a cluster-wide watch
// is forbidden (see [dynamicinformer.MatchingNamespaces]).
//
// # Concurrency
//
// All methods are safe for concurrent use.
package bind
