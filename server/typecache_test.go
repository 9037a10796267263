package server

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// TestStalledHandler verifies that if a handler does not return, run returns after stopTimeout.
func TestStalledHandler(t *testing.T) {
	a, config := newAPIServer(t), newConfig("workloads.demo.crdcache.dev")
	c, err := newTypeCache(t.Context(), &rest.Config{Host: a.URL}, &config)
	if err != nil {
		t.Fatal(err)
	}
	c.stopTimeout = time.Millisecond
	stalled, err := c.factory.Acquire(crd.GVR)
	if err != nil {
		t.Fatal(err)
	}
	entered, gate := make(chan struct{}), make(chan struct{})
	defer close(gate)
	enter := sync.OnceFunc(func() { close(entered) })
	_, err = stalled.Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		enter()
		<-gate
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.run(ctx) }() // ended by cancel
	<-entered
	cancel()
	var running *status.ShutdownError
	if err := <-ended; !errors.As(err, &running) {
		t.Errorf("run() = %v, want a ShutdownError", err)
	}
}
