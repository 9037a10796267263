package indexers_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/integration/harness"
)

// testTimeout limits every wait.
const testTimeout = 2 * time.Minute

// fixture is a tracker and a factory that run until the test ends.
type fixture struct {
	*testing.T
	ctx     context.Context
	admin   dynamic.Interface
	tracker *discovery.Tracker
	factory *dynamicinformer.Factory
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureAs(t, harness.Config(t))
}

// newFixtureAs is newFixture with a factory that sends its requests as user.
func newFixtureAs(t *testing.T, userConfig *rest.Config) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	config := harness.Config(t)
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }() // ended by cancel
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: userConfig,
		Types: tracker.Types(), Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return &fixture{t, ctx, admin, tracker, factory}
}

// bindConfig binds a config to the tracker's types.
func (s *fixture) bindConfig(config *indexers.Config) *bind.Binding {
	s.Helper()
	b, err := bind.New(s.factory, config, bind.Options{OnError: func(err error) { s.Error(err) }})
	if err != nil {
		s.Fatal(err)
	}
	stop := b.Follow(s.tracker)
	s.Cleanup(func() {
		stop()
		b.Close()
	})
	return b
}

func parseConfig(t testing.TB, resources string) *indexers.Config {
	t.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "c.yaml",
		Data: []byte("apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: test}\nspec:\n  resources:\n" + resources)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitQuery waits until a query returns the expected objects.
func (s *fixture) awaitQuery(b *bind.Binding, resource, text string, want ...string) {
	s.Helper()
	q, err := query.Parse(text)
	if err != nil {
		s.Fatalf("query %q: %v", text, err)
	}
	var got []string
	deadline, cancel := context.WithTimeout(s.ctx, testTimeout/2)
	defer cancel()
	for {
		querier, err := b.Querier(resource)
		if err == nil {
			got, err = querier.Keys(s.ctx, q, query.Options{AllowScan: true})
			if err == nil && slices.Equal(got, want) {
				return
			}
		}
		select {
		case <-deadline.Done():
			s.Errorf("%s %s: found %v, want %v: %v", resource, text, got, want, err)
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// decodeDefinitions decodes definitions from manifests.
func decodeDefinitions(t testing.TB, objects []*unstructured.Unstructured) []*crd.Definition {
	t.Helper()
	var out []*crd.Definition
	for _, o := range objects {
		d, err := crd.FromUnstructured(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func object(group, kind, namespace, name string, spec m) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: m{
		"apiVersion": group + "/v1", "kind": kind, "metadata": m{"namespace": namespace,
			"name": name}, "spec": spec,
	}}
}
