package harness

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// CacheServer is a serving/readapi/live server that runs in this process, with its factory and tracker.
type CacheServer struct {
	*live.Server
	factory     *dynamicinformer.Factory
	gvrs        []schema.GroupVersionResource
	stopTracker func() // stops the tracker
}

// StartCacheServer serves the types until Close.
func StartCacheServer(config *rest.Config, gvrs ...schema.GroupVersionResource) (*CacheServer, error) {
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		return nil, err
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Types: tracker.Types()})
	if err != nil {
		return nil, err
	}
	server, err := live.New(live.Options{Factory: factory, Types: tracker.Types(), Config: config})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by stop
	s := &CacheServer{Server: server, factory: factory, gvrs: slices.Clone(gvrs),
		stopTracker: func() { cancel(); <-tracked }}
	for _, gvr := range gvrs {
		informer, keepErr := factory.ForResource(gvr)
		if keepErr == nil {
			keepErr = server.AddType(informer)
		}
		err = errors.Join(err, keepErr)
	}
	if err := errors.Join(err, factory.Start(ctx)); err != nil {
		return nil, errors.Join(err, s.Close(context.Background()))
	}
	return s, nil
}

// WaitForSync waits until all types are served from the caches.
func (s *CacheServer) WaitForSync(ctx context.Context) error {
	if err := s.factory.WaitForSync(ctx); err != nil {
		return err
	}
	for _, gvr := range s.gvrs {
		if err := s.Server.WaitForSync(ctx, gvr.GroupResource()); err != nil {
			return err
		}
	}
	return nil
}

// Close stops the server. Running requests continue.
func (s *CacheServer) Close(ctx context.Context) error {
	s.Server.Close()
	err := s.factory.Shutdown(ctx)
	s.stopTracker()
	return err
}

// RunTracker returns a tracker that runs until the end of the test. Later cleanups of the caller run before
// it stops.
func RunTracker(t testing.TB, config *rest.Config) *discovery.Tracker {
	t.Helper()
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	must(t, err)
	testkit.RunUntilEnd(t, tracker.Run)
	return tracker
}
