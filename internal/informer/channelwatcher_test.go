package informer

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// TestChannelWatcher verifies which ends of a watch are failures, after which the informer pauses and lists.
func TestChannelWatcher(t *testing.T) {
	refused, throttled := errors.New("refused"), apierrors.NewTooManyRequestsError("later")
	for name, tt := range map[string]struct {
		begin error
		play  func(*watch.FakeWatcher)
		want  func(error) bool
	}{
		"refused":  {refused, nil, func(err error) bool { return err == refused }},
		"no event": {nil, (*watch.FakeWatcher).Stop, func(err error) bool { return err == errShortWatch }},
		"throttled": {nil, func(w *watch.FakeWatcher) { w.Error(&throttled.ErrStatus) },
			apierrors.IsTooManyRequests},
		"closed": {nil, func(w *watch.FakeWatcher) { w.Add(object("a", 1)); w.Stop() },
			func(err error) bool { return err == nil }},
		"enough": {nil, func(w *watch.FakeWatcher) { w.Add(object("last", 1)) },
			func(err error) bool { return err == nil }},
	} {
		w := watch.NewFake()
		c := InlineWatcherOf(&cache.ListWatch{WatchFuncWithContext: func(context.Context,
			metav1.ListOptions) (watch.Interface, error) {
			return w, tt.begin
		}})
		if tt.play != nil {
			go tt.play(w) // ended by the events
		}
		err := c.WatchInline(t.Context(), &metav1.ListOptions{}, func(event watch.Event) bool {
			return nameAndVersion(event.Object) != "last1"
		})
		if !tt.want(err) {
			t.Errorf("%s: WatchInline() = %v", name, err)
		}
	}
	idle := InlineWatcherOf(&cache.ListWatch{WatchFuncWithContext: func(context.Context,
		metav1.ListOptions) (watch.Interface, error) {
		return watch.NewFake(), nil
	}})
	idle.Interrupt()
	idle.Interrupt() // one interruption is enough
	if err := idle.WatchInline(t.Context(), &metav1.ListOptions{}, nil); err != nil {
		t.Errorf("WatchInline() after Interrupt() = %v, want nil", err)
	}
}
