package live

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/test/testcluster"
)

// lockedBackend stores contents in memory, and gives each to one owner at a time.
type lockedBackend struct{ contents sync.Map }

type lockedContent struct {
	sync.Mutex // held by the owner
	at         persistence.Checkpoint
	records    []persistence.Record
	// loads and loadedObjects count the loads and their objects.
	loads, loadedObjects int
}

func (b *lockedBackend) Open(_ context.Context, view persistence.View) (persistence.StoredContent, error) {
	c, _ := b.contents.LoadOrStore(view, &lockedContent{})
	if !c.(*lockedContent).TryLock() {
		return nil, errors.New("the content is in use")
	}
	return c.(*lockedContent), nil
}

func (c *lockedContent) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	return c.at, len(c.records) > 0, nil
}

func (c *lockedContent) Load(_ context.Context, onRecord func(persistence.Record) error) (err error) {
	c.loads, c.loadedObjects = c.loads+1, c.loadedObjects+c.at.Objects
	for _, record := range c.records {
		err = errors.Join(err, onRecord(record))
	}
	return err
}

func (c *lockedContent) Save(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.PutRecord) error) error {
	if c.at = at; whole {
		c.records = nil
	}
	return write(func(head, bodies []byte) error {
		record := persistence.Record{Head: bytes.Clone(head)}
		if bodies != nil {
			text := bytes.Clone(bodies)
			record.Bodies = func() ([]byte, error) { return text, nil }
		}
		c.records = append(c.records, record)
		return nil
	})
}

func (c *lockedContent) NeedsRewrite() bool { return false }
func (c *lockedContent) Close() error       { c.Unlock(); return nil }

// loads returns the number of loads of workloads, and of their objects. No content may be open.
func (b *lockedBackend) loads(t *testing.T) (loads, objects int) {
	t.Helper()
	b.contents.Range(func(key, value any) bool {
		c := value.(*lockedContent)
		if !c.TryLock() {
			t.Fatalf("the content %v is open after the shutdown", key)
		}
		defer c.Unlock()
		if key.(persistence.View).Resource == workloads {
			loads, objects = loads+c.loads, objects+c.loadedObjects
		}
		return true
	})
	return loads, objects
}

// TestUpdatePersisted verifies that a restart after updates costs as little as one without: it loads the
// last saved objects once and does not list them. The new index has them.
func TestUpdatePersisted(t *testing.T) {
	const reduced = "keep: {paths: [.spec.environment, .spec.tier, .spec.replicas, .spec.paused, .status.phase]},"
	const compressed = "storage: {mode: Compressed},"
	for name, steps := range map[string][]string{
		"indexes":                       {noOptions},
		"compressed storage":            {noOptions, compressed}, // shares the stored content
		"kept fields":                   {noOptions, reduced},
		"kept fields, then whole again": {reduced, compressed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the server confirms restored objects after seconds
			cluster, err := testcluster.New(t.Context(),
				testcluster.Options{Paths: []string{"../../../testdata/crds", "../../../testdata/objects"}})
			if err != nil {
				t.Fatal(err)
			}
			backend, lastOptions := &lockedBackend{}, steps[len(steps)-1]
			lists := func() int {
				return cluster.Faults().Count(testcluster.Match{Verbs: []string{"watch-list"},
					Resource: "workloads"})
			}
			var objects int
			t.Run("update", func(t *testing.T) {
				u := newUpdateFixtureOf(t, cluster, backend, byTeam, noOptions)
				for i, options := range steps {
					before := u.informer()
					u.must(u.binding.Update(t.Context(), u.settings(byTier, options, "workloads."+demoGroup)))
					if i > 0 || options == reduced {
						u.awaitStopped(before)
						u.must(u.server.WaitForSync(t.Context(), workloads.GroupResource()))
					}
				}
				u.must(cluster.Client().Resource(workloads).Namespace("storefront").Delete(t.Context(), "search",
					metav1.DeleteOptions{}))
				countAnswer := get(t, u.server, QueryPath(demoGroup, "v1", "", "workloads")+"?count=true")
				objects = u.informer().Snapshot().Len()
				if _, present := u.informer().Snapshot().Stored("storefront/search"); countAnswer.Code != 200 || present {
					t.Errorf("the cache is not fresh after %d %s", countAnswer.Code, countAnswer.Body)
				}
			})
			loadsBefore, objectsBefore := backend.loads(t)
			listsBefore := lists()
			t.Run("restart", func(t *testing.T) {
				u := newUpdateFixtureOf(t, cluster, backend, byTier, lastOptions)
				if got := u.keys("by=batch"); got != batchKeys {
					t.Errorf("by=batch: %s, want %s", got, batchKeys)
				}
			})
			loads, loadedObjects := backend.loads(t)
			if loads, loadedObjects = loads-loadsBefore, loadedObjects-objectsBefore; loads != 1 ||
				loadedObjects != objects || lists() != listsBefore {
				t.Errorf("the restart loaded %d objects in %d loads and sent %d lists, want %d, 1 and 0", loadedObjects,
					loads, lists()-listsBefore, objects)
			}
		})
	}
}
