package soak_test

import (
	"context"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer"
)

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
