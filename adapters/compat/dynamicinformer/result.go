package dynamicinformer

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// WaitForCacheSyncWithContext of client-go 0.38 returns a type that older versions lack. clientFactory has
// the method in any case: a selector finds the shallowest one, which is that of client-go if it exists.
type clientFactory struct {
	clientgo.DynamicSharedInformerFactory
	withoutResult
}

type (
	withoutResult struct{ noResult }
	noResult      struct{}
)

// syncResult has the fields of cache.GVRSyncResult.
type syncResult struct {
	Err    error
	Synced map[schema.GroupVersionResource]bool
}

func (noResult) WaitForCacheSyncWithContext(context.Context) (result syncResult) { return result }

// factoryWithResult is a factory whose WaitForCacheSyncWithContext returns a T.
type factoryWithResult[T any] struct{ *factory }

func newWithResult[T any](_ func(clientFactory, context.Context) T, f *factory) DynamicSharedInformerFactory {
	return any(factoryWithResult[T]{f}).(DynamicSharedInformerFactory)
}

// WaitForCacheSyncWithContext waits until every started informer has synced or ctx ends.
func (f factoryWithResult[T]) WaitForCacheSyncWithContext(ctx context.Context) T {
	r, informers := syncResult{Synced: map[schema.GroupVersionResource]bool{}}, f.startedInformers()
	var checkers []cache.DoneChecker
	for _, informer := range informers {
		checkers = append(checkers, informer.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checkers...)
	for gvr, informer := range informers {
		if r.Synced[gvr] = informer.HasSynced(); !r.Synced[gvr] {
			r.Err = context.Cause(ctx)
		}
	}
	return reflect.ValueOf(r).Convert(reflect.TypeFor[T]()).Interface().(T)
}
