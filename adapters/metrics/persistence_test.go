package metrics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// failingBackend stores nothing. Open returns err.
type failingBackend struct{ err error }

func (f failingBackend) Open(context.Context, persistence.View) (persistence.StoredContent, error) {
	return f, f.err
}

func (f failingBackend) Checkpoint(context.Context) (at persistence.Checkpoint, ok bool, err error) {
	return at, false, nil
}

func (f failingBackend) Load(context.Context, func(persistence.Record) error) error {
	return errors.New("there is nothing")
}

func (f failingBackend) Save(_ context.Context, _ persistence.Checkpoint, _ bool,
	write func(persistence.PutRecord) error) error {
	return write(func(_, _ []byte) error { return nil })
}

func (f failingBackend) NeedsRewrite() bool { return false }

func (f failingBackend) Close() error { return nil }

// TestPersistence verifies the metrics for content that is saved, content whose save fails, and content that
// is not persisted. Shutdown saves the remaining changes.
func TestPersistence(t *testing.T) {
	s := newServer(t)
	s.apply(t, 0, 20, 1)
	startTime := float64(time.Now().UnixNano()) / 1e9
	for name, test := range map[string]struct {
		backend persistence.Backend
		want    map[string]float64 // by state
	}{
		"kept": {failingBackend{}, map[string]float64{"Saved": 1, "Waiting": 0, "Failing": 0}},
		"failing": {failingBackend{err: errors.New("the disk is full")},
			map[string]float64{"Saved": 0, "Waiting": 0, "Failing": 1}},
		"not kept": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFactory(t, s, dynamicinformer.Options{Persistence: test.backend,
				PersistenceInterval: time.Hour})
			acquireSynced(t, f, widgets)
			if err := f.Shutdown(testContext(t)); err != nil {
				t.Fatal(err)
			}
			got := scrape(t, exporter(t, NewCollector(f)))
			for state, want := range test.want {
				expectValue(t, func() (float64, bool) {
					return value(got, "persisted_informers",
						labelValues{"state": state})
				}, state, want)
			}
			saved, found := value(got, "last_save_timestamp_seconds", nil)
			if found != (test.want["Saved"] == 1) || found && saved < startTime {
				t.Errorf("time of the last save = %v (found: %v)", saved, found)
			}
			saves, found := value(got, "saves_total", nil)
			if found != (test.backend != nil) || saves != test.want["Saved"] {
				t.Errorf("number of saves = %v (found: %v)", saves, found)
			}
			if failures, _ := value(got, "save_failures_total",
				nil); (failures > 0) != (test.want["Failing"] == 1) {
				t.Errorf("number of failures = %v, want some only for the failing backend", failures)
			}
		})
	}
}
