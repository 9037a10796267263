package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/informer"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// callRecorder implements the dependencies of a Follower, and records its calls in order.
type callRecorder struct {
	calls        []string
	incarnations int
	// forbidden, if set, is the error of requests for all namespaces until allowed is closed.
	forbidden error
	allowed   chan struct{}
	// namespaces are the existing namespaces. namespacesErr, if set, is the error of listing them.
	namespaces    []string
	namespacesErr error
	notify        func()
}

func (d *callRecorder) record(format string, args ...any) {
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

func (d *callRecorder) SetServed(bool, bool)                  {}
func (d *callRecorder) Pending(reason status.Reason, _ error) { d.record("pending %s", reason) }
func (d *callRecorder) Synced(incarnation int)                { d.record("synced %d", incarnation) }
func (d *callRecorder) SetGone(reason status.Reason)          { d.record("gone %s", reason) }
func (d *callRecorder) Begin(version string, uid types.UID) int {
	d.incarnations++
	d.record("begin %s of %q", version, uid)
	return d.incarnations
}

func (d *callRecorder) SetPartitions(_ []string, namespaces string, _ status.Reason, err error) {
	if err != nil {
		d.record("%s: %v", namespaces, err)
	}
}

func (d *callRecorder) ListWatch(p PartitionSpec, forbidden func(error)) cache.ListerWatcher {
	suffix := ""
	if p.NamespaceIsNew {
		suffix = " new"
	}
	d.record("read %s in %q%s", p.Version, p.Namespace, suffix)
	if forbidden != nil && d.forbidden != nil {
		forbidden(d.forbidden)
	}
	return nil
}

func (d *callRecorder) AwaitPermission(ctx context.Context, _ PartitionSpec, _ error) bool {
	select {
	case <-d.allowed:
		d.forbidden = nil
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *callRecorder) Retry() {}

func (d *callRecorder) RunPartition(ctx context.Context, listed func(), _ informer.Partition) error {
	if ctx.Err() == nil {
		listed()
	}
	<-ctx.Done()
	return nil
}

func (d *callRecorder) RunPartitions(ctx context.Context, listed func(),
	next func(context.Context) ([]informer.Partition, bool)) error {
	for {
		partitions, more := next(ctx)
		if !more {
			return nil
		}
		names := []string{}
		for _, p := range partitions {
			names = append(names, p.Namespace)
		}
		slices.Sort(names)
		d.record("run in %s", strings.Join(names, ","))
		listed()
	}
}

func (d *callRecorder) Forget() error {
	d.record("forget")
	return nil
}

func (d *callRecorder) Suspend() error {
	d.record("suspend")
	return nil
}

func (d *callRecorder) Current() (KnownNamespaces, <-chan struct{}) {
	if d.namespacesErr != nil {
		return KnownNamespaces{Unlistable: true, Reason: status.ReasonForbidden, Err: d.namespacesErr}, nil
	}
	return KnownNamespaces{Names: slices.Clone(d.namespaces), Listed: true}, nil
}

func (d *callRecorder) OnChange(changed func()) func() {
	d.notify = changed
	return func() { d.record("stop notifications of namespaces") }
}

func (d *callRecorder) Release() { d.record("release the namespaces") }

// runFollower runs a Follower with a callRecorder. The expect function compares the calls since its last
// call.
func runFollower(t *testing.T, d *callRecorder, change func(*Follower),
	test func(*TypeRegistry, func(step string, want ...string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		registry := NewTypeRegistry(func() {}, func(error) {})
		f := &Follower{
			Type: widgets, Types: registry, Requests: d, Cache: d, Health: d,
			AllNamespaces: func() (NamespaceList, error) { return d, nil },
		}
		change(f)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { // ended by cancel
			defer close(ended)
			f.Run(ctx)
		}()
		test(registry, func(step string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, d.calls); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step, diff)
			}
			d.calls = nil
		})
		cancel()
		<-ended
	})
}

func served(uid types.UID, versions ...string) typesource.Type {
	return typesource.Type{GroupResource: widgets.GroupResource(), Namespaced: true, UID: uid,
		Versions:    versions,
		Established: true}
}

