package sharding_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/integration/harness"
)

// scene is a namespace of objects, and what replicas have made of them.
type scene struct {
	testing.TB
	client.Client
	namespace string

	mu struct {
		sync.Mutex
		wanted, seen []string // the value of each object, by number
		busy         map[types.UID]*replica
		deleted      []string
		// leaving has when a shard was begun to be given up, or its replica was killed, and how.
		leaving map[int]departure
		took    map[manner][]time.Duration
	}
}

// departure is the end of a tenure.
type departure struct {
	from *replica
	at   time.Time
	manner
}

type manner string

const (
	graceful manner = "given up"
	killed   manner = "left by a replica that was killed"
)

func newScene(t testing.TB) *scene {
	t.Helper()
	admin, err := client.New(harness.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, Client: admin, namespace: harness.Namespace(t)}
	s.mu.wanted, s.mu.seen = make([]string, *objects), make([]string, *objects)
	s.mu.busy, s.mu.leaving, s.mu.took = map[types.UID]*replica{}, map[int]departure{}, map[manner][]time.Duration{}
	return s
}

// left notes that a replica is about to have a shard no more.
func (s *scene) left(r *replica, shard int, how manner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.mu.leaving[shard]; !known || how == killed {
		s.mu.leaving[shard] = departure{r, time.Now(), how}
	}
}

// reconcile notes the value of an object, and checks that nobody else is about to.
func (s *scene) reconcile(ctx context.Context, r *replica, reader client.Reader, request ctrl.Request) error {
	if r.dead.Load() {
		return errDead
	}
	var object corev1.ConfigMap
	err := reader.Get(ctx, request.NamespacedName, &object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if apierrors.IsNotFound(err) {
			s.mu.deleted = append(s.mu.deleted, request.Name)
		}
		return client.IgnoreNotFound(err)
	}
	var number int
	if _, err := fmt.Sscanf(object.Name, "object-%d", &number); err != nil {
		return nil // kube-root-ca.crt
	}
	if other := s.mu.busy[object.UID]; other != nil && !other.dead.Load() {
		s.Errorf("%s works on %s while %s does", r.name, object.Name, other.name)
	}
	tenure := controllerruntime.TenureFrom(ctx)
	if d, ok := s.mu.leaving[tenure.Shard()]; ok && d.from != r {
		delete(s.mu.leaving, tenure.Shard())
		s.mu.took[d.manner] = append(s.mu.took[d.manner], time.Since(d.at))
	}
	s.mu.busy[object.UID] = r
	s.mu.Unlock()
	select { // some work
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	s.mu.Lock()
	if s.mu.busy[object.UID] == r {
		delete(s.mu.busy, object.UID)
	}
	if ctx.Err() != nil || r.dead.Load() {
		return ctx.Err()
	}
	s.mu.seen[number] = object.Data["v"]
	return nil
}

// create creates the objects.
func (s *scene) create() {
	s.Helper()
	var group sync.WaitGroup
	numbers := make(chan int)
	for range 16 {
		group.Go(func() { // ended by the end of the numbers
			for n := range numbers {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("object-%d", n)}, Data: map[string]string{"v": "0"}}
				if err := s.Create(context.Background(), object); err != nil {
					s.Error(err)
				}
			}
		})
	}
	for n := range *objects {
		s.mu.wanted[n] = "0"
		numbers <- n
	}
	close(numbers)
	group.Wait()
}

// update changes objects at random until ctx ends.
func (s *scene) update(ctx context.Context) {
	ticker := time.NewTicker(time.Second / time.Duration(*updates))
	defer ticker.Stop()
	for round := 1; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n, value := rand.IntN(*objects), fmt.Sprint(round)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("object-%d", n)}}
		patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"data":{"v":%q}}`, value)))
		if err := s.Patch(context.WithoutCancel(ctx), object, patch); err != nil {
			s.Error(err)
			return
		}
		s.mu.Lock()
		s.mu.wanted[n] = value
		s.mu.Unlock()
	}
}

// awaitReconciled waits until all objects have been reconciled to their last state.
func (s *scene) awaitReconciled() {
	s.Helper()
	harness.Eventually(s, func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for n, wanted := range s.mu.wanted {
			if s.mu.seen[n] != wanted {
				return fmt.Errorf("object-%d was last reconciled with %q, and has %q", n, s.mu.seen[n], wanted)
			}
		}
		return nil
	})
}

// awaitShares waits until all shards are held, by fair shares.
func (s *scene) awaitShares(replicas ...*replica) {
	s.Helper()
	harness.Eventually(s, func(context.Context) error {
		least, sum := *shards/len(replicas), 0
		for _, r := range replicas {
			n := len(r.member.Tenures())
			if sum += n; n < least {
				return fmt.Errorf("%s has %d shards, want at least %d", r.name, n, least)
			}
		}
		if sum != *shards {
			return fmt.Errorf("%d of %d shards are held", sum, *shards)
		}
		return nil
	})
}

// TestScale: from one replica to four and back to two, of which one is killed and one ends, while objects change: each is
// reconciled to its last state, by one replica at a time, and none is taken for deleted.
func TestScale(t *testing.T) {
	s := newScene(t)
	s.create()
	first := s.start("first")
	s.awaitReconciled()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	updated := make(chan struct{})
	go func() { // ended by cancel
		defer close(updated)
		s.update(ctx)
	}()
	second, third, fourth := s.start("second"), s.start("third"), s.start("fourth")
	s.awaitShares(first, second, third, fourth)

	for _, tenure := range second.member.Tenures() {
		s.left(second, tenure.Shard(), killed)
	}
	second.dead.Store(true)
	go second.stop() // ended by the cleanup at the latest
	first.stop()
	s.awaitShares(third, fourth)
	cancel()
	<-updated
	s.awaitReconciled()

	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.deleted) > 0 {
		t.Errorf("these were taken for deleted: %v", s.mu.deleted)
	}
	for how, took := range s.mu.took {
		slices.Sort(took)
		t.Logf("%d shards were %s; until the first reconcile elsewhere it took %v (median), %v at most", len(took), how, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
}
