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
