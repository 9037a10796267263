package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
)

const (
	// writers limits the concurrent writes.
	writers = 8
	// buckets is the number of indexed values.
	buckets = 10
	// requestTimeout limits the wait for an answer.
	requestTimeout = 10 * time.Second
)

// writeCounts counts accepted writes, and failed or unanswered ones.
type writeCounts struct{ done, failed atomic.Int64 }

// startWriting writes at the configured rate until stop is called. The value of an object increases with each
// attempt, so two versions never have the same content.
func (w *fixture) startWriting(seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() { // ended by cancel
			random := rand.New(rand.NewPCG(seed, uint64(i)+1))
			ticker := time.NewTicker(time.Second * writers / time.Duration(options.updates))
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
				if err := w.change(ctx, random); err != nil {
					w.written.failed.Add(1)
				} else {
					w.written.done.Add(1)
				}
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// change creates, updates or deletes an object. A missing type is an ordinary failure.
func (w *fixture) change(ctx context.Context, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	k := w.kinds[random.IntN(len(w.kinds))]
	number := random.IntN(options.objects / options.types)
	objects := w.admin.Resource(k.gvr).Namespace(w.namespaces[number%len(w.namespaces)])
	name := fmt.Sprintf("o%d", number)
	if random.IntN(20) == 0 {
		err := objects.Delete(ctx, name, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	value := time.Now().UnixNano()
	patch := fmt.Appendf(nil, `{"spec":{"value":%d,"bucket":%d}}`, value, value%buckets)
	_, err := objects.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(ctx, k.object(name, value), metav1.CreateOptions{})
	}
	return err
}

func (k *kind) object(name string, value int64) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"value": value, "bucket": value % buckets, "text": strings.Repeat(name+" of "+k.name+" ", 20),
	}}}
	object.SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.name))
	object.SetName(name)
	return object
}

func (w *fixture) populate() {
	w.Helper()
	var group sync.WaitGroup
	each := options.objects / options.types
	for part := range writers {
		group.Go(func() {
			for i := part; i < each*len(w.kinds); i += writers {
				k, number := w.kinds[i/each], i%each
				objects := w.admin.Resource(k.gvr).Namespace(w.namespaces[number%len(w.namespaces)])
				if _, err := objects.Create(w.ctx, k.object(fmt.Sprintf("o%d", number), 1),
					metav1.CreateOptions{}); err != nil {
					w.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if w.Failed() {
		w.FailNow()
	}
}

// retryUntilEnd calls try until it succeeds or the context ends.
func (w *fixture) retryUntilEnd(try func(context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
		err := try(ctx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-w.ctx.Done():
			return fmt.Errorf("%w: %w", w.ctx.Err(), err)
		}
	}
}

// toggleType deletes an installed type or installs a missing one, without waiting.
func (w *fixture) toggleType(k *kind) {
	k.installed.Store(!k.installed.Load())
	w.changes.Go(func() { // ended by success or by the context of the fixture
		k.mu.Lock()
		defer k.mu.Unlock()
		change := w.uninstall
		if k.installed.Load() { // read under the lock, so that the last call wins
			change = w.install
		}
		if err := change(k); err != nil {
			w.Error(err)
		}
	})
}

func (w *fixture) install(k *kind) error {
	definitions := w.admin.Resource(crd.GVR)
	err := w.retryUntilEnd(func(ctx context.Context) error {
		_, err := definitions.Create(ctx, k.definition, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		// The definition exists: either the answer to this attempt was lost, or the previous one is being
		// deleted.
		existing, err := definitions.Get(ctx, k.definition.GetName(), metav1.GetOptions{})
		if err == nil && existing.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s is still being deleted", k.name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.retryUntilEnd(func(ctx context.Context) error {
		_, err := w.admin.Resource(k.gvr).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

func (w *fixture) uninstall(k *kind) error {
	definitions := w.admin.Resource(crd.GVR)
	return w.retryUntilEnd(func(ctx context.Context) error {
		err := definitions.Delete(ctx, k.definition.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%s is being deleted", k.name)
		}
		return err
	})
}

// installAll installs all types. They disappear with the control plane.
func (w *fixture) installAll() {
	w.Helper()
	for _, k := range w.kinds {
		if err := w.install(k); err != nil {
			w.Fatal(err)
		}
	}
}

// maxTemporaryHandles limits the temporary informers.
const maxTemporaryHandles = 5

// acquireTemporary acquires a temporary informer of a type with other options, and releases the oldest
// temporary informer.
func (w *fixture) acquireTemporary(k *kind) {
	w.Helper()
	variants := []dynamicinformer.ResourceOptions{
		{Namespaces: dynamicinformer.InNamespaces(w.namespaces[0], w.namespaces[1])},
		{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}},
		{}, // the default options
	}
	handle, err := w.factory.Acquire(k.gvr, variants[w.random.IntN(len(variants))])
	if err != nil {
		w.Error(err)
		return
	}
	w.temporaryHandles = append(w.temporaryHandles, handle)
	if len(w.temporaryHandles) > maxTemporaryHandles {
		w.temporaryHandles[0].Release()
		w.temporaryHandles = w.temporaryHandles[1:]
	}
}

// releaseTemporaryInformers releases all temporary informers.
func (w *fixture) releaseTemporaryInformers() {
	for _, handle := range w.temporaryHandles {
		handle.Release()
	}
	w.temporaryHandles = nil
}

// startAndShutDown starts a factory and shuts it down, synced or not.
func (w *fixture) startAndShutDown(k *kind) {
	w.Helper()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: w.config(), Types: w.types})
	if err != nil {
		w.Error(err)
		return
	}
	informer, err := factory.ForResource(k.gvr)
	if err != nil {
		w.Error(err)
		return
	}
	if err := factory.Start(w.ctx); err != nil {
		w.Error(err)
	}
	wait, cancel := context.WithTimeout(w.ctx, 200*time.Millisecond)
	_ = informer.WaitForSync(wait) // can fail under faults
	cancel()
	end, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if err := factory.Shutdown(end); err != nil {
		w.Errorf("shutting a factory down: %v", err)
	}
}
