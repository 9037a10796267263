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

// mergeInterval is the interval at which the config objects are merged without an event, because there are no
// events about changed rights of namespaces.
const mergeInterval = 30 * time.Second

// configObjects applies the CachedTypes and IndexConfigs of the cluster to a cache. Its informers wait until
// the CRDs are installed.
type configObjects struct {
	cache        *typeCache
	accessRights *accessReviewer
	handles      []*dynamicinformer.Handle // of cachedTypesGVR and indexConfigGVR
	wakeup       signal
	// parsedObjects has the current objects by UID. Only run uses it.
	parsedObjects map[types.UID]*configObject
	// initiallyApplied is set when the initial objects are in effect.
	initiallyApplied atomic.Bool
	mu               struct {
		sync.Mutex
		merged []*mergedObject
		err    error // why merged is not in effect
	}
	writer *statusWriter
}

// newConfigObjects returns the config objects of a cache. rightsReviewer reviews the rights of namespaces.
// client writes the status of the objects.
func newConfigObjects(c *typeCache, config CustomResourceConfig, client *rest.Config,
	rightsReviewer authorizer.UnconditionalAuthorizer) (objects *configObjects, err error) {
	objects = &configObjects{cache: c, accessRights: newRights(rightsReviewer), wakeup: newSignal()}
	objects.accessRights.onAnswers = objects.wakeup.send
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

// signal wakes a goroutine. Several calls of send before it runs wake it once.
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
		o.accessRights.close()
		for _, handle := range o.handles {
			handle.Release()
		}
	}()
	var statusWriting sync.WaitGroup
	defer statusWriting.Wait()
	statusWriting.Go(func() { o.writer.run(ctx) })
	for ctx.Err() == nil {
		o.mergeAndApply(ctx)
		select {
		case <-o.wakeup:
		case <-time.After(mergeInterval):
		case <-ctx.Done():
		}
	}
}

// mergeAndApply merges the objects, and changes the cache if the result differs. The change wakes run to
// merge again, because the errors and indexes of an object depend on the cached types.
func (o *configObjects) mergeAndApply(ctx context.Context) {
	objects, ok := o.parseObjects()
	if !ok {
		return
	}
	current := o.cache.selection.Load()
	merged := current.merge(objects, o.cache.reconciler.Types(), o.mayList)
	var err error
	if !current.objects.equals(merged.config) {
		if err = o.cache.changeSelection(ctx, func(s *selection) { s.objects = merged.config }); err == nil {
			return
		}
		klog.InfoS("Cannot apply CachedTypes and IndexConfigs", "reason", err.Error())
	}
	if merged.rightsUnknown {
		return // the answers wake run
	}
	o.mu.Lock()
	o.mu.merged, o.mu.err = merged.objects, err
	o.mu.Unlock()
	if err == nil {
		o.initiallyApplied.Store(true)
	}
	o.writer.wakeup.send()
}

// parseObjects returns all config objects. It returns false before the informers have settled.
func (o *configObjects) parseObjects() ([]*configObject, bool) {
	var objects []*configObject
	parsedObjects := map[types.UID]*configObject{}
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
			parsed, isKnown := o.parsedObjects[u.GetUID()]
			if isKnown && parsed.GetGeneration() == u.GetGeneration() {
				parsed = &configObject{u, parsed.resources, parsed.errors} // its status may have changed
			} else {
				parsed = parseObject(u)
			}
			parsedObjects[u.GetUID()] = parsed
			objects = append(objects, parsed)
		}
	}
	o.parsedObjects = parsedObjects
	return objects, true
}

// mayList reports whether all service accounts of accountNamespace may list a type in a namespace, or in all
// (""). The rights of its namespace apply to an IndexConfig, because it does not record who wrote it. Its
// indexes contain the objects of all namespaces, but each request that uses them is authorized like any other
// request.
func (o *configObjects) mayList(accountNamespace, namespace string, t live.CachedType) (allowed bool,
	err error) {
	access := listAccess{t.GVR, namespace}
	if t.Scope == discovery.Cluster {
		access.namespace = ""
	}
	group := &user.DefaultInfo{Groups: []string{serviceAccounts(accountNamespace), "system:serviceaccounts",
		user.AllAuthenticated}}
	o.accessRights.withAnswers(group, func(answers *userAnswers) { allowed, err = answers.canList(access) })
	return allowed, err
}

// conditions returns a condition for each error of an object, and for informers that are not synced.
func (o *configObjects) conditions() []statusCondition {
	objects, applyErr := o.merged()
	var conditions []statusCondition
	if applyErr != nil {
		conditions = append(conditions, statusCondition{"CachedTypes and IndexConfigs", applyErr.Error(),
			false})
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

func (o *configObjects) merged() ([]*mergedObject, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.merged, o.mu.err
}

var errObjectsNotApplied = errors.New("the CachedTypes and IndexConfigs are not in effect yet")
