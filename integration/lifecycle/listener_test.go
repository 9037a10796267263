package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// log is a list of lines that can be waited for.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// awaitLog waits until a log is what is wanted.
func (s *scene) awaitLog(l *log, want ...string) {
	s.Helper()
	harness.Eventually(s, func(context.Context) error {
		if diff := cmp.Diff(want, l.all()); diff != "" {
			return fmt.Errorf("the log (-want +got):\n%s", diff)
		}
		return nil
	})
}

func generations(l *log) dynamicinformer.Listener {
	return dynamicinformer.Listener{
		GenerationStarted: func(g status.Generation) { l.add("%d started", g.Number) },
		GenerationSynced:  func(g status.Generation) { l.add("%d synced", g.Number) },
		GenerationEnded: func(g status.Generation, reason status.Reason) {
			l.add("%d ended: %s", g.Number, reason)
		},
	}
}

// TestListeners are told of a type's coming and going in order, and those who come late of what there is.
func TestListeners(t *testing.T) {
	var early, late log
	s := newScene(t, dynamicinformer.Options{Listener: generations(&early)}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	i, _ := s.follow(resourceOf(widgets))
	harness.InstallCRDs(t, widgets)
	s.awaitSynced(i, 1)
	s.uninstall(widgets)
	s.await(i, status.Pending, status.ReasonNotInstalled)
	s.reinstall(widgets)
	s.awaitSynced(i, 2)
	s.awaitLog(&early, "1 started", "1 synced", "1 ended: NotInstalled", "2 started", "2 synced")

	if _, err := s.factory.AddListener(generations(&late)); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(&late, "2 started", "2 synced")
	s.uninstall(widgets)
	s.await(i, status.Pending, status.ReasonNotInstalled)
	s.awaitLog(&late, "2 started", "2 synced", "2 ended: NotInstalled")
}

// TestSubscription follows all types of a group, those that come later too, and is told of each type in order.
func TestSubscription(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	group := harness.Group(t)
	widgets, gadgets := harness.NewCRD(group, "Widget"), harness.NewCRD(group, "Gadget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	logs := map[string]*log{"widgets": {}, "gadgets": {}}
	subscription, err := s.factory.Subscribe(dynamicinformer.Selection{Group: group, Resource: "*"}, dynamicinformer.Subscriber{
		OnStarted: func(g status.Generation) { logs[g.GVR.Resource].add("%d started", g.Number) },
		OnAdd: func(gvr schema.GroupVersionResource, o *unstructured.Unstructured, initial bool) {
			logs[gvr.Resource].add("add %s, initial: %v", o.GetName(), initial)
		},
		OnDelete: func(gvr schema.GroupVersionResource, o *unstructured.Unstructured, _ bool) {
			logs[gvr.Resource].add("delete %s", o.GetName())
		},
		OnSynced: func(g status.Generation) { logs[g.GVR.Resource].add("%d synced", g.Number) },
		OnGone: func(g status.Generation, reason status.Reason) {
			logs[g.GVR.Resource].add("%d gone: %s", g.Number, reason)
		},
		OnError: func(gvr schema.GroupVersionResource, err error) { logs[gvr.Resource].add("error: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Close()
	if err := s.factory.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(logs["widgets"], "1 started", "add a, initial: true", "1 synced")

	harness.InstallCRDs(t, gadgets)
	s.awaitLog(logs["gadgets"], "1 started", "1 synced")
	s.create(gadgets, "b")
	s.awaitLog(logs["gadgets"], "1 started", "1 synced", "add b, initial: false")
	s.uninstall(widgets)
	s.awaitLog(logs["widgets"], "1 started", "add a, initial: true", "1 synced", "delete a", "1 gone: NotInstalled")
}

// awaitCondition waits until a condition of the factory is true or not.
func (s *scene) awaitCondition(condition status.ConditionType, want metav1.ConditionStatus) {
	s.Helper()
	harness.Eventually(s, func(context.Context) error {
		if c := s.factory.Condition(condition); c.Status != want {
			return fmt.Errorf("the condition is %+v, want it %s", c, want)
		}
		return nil
	})
}
