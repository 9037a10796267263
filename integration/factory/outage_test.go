package factory_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// shutDownSoon checks that a shutdown does not wait for a server that is not there.
func shutDownSoon(t *testing.T, factory *dynamicinformer.Factory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := factory.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	for _, current := range factory.Status() {
		if current.State != status.Stopped {
			t.Errorf("after the shutdown there is %+v", current)
		}
	}
}

func TestWithoutServer(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{})
	s.put("a", 1)
	synced := s.factory
	s.follow(s.widgets)
	s.sync()
	s.factory = newFactory(t, s.ctx, dynamicinformer.Options{})
	cutOff, _ := s.follow(s.widgets)
	s.sync()
	stale := s.factory

	harness.KillAPIServer(t)
	t.Run("shutdown after a sync", func(t *testing.T) { shutDownSoon(t, synced) })
	t.Run("shutdown while cut off", func(t *testing.T) {
		s.await(cutOff, status.Synced, status.ReasonUnreachable)
		if keys := cutOff.GetStore().ListKeys(); len(keys) != 1 {
			t.Errorf("without a server the cache holds %v, want what it held before", keys)
		}
		shutDownSoon(t, stale)
	})
	t.Run("shutdown before any sync", func(t *testing.T) {
		s.factory = newFactory(t, s.ctx, dynamicinformer.Options{})
		i, _ := s.follow(s.widgets)
		s.await(i, status.Syncing, status.ReasonUnreachable)
		shutDownSoon(t, s.factory)
	})

	s.factory = newFactory(t, s.ctx, dynamicinformer.Options{})
	_, j := s.follow(s.widgets)
	t.Run("waiting ends with its context", func(t *testing.T) { s.expectGivenUp(t) })
	harness.RestartAPIServer(t)
	s.sync()
	j.expect("add a")
}

// expectGivenUp wants waiting to end with its context, and to tell about the type.
func (s *scene) expectGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	enough := errors.New("enough")
	cancel(enough)
	statuses, err := s.factory.WaitForSync(ctx)
	var missing *dynamicinformer.NotSyncedError
	if !errors.As(err, &missing) || !errors.Is(missing.Cause, enough) {
		t.Errorf("WaitForSync: %v, want the cause of the context", err)
	}
	if len(statuses) != 1 || statuses[0].GVR != s.widgets {
		t.Errorf("the statuses are %+v, want that of %s", statuses, s.widgets)
	}
}

func TestRecoversAfterRestart(t *testing.T) {
	for _, tc := range []struct {
		name    string
		restart func(testing.TB)
	}{
		{"API server", harness.RestartAPIServer},
		{"etcd", harness.RestartEtcd},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, dynamicinformer.Options{})
			s.put("a", 1)
			i, j := s.follow(s.widgets)
			j.expect("add a")
			s.sync()
			tc.restart(t)
			s.put("a", 2)
			j.expect("update a")
			s.put("b", 1)
			j.expect("add b")
			s.await(i, status.Synced, status.ReasonNone)
			s.expectMirror(i)
		})
	}
	t.Run("long outage", func(t *testing.T) {
		s := newScene(t, dynamicinformer.Options{})
		s.put("a", 1)
		i, j := s.follow(s.widgets)
		j.expect("add a")
		s.sync()
		harness.KillAPIServer(t)
		s.await(i, status.Synced, status.ReasonUnreachable)
		if keys := i.GetStore().ListKeys(); len(keys) != 1 {
			t.Errorf("during the outage the cache holds %v, want what it held before", keys)
		}
		harness.RestartAPIServer(t)
		s.delete("a")
		j.expect("delete a")
		s.await(i, status.Synced, status.ReasonNone)
	})
}

// TestRelistAfterCompaction cuts the factory off while things change and the server forgets how.
func TestRelistAfterCompaction(t *testing.T) {
	network := &gate{}
	s := newScene(t, dynamicinformer.Options{Config: network.through(harness.Config(t))})
	s.put("deleted", 1)
	s.put("changed", 1)
	s.put("kept", 1)
	i, j := s.follow(s.widgets)
	j.expect("add deleted", "add changed", "add kept")
	s.sync()

	network.close()
	s.await(i, status.Synced, status.ReasonUnreachable)
	s.delete("deleted")
	s.put("changed", 2)
	s.put("added", 1)
	harness.Compact(t)
	harness.RestartAPIServer(t)
	s.expectExpired(i.LastSyncResourceVersion())

	network.open()
	j.expect("delete deleted", "update changed", "add added")
	s.await(i, status.Synced, status.ReasonNone)
	s.expectMirror(i)
	s.put("kept", 2)
	j.expect("update kept")
}

// expectExpired checks that a watch cannot go on from a resource version.
func (s *scene) expectExpired(version string) {
	s.Helper()
	w, err := s.admin.Resource(s.widgets).Watch(s.ctx, metav1.ListOptions{ResourceVersion: version})
	if err == nil {
		defer w.Stop()
		select {
		case event := <-w.ResultChan():
			if event.Type != watch.Error {
				s.Fatalf("a watch from %s gets %v, want an error", version, event)
			}
			err = apierrors.FromObject(event.Object)
		case <-s.ctx.Done():
			s.Fatalf("a watch from %s gets nothing", version)
		}
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		s.Fatalf("a watch from %s: %v, want expired", version, err)
	}
}
