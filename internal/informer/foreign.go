package informer

import "k8s.io/client-go/tools/cache"

// Releases of client-go add methods to these interfaces. The types here that implement them embed a nil one:
// a program with a newer client-go compiles, and a call of an added method panics. TestForeign verifies that
// no known method is missing.
type (
	foreignInformer     = cache.SharedIndexInformer
	foreignIndexer      = cache.Indexer
	foreignRegistration = cache.ResourceEventHandlerRegistration
)
