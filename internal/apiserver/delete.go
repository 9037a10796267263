package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// delete removes the object, or marks it as terminating if it has finalizers.
func (r *request) delete(options *metav1.DeleteOptions) (result readapi.WriteResult, err error) {
	r.dryRun = len(options.DryRun) > 0
	key := naming.KeyOf(r.Namespace, r.Name)
	for {
		before := r.collection.get(key)
		if before == nil {
			return result, apierrors.NewNotFound(r.resource(), r.Name)
		}
		old, err := r.decodeInRequestVersion(before)
		if err != nil {
			return result, err
		}
		u, removed, err := r.prepareForDelete(old, options)
		if err != nil {
			return result, err
		}
		if removed {
			result = readapi.WriteResult{Code: http.StatusOK, Status: &metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
				Details: &metav1.StatusDetails{Name: u.GetName(), Group: r.GVR.Group, Kind: r.GVR.Resource,
					UID: u.GetUID()},
			}}
			if !r.dryRun {
				_, err = r.writer.replace(r.resource(), key, before, nil)
			}
		} else {
			code := http.StatusOK
			if orphans := orphanDependents(options); orphans != nil && !*orphans {
				code = http.StatusAccepted
			}
			result, err = r.store(key, before, u, code)
		}
		if !errors.Is(err, errConcurrentChange) {
			return result, err
		}
	}
}

// deleteCollection deletes the listed objects one by one.
func (r *request) deleteCollection(body []byte) (result readapi.WriteResult, err error) {
	objects, err := r.list()
	if err != nil {
		return result, err
	}
	options, err := parseDeleteOptions(r.http, body)
	if err != nil {
		return result, err
	}
	for _, o := range objects {
		if err := r.http.Context().Err(); err != nil {
			return result, err
		}
		single := &request{strategy: r.strategy, writer: r.writer}
		single.Namespace, single.Name = naming.SplitKey(o.Key())
		if _, err := single.delete(options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return result, err
		}
	}
	return readapi.WriteResult{Code: http.StatusOK}, nil
}

// markDeleted marks an object as terminating, and reports whether it has no finalizers and can be removed.
func markDeleted(u *unstructured.Unstructured, options *metav1.DeleteOptions, now time.Time) (removed bool) {
	u.SetFinalizers(propagationFinalizers(u.GetFinalizers(), options))
	if len(u.GetFinalizers()) == 0 {
		return true
	}
	if u.GetDeletionTimestamp() == nil && u.GetGeneration() > 0 {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	setDeletionTimestamp(u, now)
	immediately := int64(0)
	u.SetDeletionGracePeriodSeconds(&immediately)
	return false
}

func setDeletionTimestamp(u *unstructured.Unstructured, now time.Time) {
	if deleted := u.GetDeletionTimestamp(); deleted == nil || deleted.After(now) {
		at := metav1.NewTime(now)
		u.SetDeletionTimestamp(&at)
	}
}

// propagationFinalizers adds or removes the finalizers of the garbage collector according to the propagation
// policy. There is no garbage collector here to remove them again.
func propagationFinalizers(finalizers []string, options *metav1.DeleteOptions) []string {
	added := ""
	switch policy, orphans := options.PropagationPolicy, orphanDependents(options); {
	case orphans != nil && *orphans, policy != nil && *policy == metav1.DeletePropagationOrphan:
		added = metav1.FinalizerOrphanDependents
	case orphans != nil:
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		added = metav1.FinalizerDeleteDependents
	case policy == nil:
		return finalizers
	}
	if slices.Contains(finalizers, added) && !slices.ContainsFunc(finalizers,
		func(f string) bool { return isPropagationFinalizer(f) && f != added }) {
		return finalizers // unchanged, in their order
	}
	remaining := slices.DeleteFunc(slices.Clone(finalizers), isPropagationFinalizer)
	if added != "" {
		remaining = append(remaining, added)
	}
	return remaining
}

func isPropagationFinalizer(f string) bool {
	return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
}

// orphanDependents returns the deprecated predecessor of PropagationPolicy, which is still supported.
func orphanDependents(options *metav1.DeleteOptions) *bool {
	//lint:ignore SA1019 clients still send it
	return options.OrphanDependents
}
