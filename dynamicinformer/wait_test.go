package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestWaitForSyncSettles verifies that an unreadable type ends the wait for that type but not for others.
func TestWaitForSyncSettles(t *testing.T) {
	tests := []struct {
		status int
		state  status.State
		reason status.Reason
		text   string
		is     func(error) bool
	}{
		{401, status.Syncing, status.ReasonUnauthorized, "the server's own words", apierrors.IsUnauthorized},
		{403, status.Degraded, status.ReasonForbidden, "list denied: the server's own words",
			apierrors.IsForbidden},
		{404, status.Degraded, status.ReasonNotFound, "the server's own words", apierrors.IsNotFound},
		{405, status.Degraded, status.ReasonVerbUnsupported, "the server's own words",
			apierrors.IsMethodNotSupported},
	}
	for _, tt := range tests {
		t.Run(string(tt.reason), func(t *testing.T) {
			server := newServer(t)
			server.AddFaults(apitest.Fault{Path: gadgetsPath, Status: tt.status,
				Message: "the server's own words"})
			server.Create(t, widgets, widget("web", "a"))
			f := newFactory(t, server, Options{})
			i := mustInformer(t, f, widgets)
			mustInformer(t, f, gadgets)
			must(t, f.Start(longContext(t)))
			statuses, err := waitForStatuses(longContext(t), f)
			if !i.HasSynced() || len(i.GetStore().ListKeys()) != 1 {
				t.Error("HasSynced() = false for the other type")
			}
			var states []status.State
			for _, s := range statuses {
				states = append(states, s.State)
			}
			if diff := cmp.Diff([]status.State{tt.state, status.Synced}, states); diff != "" {
				t.Errorf("the states of gadgets and widgets (-want +got):\n%s", diff)
			}
			var missing *NotSyncedError
			if !errors.As(err, &missing) || len(missing.NotSynced) != 1 || missing.Cause != nil {
				t.Fatalf("WaitForSync() = %#v, want a NotSyncedError with one type", err)
			}
			if s := missing.NotSynced[0]; s.GVR != gadgets || s.Reason != tt.reason || s.LastError == nil ||
				s.Message == "" {
				t.Errorf("the type that is not synced has the status %+v", s)
			}
			if status := apierrors.APIStatus(nil); !tt.is(err) || !errors.As(err, &status) ||
				errors.Is(err, context.Canceled) {
				t.Errorf("the error %v does not wrap the server's error", err)
			}
			want := fmt.Sprintf("not synced: gadgets.v1.example.com: %s (%s): %s", tt.state,
				tt.reason, tt.text)
			if err.Error() != want {
				t.Errorf("the text is %q, want %q", err, want)
			}
		})
	}
}

