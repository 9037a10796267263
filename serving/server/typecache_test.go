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
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
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

// TestOneInformerOfDefinitions verifies that package live, the page and the selection share one informer of
// CustomResourceDefinitions. Two informers would list them twice, and could not persist them in one folder.
func TestOneInformerOfDefinitions(t *testing.T) {
	config := DefaultConfig()
	c, err := newTypeCache(t.Context(), &rest.Config{Host: "https://cluster.example"}, &config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.live.Close()
	p, err := newPage(c, PageConfig{}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	options, err := bind.Options{}.ResourceOptions(&indexers.Resource{})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := c.factory.Acquire(crd.GVR, options)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Release()
	if all := c.factory.Informers(); len(all) != 1 {
		t.Errorf("%d informers, want 1 of CustomResourceDefinitions", len(all))
	}
}
