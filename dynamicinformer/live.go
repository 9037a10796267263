package dynamicinformer

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// GetLive reads an object from the API server, with all fields, and then applies Transform. It needs the
// right to get the type. The object is newer than the cache, or equal. Options.LiveReadLimiter limits
// these reads. Counters count them as requests with the verb get. The error of a missing object
// satisfies apierrors.IsNotFound. namespace is empty for a cluster-scoped object.
func (i *Informer) GetLive(ctx context.Context, namespace, name string) (runtime.Object, error) {
	if err := i.deps.liveReadLimiter.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait to read %s %s from the API server: %w", formatGVR(i.gvr), name, err)
	}
	gvr := i.gvr.GroupResource().WithVersion(cmp.Or(i.Status().Version, i.gvr.Version))
	object, err := i.deps.Client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	i.health.ReadLive(err)
	if err != nil {
		return nil, err // not the nil object in a non-nil interface
	}
	if i.options.Transform == nil {
		return object, nil
	}
	transformed, err := i.options.Transform(object)
	if err != nil {
		return nil, fmt.Errorf("transform %s %s: %w", formatGVR(i.gvr), name, err)
	}
	result, ok := transformed.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("transform %s %s: the result is a %T", formatGVR(i.gvr), name, transformed)
	}
	return result, nil
}
