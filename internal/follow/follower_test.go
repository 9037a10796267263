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

// diary implements the dependencies of a Follower, and records its calls in order.
type diary struct {
	lines        []string
	incarnations int
	// forbidden refuses requests for all namespaces until allowed is closed.
	forbidden error
	allowed   chan struct{}
	// namespaces are the existing ones; unknown is why they are not listed.
	namespaces []string
	unknown    error
	notify     func()
}

func (d *diary) note(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) SetServed(bool, bool)                  {}
func (d *diary) Pending(reason status.Reason, _ error) { d.note("pending %s", reason) }
func (d *diary) Synced(incarnation int)                { d.note("synced %d", incarnation) }
func (d *diary) SetGone(reason status.Reason)          { d.note("gone %s", reason) }
func (d *diary) Begin(version string, uid types.UID) int {
	d.incarnations++
	d.note("begin %s of %q", version, uid)
	return d.incarnations
}

func (d *diary) SetPartitions(_ []string, namespaces string, _ status.Reason, err error) {
	if err != nil {
		d.note("%s: %v", namespaces, err)
	}
}

func (d *diary) ListWatch(p PartitionSpec, forbidden func(error)) cache.ListerWatcher {
	late := ""
	if p.NamespaceIsNew {
		late = " late"
	}
	d.note("read %s in %q%s", p.Version, p.Namespace, late)
	if forbidden != nil && d.forbidden != nil {
		forbidden(d.forbidden)
	}
	return nil
}

func (d *diary) AwaitPermission(ctx context.Context, _ PartitionSpec, _ error) bool {
	select {
	case <-d.allowed:
		d.forbidden = nil
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *diary) Retry() {}

func (d *diary) RunPartitions(ctx context.Context, listed func(), _ ...informer.Partition) error {
	if ctx.Err() == nil {
		listed()
	}
	<-ctx.Done()
	return nil
}

func (d *diary) RunChangingPartitions(ctx context.Context, listed func(),
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
		d.note("run in %s", strings.Join(names, ","))
		listed()
	}
}

func (d *diary) Forget() error {
	d.note("forget")
	return nil
}

func (d *diary) Current() (KnownNamespaces, <-chan struct{}) {
	if d.unknown != nil {
		return KnownNamespaces{Unlistable: true, Reason: status.ReasonForbidden, Err: d.unknown}, nil
	}
	return KnownNamespaces{Names: slices.Clone(d.namespaces), Listed: true}, nil
}

func (d *diary) Notify(changed func()) func() {
	d.notify = changed
	return func() { d.note("heard enough of namespaces") }
}

func (d *diary) Release() { d.note("release the namespaces") }

// follows runs a Follower with a diary, and compares the diary after each step.
func follows(t *testing.T, d *diary, change func(*Follower),
	test func(*TypeRegistry, func(step string, want ...string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := NewTypeRegistry(func() {})
		f := &Follower{
			Type: widgets, Types: b, Requests: d, Cache: d, Health: d,
			AllNamespaces: func() (NamespaceList, error) { return d, nil },
		}
		change(f)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { // ended by cancel
			defer close(ended)
			f.Run(ctx)
		}()
		test(b, func(step string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, d.lines); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step, diff)
			}
			d.lines = nil
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

// TestFollowerOrder: an incarnation ends, then the cache is cleared, then the next incarnation starts.
func TestFollowerOrder(t *testing.T) {
	follows(t, &diary{}, func(f *Follower) { f.Versions = Preferred() },
		func(b *TypeRegistry, expect func(string, ...string)) {
			expect("nothing is known", "pending TypesUnknown")
			b.SetComplete()
			expect("there is no such type", "pending NotInstalled")
			b.SetType(served("1", "v1"))
			expect("installed", `begin v1 of "1"`, `read v1 in ""`, "synced 1")
			b.SetType(served("1", "v2", "v1"))
			expect("another version is preferred")
			b.SetType(served("1", "v2"))
			expect("another version takes over", `begin v2 of "1"`, `read v2 in ""`, "synced 2")
			b.SetType(served("2", "v2"))
			expect("replaced", "forget", "gone Replaced", `begin v2 of "2"`, `read v2 in ""`, "synced 3")
			b.RemoveType(widgets.GroupResource())
			expect("gone", "forget", "gone NotInstalled", "pending NotInstalled")
		})
}

// TestFollowerReadsNamespaces: namespaces are read one by one while reading all is forbidden, and at once
// when it is allowed.
func TestFollowerReadsNamespaces(t *testing.T) {
	d := &diary{forbidden: errors.New("not for you"), namespaces: []string{"a1", "b"}}
	follows(t, d, func(f *Follower) {
		f.Namespaces = Matching([]string{"a*"}, nil)
		f.Types.SetType(served("1", "v1"))
		d.allowed = make(chan struct{})
	}, func(_ *TypeRegistry, expect func(string, ...string)) {
		expect("installed", `begin v1 of "1"`, `read v1 in ""`, `read v1 in "a1"`, "run in a1", "synced 1")
		d.namespaces = []string{"a1", "a2", "b", "c"}
		d.notify()
		expect("namespaces come", `read v1 in "a2" late`, "run in a1,a2", "synced 1")
		d.namespaces = []string{"a2"}
		d.notify()
		expect("one goes", "run in a2", "synced 1")
		close(d.allowed)
		expect("all may be read", "heard enough of namespaces", "release the namespaces",
			`read v1 in ""`, "synced 1")
	})
	unknown := &diary{forbidden: errors.New("not for you"), unknown: errors.New("nor are these")}
	follows(t, unknown, func(f *Follower) {
		f.Namespaces = Matching([]string{"prod", "a*"}, nil)
		f.Types.SetType(served("1", "v1"))
	}, func(_ *TypeRegistry, expect func(string, ...string)) {
		const message = "namespaces matching a*,prod: not for you; the namespaces are unknown: nor are these"
		expect("by name", `begin v1 of "1"`, `read v1 in ""`, `read v1 in "prod"`, message, "run in prod",
			"synced 1", message)
	})
}

// TestFollowerReadsSelection: each of several namespaces separately, and nothing if nothing is selected.
func TestFollowerReadsSelection(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Follower)
		want   []string
	}{
		"every type exists": {func(f *Follower) { f.Types = nil },
			[]string{`begin v1 of ""`, `read v1 in ""`, "synced 1"}},
		"one namespace": {func(f *Follower) { f.Namespaces = Only("a") },
			[]string{`begin v1 of "1"`, `read v1 in "a"`, "synced 1"}},
		"several namespaces": {func(f *Follower) { f.Namespaces = Only("b", "a") },
			[]string{`begin v1 of "1"`, `read v1 in "a"`, `read v1 in "b"`, "synced 1"}},
		"nothing": {func(f *Follower) { f.SelectsNothing = true },
			[]string{`begin v1 of "1"`, "synced 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			follows(t, &diary{}, func(f *Follower) {
				f.Types.SetType(served("1", "v1"))
				test.change(f)
			}, func(_ *TypeRegistry, expect func(string, ...string)) { expect("started", test.want...) })
		})
	}
}