// TestFollowerOrder checks that the cache is cleared after the end of an incarnation and before the next one.
func TestFollowerOrder(t *testing.T) {
	runFollower(t, &callRecorder{}, func(f *Follower) { f.Versions = PreferredVersion() },
		func(registry *TypeRegistry, expect func(string, ...string)) {
			expect("nothing is known", "pending TypesUnknown")
			registry.SetComplete()
			expect("there is no such type", "pending NotInstalled")
			registry.SetType(served("1", "v1"))
			expect("installed", `begin v1 of "1"`, `read v1 in ""`, "synced 1")
			registry.SetType(served("1", "v2", "v1"))
			expect("another version is preferred")
			registry.SetType(served("1", "v2"))
			expect("another version takes over", `begin v2 of "1"`, `read v2 in ""`, "synced 2")
			registry.SetType(served("2", "v2"))
			expect("replaced", "forget", "gone Replaced", `begin v2 of "2"`, `read v2 in ""`, "synced 3")
			registry.RemoveType(widgets.GroupResource(), true)
			expect("gone", "forget", "gone NotInstalled", "pending NotInstalled")
		})
}

// TestFollowerReadsNamespaces checks that namespaces are read one by one while reading all is forbidden, and
// with one request when that is allowed.
func TestFollowerReadsNamespaces(t *testing.T) {
	d := &callRecorder{forbidden: errors.New("list is forbidden"), namespaces: []string{"a1", "b"}}
	runFollower(t, d, func(f *Follower) {
		f.Namespaces = NamespacesMatching([]string{"a*"}, nil)
		f.Types.SetType(served("1", "v1"))
		d.allowed = make(chan struct{})
	}, func(_ *TypeRegistry, expect func(string, ...string)) {
		expect("installed", `begin v1 of "1"`, `read v1 in ""`, `read v1 in "a1"`, "run in a1", "synced 1")
		d.namespaces = []string{"a1", "a2", "b", "c"}
		d.notify()
		expect("namespaces are created", `read v1 in "a2" new`, "run in a1,a2", "synced 1")
		d.namespaces = []string{"a2"}
		d.notify()
		expect("a namespace is deleted", "run in a2", "synced 1")
		close(d.allowed)
		expect("listing all is allowed", "stop notifications of namespaces", "release the namespaces",
			`read v1 in ""`, "synced 1")
	})
	unknown := &callRecorder{forbidden: errors.New("list is forbidden"), namespacesErr: errors.New("namespaces are forbidden")}
	runFollower(t, unknown, func(f *Follower) {
		f.Namespaces = NamespacesMatching([]string{"prod", "a*"}, nil)
		f.Types.SetType(served("1", "v1"))
	}, func(_ *TypeRegistry, expect func(string, ...string)) {
		const message = "namespaces matching a*,prod: list is forbidden; the namespaces are unknown: namespaces are forbidden"
		expect("by name", `begin v1 of "1"`, `read v1 in ""`, `read v1 in "prod"`, message, "run in prod",
			"synced 1", message)
	})
}

// TestFollowerReadsSelection checks that each of several namespaces is read separately, and none if no
// objects are selected.
func TestFollowerReadsSelection(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Follower)
		want   []string
	}{
		"every type exists": {func(f *Follower) { f.Types = nil },
			[]string{`begin v1 of ""`, `read v1 in ""`, "synced 1"}},
		"one namespace": {func(f *Follower) { f.Namespaces = OnlyNamespaces("a") },
			[]string{`begin v1 of "1"`, `read v1 in "a"`, "synced 1"}},
		"several namespaces": {func(f *Follower) { f.Namespaces = OnlyNamespaces("b", "a") },
			[]string{`begin v1 of "1"`, `read v1 in "a"`, `read v1 in "b"`, "run in a,b", "synced 1"}},
		"nothing": {func(f *Follower) { f.SelectsNothing = true },
			[]string{`begin v1 of "1"`, "run in ", "synced 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			runFollower(t, &callRecorder{}, func(f *Follower) {
				f.Types.SetType(served("1", "v1"))
				test.change(f)
			}, func(_ *TypeRegistry, expect func(string, ...string)) { expect("started", test.want...) })
		})
	}
}
