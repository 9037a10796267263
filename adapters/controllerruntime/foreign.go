package controllerruntime

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Releases of client-go and controller-runtime add methods to these interfaces. The types here that implement
// them embed a nil one: a program with a newer release compiles, and a call of an added method panics.
// TestForeign verifies that no known method is missing.
type (
	foreignCache        = cache.Cache
	foreignInformer     = toolscache.SharedIndexInformer
	foreignIndexer      = toolscache.Indexer
	foreignRegistration = toolscache.ResourceEventHandlerRegistration
)
