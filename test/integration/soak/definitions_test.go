package soak_test

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/discovery/crd"
)

// retryUntilEnd calls try until it succeeds or the context ends.
func (w *fixture) retryUntilEnd(try func(context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
		err := try(ctx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-w.ctx.Done():
			return fmt.Errorf("%w: %w", w.ctx.Err(), err)
		}
	}
}

// toggleType deletes an installed type or installs a missing one, without waiting.
func (w *fixture) toggleType(k *kind) {
	k.installed.Store(!k.installed.Load())
	w.changes.Go(func() { // ended by success or by the context of the fixture
		k.mu.Lock()
		defer k.mu.Unlock()
		change := w.uninstall
		if k.installed.Load() { // read under the lock, so that the last call wins
			change = w.install
		}
		if err := change(k); err != nil {
			w.Error(err)
		}
	})
}

func (w *fixture) install(k *kind) error {
	definitions := w.admin.Resource(crd.GVR)
	err := w.retryUntilEnd(func(ctx context.Context) error {
		_, err := definitions.Create(ctx, k.definition, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		// The definition exists: either the answer to this attempt was lost, or the previous one is being
		// deleted.
		existing, err := definitions.Get(ctx, k.definition.GetName(), metav1.GetOptions{})
		if err == nil && existing.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s is still being deleted", k.name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.retryUntilEnd(func(ctx context.Context) error {
		_, err := w.admin.Resource(k.gvr).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

func (w *fixture) uninstall(k *kind) error {
	definitions := w.admin.Resource(crd.GVR)
	return w.retryUntilEnd(func(ctx context.Context) error {
		err := definitions.Delete(ctx, k.definition.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%s is being deleted", k.name)
		}
		return err
	})
}

// installAll installs all types. They disappear with the control plane.
func (w *fixture) installAll() {
	w.Helper()
	for _, k := range w.kinds {
		if err := w.install(k); err != nil {
			w.Fatal(err)
		}
	}
}
