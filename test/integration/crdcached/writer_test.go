package crdcached_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// objectState is the UID, version and value of an object after a write.
type objectState struct {
	uid     types.UID
	version uint64
	value   string
}

// writer is the only writer of a type, and records all changes.
type writer struct {
	*testing.T
	gvr        schema.GroupVersionResource
	client     dynamic.Interface
	namespaces []string
	values     int // number of used values
	// live maps the keys of existing objects to their state. log maps versions to writes.
	live map[string]objectState
	log  map[uint64]entry
	// order has the versions of log in the order of the writes.
	order     []uint64
	deletions []deletion
}

type entry struct {
	key string
	objectState
}

// deletion is a deleted object. Its version lies between after and before. before is 0 until the next write.
type deletion struct {
	key           string
	uid           types.UID
	after, before uint64
}

func newWriter(t *testing.T, gvr schema.GroupVersionResource, namespaces []string) *writer {
	t.Helper()
	return &writer{T: t, gvr: gvr, client: adminClient(t), namespaces: namespaces,
		live: map[string]objectState{},
		log:  map[uint64]entry{}}
}

// step creates, updates or deletes an object. After an ambiguous error, it reads the object and retries until
// the change has happened exactly once.
func (w *writer) step(r *rand.Rand) {
	w.Helper()
	namespace, name := w.namespaces[r.IntN(len(w.namespaces))], fmt.Sprint("o", r.IntN(8))
	key := namespace + "/" + name
	previous, exists := w.live[key]
	objects := w.client.Resource(w.gvr).Namespace(namespace)
	if exists && r.IntN(5) == 0 {
		w.retry(func(ctx context.Context) error {
			err := objects.Delete(ctx, name,
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &previous.uid}})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		delete(w.live, key)
		w.deletions = append(w.deletions, deletion{key: key, uid: previous.uid, after: w.last()})
		return
	}
	w.values++
	o := newObject(w.gvr, name, strconv.Itoa(w.values))
	o.SetUID(previous.uid)
	if exists {
		o.SetResourceVersion(strconv.FormatUint(previous.version, 10))
	}
	var written *unstructured.Unstructured
	w.retry(func(ctx context.Context) (err error) {
		if exists {
			written, err = objects.Update(ctx, o, metav1.UpdateOptions{})
		} else {
			written, err = objects.Create(ctx, o, metav1.CreateOptions{})
		}
		if err == nil {
			return nil
		}
		found, readErr := objects.Get(ctx, name, metav1.GetOptions{})
		if readErr == nil && found.GetLabels()["value"] == o.GetLabels()["value"] {
			written = found
			return nil
		}
		return err
	})
	w.record(key, stateOf(written))
}

// retry repeats f until it succeeds.
func (w *writer) retry(f func(context.Context) error) {
	w.Helper()
	harness.Eventually(w, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // a killed server may never answer
		defer cancel()
		return f(ctx)
	})
}

// record adds a successful write to the log.
func (w *writer) record(key string, written objectState) {
	w.live[key] = written
	w.log[written.version] = entry{key, written}
	w.order = append(w.order, written.version)
	for i := len(w.deletions) - 1; i >= 0 && w.deletions[i].before == 0; i-- {
		w.deletions[i].before = written.version
	}
}

// last returns the version of the last write.
func (w *writer) last() uint64 {
	if len(w.order) == 0 {
		return 0
	}
	return w.order[len(w.order)-1]
}

// stateOf returns the state of an object that a client has received.
func stateOf(o metav1.Object) objectState {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("the resource version of %s is %q", o.GetName(), o.GetResourceVersion()))
	}
	return objectState{o.GetUID(), version, o.GetLabels()["value"]}
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }
