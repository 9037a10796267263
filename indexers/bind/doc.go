// Package bind gives what an index config declares to the informers of a factory.
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
// [Definitions] reads the CustomResourceDefinitions of a cluster, to check a config against them before that.
// A config that has changed is taken over by [Binding.Apply]; package reload calls it when a file changes.
//
// # Consistency
//
// Each resource of the config is looked up among the types that the server has. With Follow, those that
// appear later are bound when they do, and the factory's informers deal with types that go. Informers are
// shared, and each resource has its own indexes in them: see [Target.Source]. Only indexes can be changed
// while an informer runs; anything else makes another informer, which lists anew, and answers when it has.
// Namespaces that fit the patterns of a resource count as they come and go, with one watch of all or, where
// that is forbidden, one of each: that is up to the informer, which stays the same one (see
// [dynamicinformer.MatchingNamespaces]).
//
// # Concurrency
//
// All methods are safe for concurrent use.
package bind
