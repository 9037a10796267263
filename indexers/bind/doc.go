// Package bind applies an index config to the informers of a factory.
//
// # Usage
//
//	config, err := indexers.Load("indexes.yaml")
//	binding, err := bind.Run(ctx, restConfig, config)
//	querier, err := binding.Querier("certs")
//	result, err := querier.ByIndex("issuer", "letsencrypt")
//
// A program with a tracker and a factory of its own uses [New] and [Binding.Run], or [Binding.Resolve]
// without a tracker. [Settings] with a Selection give each type one informer with the settings of all
// resources that match it, for programs that serve types.
//
// [Definitions] reads the CustomResourceDefinitions of a cluster to check a config before it is bound.
// [Binding.Apply] and [Binding.Update] replace the config; package reload calls them when a file changes.
//
// # Consistency
//
// Types that are installed later are bound when they appear, and the factory's informers handle removed
// types. Informers are shared; each resource has its own indexes in them, see [Target.Source]. Only indexes
// can change while an informer runs. Other changes need a new informer, which answers after its first list.
// Patterns of namespaces follow created and deleted namespaces, see [dynamicinformer.MatchingNamespaces].
//
// # Concurrency
//
// All methods are safe for concurrent use.
package bind
