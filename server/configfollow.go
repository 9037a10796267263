package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/readapi/live"
)

// rightsPeriod is the interval at which the config objects are merged without a change, because nothing
// reports changed rights of namespaces.
const rightsPeriod = 30 * time.Second

// configObjects follows the CachedTypes and IndexConfigs of the cluster, and applies them to a cache. Its
// informers wait until the types are installed.
type configObjects struct {
	cache   *typeCache
	rights  *rights
	handles []*dynamicinformer.Handle // of cachedTypesGVR and indexConfigGVR
	wakeup  signal
	// parsed are the current objects by UID. Only run uses it.
	parsed map[types.UID]*configObject
	// initiallyApplied is set once the objects of the start are in effect.
	initiallyApplied atomic.Bool
	mu               struct {
		sync.Mutex
		merged []*mergedObject
		err    error // why merged is not in effect
	}
	writer *statusWriter
}

// newConfigObjects returns the config objects of a cache. rightsReviewer reviews the rights of
// namespaces. The status is written with client.
func newConfigObjects(c *typeCache, config CustomResourceConfig, client *rest.Config,
	rightsReviewer authorizer.UnconditionalAuthorizer) (objects *configObjects, err error) {
	objects = &configObjects{cache: c, rights: newRights(rightsReviewer), wakeup: newSignal()}
	objects.rights.onAnswers = objects.wakeup.send
	if objects.writer, err = newStatusWriter(objects, client, config.leaseNamespace()); err != nil {
		return nil, err
	}
	for _, gvr := range []schema.GroupVersionResource{cachedTypesGVR, indexConfigGVR} {
		handle, err := c.factory.Acquire(gvr) // released by run
		if err == nil {
			_, err = handle.Informer().AddEventHandler(dynamicinformer.Named("config",
				dynamicinformer.MetadataOnly(toolscache.ResourceEventHandlerFuncs{
					AddFunc:    func(any) { objects.wakeup.send() },
					DeleteFunc: func(any) { objects.wakeup.send() },
					UpdateFunc: func(any, any) { objects.wakeup.send() },
				})))
		}
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", gvr.GroupResource(), err)
		}
		objects.handles = append(objects.handles, handle)
	}
	return objects, nil
}

// signal wakes a goroutine. Several calls of send can wake it once.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// run applies the objects until ctx ends.
func (o *configObjects) run(ctx context.Context) {
	listener, err := o.cache.factory.AddListener(status.Listener{
		StateChanged: func(status.Status, status.Status) { o.wakeup.send() }})
	if err != nil {
		return // the factory has ended
	}
	defer func() {
		listener.Close()
		o.rights.close()
		for _, handle := range o.handles {
			handle.Release()
		}
	}()
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() { o.writer.run(ctx) })
	for ctx.Err() == nil {
		o.apply(ctx)
		select {
		case <-o.wakeup:
		case <-time.After(rightsPeriod):
		case <-ctx.Done():
		}
	}
}

// apply merges the objects, and changes the cache if the result differs. The change wakes run to merge again,
// because the errors and indexes of an object depend on the types that are cached then.
func (o *configObjects) apply(ctx context.Context) {
	objects, ok := o.read()
	if !ok {
		return
	}
	current := o.cache.selection.Load()
	result := current.merge(objects, o.cache.reconciler.Types(), o.mayList)
	var err error
	if !current.objects.equals(result.config) {
		if err = o.cache.changeSelection(ctx, func(s *selection) { s.objects = result.config }); err == nil {
			return
		}
		klog.InfoS("Cannot apply CachedTypes and IndexConfigs", "reason", err.Error())
	}
	if result.rightsUnknown {
		return // the answers wake run
	}
	o.mu.Lock()
	o.mu.merged, o.mu.err = result.objects, err
	o.mu.Unlock()
	if err == nil {
		o.initiallyApplied.Store(true)
	}
	o.writer.wakeup.send()
}

// read returns the objects in the caches, or false while they are not known.
func (o *configObjects) read() ([]*configObject, bool) {
	var objects []*configObject
	parsed := map[types.UID]*configObject{}
	for _, handle := range o.handles {
		if !handle.Informer().Status().Settled() {
			return nil, false
		}
		listed, err := handle.Informer().Lister().List(labels.Everything())
		if err != nil {
			return nil, false // the informer has stopped
		}
		for _, object := range listed {
			u, ok := object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			p, known := o.parsed[u.GetUID()]
			if known && p.GetGeneration() == u.GetGeneration() {
				p = &configObject{u, p.resources, p.errors} // its status may have changed
			} else {
				p = parseObject(u)
			}
			parsed[u.GetUID()] = p
			objects = append(objects, p)
		}
	}
	o.parsed = parsed
	return objects, true
}

// mayList reports whether all service accounts of a namespace may list a type in a namespace, or in all ("").
// An IndexConfig does not record who wrote it, so that the rights of its namespace count. Its indexes contain
// the objects of all namespaces, but each request that uses them is authorized like any other.
func (o *configObjects) mayList(accounts, namespace string, t live.CachedType) (allowed bool, err error) {
	right := listAccess{t.GVR, namespace}
	if t.Scope == discovery.Cluster {
		right.namespace = ""
	}
	u := &user.DefaultInfo{Groups: []string{serviceAccounts(accounts), "system:serviceaccounts",
		user.AllAuthenticated}}
	o.rights.withRights(u, func(answers *accessAnswers) { allowed, err = answers.canList(right) })
	return allowed, err
}

// conditions returns a condition for each object with errors.
func (o *configObjects) conditions() []statusCondition {
	objects, applied := o.merged()
	var conditions []statusCondition
	if applied != nil {
		conditions = append(conditions, statusCondition{"CachedTypes and IndexConfigs", applied.Error(), false})
	}
	for _, handle := range o.handles {
		if current := handle.Informer().Status(); current.State != status.Synced {
			name := handle.Informer().GVR().GroupResource().String()
			conditions = append(conditions, statusCondition{name, current.String(), false})
		}
	}
	for _, m := range objects {
		for _, e := range m.errors {
			conditions = append(conditions, statusCondition{m.String(), e.Field + ": " + e.Message, false})
		}
	}
	return conditions
}

// merged returns the objects with the errors of the last merge.
func (o *configObjects) merged() ([]*mergedObject, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.merged, o.mu.err
}

var errObjectsUnknown = errors.New("the CachedTypes and IndexConfigs are not in effect yet")
