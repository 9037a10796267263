// Package consistency keeps a controller from reconciling with a cache that lacks its own last writes. It is
// the pattern of KEP-5647, with the names that Kubernetes' controllers use. It works with informers of
// client-go 0.36 and of dynamicinformer.
//
// Record each write with WroteAt. Call EnsureReady before a reconcile, and requeue the owner if it returns an
// error. Call Clear when the owner was deleted. To block instead, use Informer.WaitForVersion of package
// dynamicinformer.
//
// If an informer does not select a written object, its store becomes ready with the next bookmark, about once
// a minute.
package consistency