func TestWaitForSyncGivesUp(t *testing.T) {
	server := newServer(t)
	server.AddFaults(unansweredRequests(widgetsPath), unansweredRequests(gadgetsPath))
	f := newFactory(t, server, Options{})
	mustInformer(t, f, widgets)
	mustInformer(t, f, gadgets)
	must(t, f.Start(longContext(t)))
	why := errors.New("had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	statuses, err := waitForStatuses(ctx, f, widgets, gadgets)
	var missing *NotSyncedError
	if !errors.As(err, &missing) || len(missing.NotSynced) != 2 || !errors.Is(err, why) ||
		!errors.Is(missing.Cause, why) {
		t.Fatalf("WaitForSync() = %#v, want a NotSyncedError with two types and the cause", err)
	}
	if len(statuses) != 2 || statuses[0].GVR != gadgets || statuses[1].GVR != widgets {
		t.Errorf("the statuses are %+v, want gadgets and widgets", statuses)
	}
	if text := err.Error(); !strings.HasSuffix(text, "(gave up: had enough)") ||
		!strings.Contains(text, "widgets.v1.example.com: ") {
		t.Errorf("the error text is %q", text)
	}
}

// TestWaitForSyncAfterShutdown verifies that an informer that will never start is not waited for.
func TestWaitForSyncAfterShutdown(t *testing.T) {
	f := newFactory(t, newServer(t), Options{})
	i := mustInformer(t, f, widgets)
	must(t, f.Shutdown(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.WaitForSync(ctx)
	var missing *NotSyncedError
	if !errors.As(err, &missing) || missing.Cause != nil || i.Status().State != status.Stopped ||
		!i.IsStopped() {
		t.Errorf("WaitForSync() after Shutdown = %v with the status %+v, want an error, Stopped", err,
			i.Status())
	}
}

// TestRecovery verifies that a temporary failure does not end the wait.
func TestRecovery(t *testing.T) {
	server := newServer(t)
	server.AddFaults(fault(widgetsPath, "", 500))
	f := newFactory(t, server, Options{})
	i := mustInformer(t, f, widgets)
	must(t, f.Start(longContext(t)))
	s := waitFor(t, i, func(s status.Status) bool { return s.Reason == status.ReasonRequestFailed })
	if s.Settled() || s.LastError == nil || !s.LastContact.IsZero() {
		t.Errorf("Status() of a failing informer = %+v, want not settled with an error", s)
	}
	server.Repair()
	statuses, err := waitForStatuses(longContext(t), f)
	must(t, err)
	if s := statuses[0]; s.LastError != nil || s.Reason != status.ReasonNone || s.Message != "" ||
		s.LastContact.IsZero() {
		t.Errorf("Status() of the recovered informer = %+v, want no error", s)
	}
}

// TestWaitForSyncRequired verifies that a required type that is absent is awaited; an optional one is not.
func TestWaitForSyncRequired(t *testing.T) {
	s := newScriptedFactory(
		t, Options{Resources: map[schema.GroupVersionResource]ResourceOptions{widgets: {Required: new(
			true)}}})
	mustInformer(t, s.factory, gadgets)
	must(t, s.factory.Start(s.ctx))
	s.types.listener.SetComplete()
	s.await(status.Pending, status.ReasonNotInstalled)
	if c := s.factory.Condition(status.ConditionReady); c.Reason != status.ReasonNotInstalled ||
		!strings.HasPrefix(c.Message, "widgets.v1.example.com: Pending") {
		t.Errorf("without the required type, the condition is %+v, want NotInstalled", c)
	}

	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	var missing *NotSyncedError
	if err := s.factory.WaitForSync(ended); !errors.As(err, &missing) || missing.Cause == nil ||
		len(missing.NotSynced) != 2 {
		t.Errorf("WaitForSync() = %v, want a NotSyncedError with two types and a cause", err)
	}

	type outcome struct {
		statuses []status.Status
		err      error
	}
	result := make(chan outcome, 1)
	go func() { // ends when the type is synced
		statuses, err := waitForStatuses(s.ctx, s.factory)
		result <- outcome{statuses, err}
	}()
	s.types.set(func(t *typesource.Type) { t.Established = false })
	s.await(status.Pending, status.ReasonNotEstablished)
	select {
	case o := <-result:
		t.Fatalf("WaitForSync ended early with %+v", o)
	default:
	}
	s.types.set(nil)
	o := <-result
	if !errors.As(o.err, &missing) || missing.Cause != nil || len(missing.NotSynced) != 1 ||
		missing.NotSynced[0].GVR != gadgets {
		t.Errorf("the wait ended with %v, want an error about gadgets only", o.err)
	}
	if len(o.statuses) != 2 || o.statuses[1].State != status.Synced {
		t.Errorf("WaitForSync ended with %+v, want two types, synced", o.statuses)
	}
	if c := s.factory.Condition(status.ConditionReady); c.Status != metav1.ConditionTrue {
		t.Errorf("with the required type, the condition is %+v, want True", c)
	}
}

// TestListenerOfFactory verifies that Options.Listener and AddListener receive the events of real informers.
func TestListenerOfFactory(t *testing.T) {
	server := newServer(t)
	first, late := &eventLog{}, &eventLog{}
	f := newFactory(t, server, Options{Listener: first.listener()})
	startSynced(t, f)
	l, err := f.AddListener(late.listener())
	must(t, err)
	must(t, f.Shutdown(longContext(t)))
	<-l.Done()
	if _, err := f.AddListener(status.Listener{}); !errors.Is(err, ErrShutdown) {
		t.Errorf("AddListener() after Shutdown = %v, want ErrShutdown", err)
	}
	for name, d := range map[string]*eventLog{"the first": first, "the late": late} {
		var life []string
		for _, line := range d.all() {
			if strings.HasPrefix(line, "widgets: s") || strings.HasPrefix(line, "widgets: ended") {
				life = append(life, line)
			}
		}
		if diff := cmp.Diff([]string{"widgets: started 1 ", "widgets: synced 1", "widgets: ended 1 "},
			life); diff != "" {
			t.Errorf("%s listener (-want +got):\n%s\nof %q", name, diff, d.all())
		}
	}
}

// TestWaitForOneInformer verifies that other informers of the type do not delay the wait, and the informer's
// end ends it.
func TestWaitForOneInformer(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(unansweredRequests(inNamespace("web")))
		f := newVirtualFactory(t, server, Options{Linger: -1})
		start(t, f)
		mine, hangs := acquire(t, f, widgets), acquire(t, f, widgets,
			ResourceOptions{Namespaces: InNamespaces("web")})
		if err := errors.Join(mine.WaitForSync(t.Context()),
			mine.Informer().WaitForSync(t.Context())); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := hangs.WaitForSync(ctx); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "does not answer") {
			t.Errorf("WaitForSync() without a response = %v, want DeadlineExceeded with the reason", err)
		}
		waited := make(chan error)
		go func() { waited <- hangs.Informer().WaitForSync(context.Background()) }() // ended by the release
		synctest.Wait()
		hangs.Release()
		var missing *NotSyncedError
		if err := <-waited; !errors.Is(err, ErrStopped) || !errors.As(err, &missing) ||
			err.Error() != "not synced: widgets.v1.example.com: Stopped: all handles were released" {
			t.Errorf("WaitForSync() after the release = %v, want ErrStopped", err)
		}
		<-hangs.Informer().Stopped()
		select {
		case <-mine.Informer().Stopped():
			t.Error("the release stopped the other informer")
		default:
		}
		if all := f.Informers(); len(all) != 1 || all[0] != mine.Informer() {
			t.Errorf("Informers() = %v, want the remaining informer", all)
		}
	})
}

