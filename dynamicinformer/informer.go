package dynamicinformer

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/informer"
)

// Informer is the shared informer of one type. It is made by Factory.ForResource and run by
// Factory.Start; Run and RunWithContext are for callers that run it without the factory, and must not be
// mixed with Start.
//
// All methods are safe for concurrent use.
type Informer struct {
	cache.SharedIndexInformer

	gvr       schema.GroupVersionResource
	options   ResourceOptions
	types     *typeBoard // nil: every type is taken to exist
	listWatch cache.ListerWatcher
	health    *health
	core      *informer.Informer
	ran       atomic.Bool // RunWithContext was called, or must not be any more
}

// newInformer returns an informer of gvr that has not been started.
func newInformer(client dynamic.Interface, gvr schema.GroupVersionResource, options ResourceOptions, board *typeBoard) (*Informer, error) {
	h := newHealth(gvr, time.Now)
	core := informer.New(nil, informer.Options{
		ExampleObject:     &unstructured.Unstructured{},
		ObjectDescription: gvr.String(),
		ResyncPeriod:      options.resync(),
		Indexers:          options.Indexers,
	})
	if options.Transform != nil {
		if err := core.SetTransform(options.Transform); err != nil {
			return nil, err
		}
	}
	return &Informer{
		SharedIndexInformer: core,
		gvr:                 gvr,
		options:             options,
		types:               board,
		listWatch:           newListWatch(client, gvr, options, h),
		health:              h,
		core:                core,
	}, nil
}

// GVR is the type that the informer follows.
func (i *Informer) GVR() schema.GroupVersionResource { return i.gvr }

// Status returns what is known of the informer now.
func (i *Informer) Status() Status {
	status, _ := i.health.snapshot()
	return status
}

// Informer returns i, so that an *Informer can stand where code wants client-go's GenericInformer.
func (i *Informer) Informer() cache.SharedIndexInformer { return i }

// Lister reads the cache: by label selector, by name, in all namespaces or one. What it returns are
// *unstructured.Unstructured, shared and not to be changed.
func (i *Informer) Lister() cache.GenericLister {
	return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(i.GetIndexer(), i.gvr))
}

// Run is RunWithContext with a stop channel.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext runs the informer until ctx ends and all its goroutines have, and keeps its status. With
// a source of types it follows the type as it comes and goes. An informer runs once: further calls log
// that and return.
func (i *Informer) RunWithContext(ctx context.Context) {
	if i.ran.Swap(true) {
		klog.FromContext(ctx).Info("An informer runs only once, ignoring another call", "type", formatGVR(i.gvr))
		return
	}
	i.health.started()
	defer func() {
		i.core.Stop()
		<-i.core.Stopped()
		i.health.stopped()
	}()
	i.follow(ctx)
}

// abandon stops an informer unless somebody has run it, so that nobody waits for what will never come.
func (i *Informer) abandon() {
	if !i.ran.Swap(true) {
		i.core.Stop()
		i.health.stopped()
	}
}