// TestRequiredWaitsForRights verifies that a handle that requires the type waits for a permission that is
// granted late.
func TestRequiredWaitsForRights(t *testing.T) {
	for _, status := range []int{401, 403} {
		onFakeClock(t, func(t *testing.T, server *apitest.Server) {
			server.AddFaults(fault(widgetsPath, "", status))
			f := newVirtualFactory(t, server,
				Options{Resources: map[schema.GroupVersionResource]ResourceOptions{widgets: {Required: new(
					true)}}})
			i := mustInformer(t, f, widgets)
			optional := acquire(t, f, widgets, ResourceOptions{Required: new(false)})
			start(t, f)
			if err := optional.WaitForSync(t.Context()); err == nil ||
				errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d: WaitForSync() of the optional handle = %v, want an error before the deadline",
					status, err)
			}
			time.AfterFunc(10*time.Second, server.Repair)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := f.WaitForSync(ctx); err != nil {
				t.Errorf("%d: WaitForSync() of the factory = %v", status, err)
			}
			if err := i.WaitForSync(ctx); err != nil {
				t.Errorf("%d: WaitForSync() of the informer = %v", status, err)
			}
		})
	}
	// WaitForSync does not wait for types whose error only a change of the program can fix.
	server := newServer(t)
	server.AddFaults(fault(widgetsPath, "", 405))
	f := newFactory(t, server, Options{Defaults: ResourceOptions{Required: new(true)}})
	i := mustInformer(t, f, widgets)
	must(t, f.Start(longContext(t)))
	if err := i.WaitForSync(longContext(t)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WaitForSync() of a type that cannot be listed = %v, want an error before the deadline", err)
	}
}
