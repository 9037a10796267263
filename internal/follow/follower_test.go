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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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

func (d *callRecorder) ListWatch(p PartitionSpec, forbidden func(error)) informer.InlineWatcher {
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
	runFollower(t, &callRecorder{}, func(f *Follower) { f.Versions = VersionsPreferred },
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

func TestMatchingNamespaces(t *testing.T) {
	for _, test := range []struct {
		include, except []string
		namespace       string
		want            bool
	}{
		{[]string{"team-*", "prod"}, nil, "team-a", true},
		{[]string{"team-*", "prod"}, nil, "prod", true},
		{[]string{"team-*", "prod"}, nil, "prod-eu", false},
		{[]string{"team-*", "prod"}, nil, "", false},
		{[]string{"team-*"}, []string{"*-sandbox"}, "team-a-sandbox", false},
		{[]string{"a*b*c"}, nil, "a-b-b-c", true},
		{[]string{"ab*ba"}, nil, "aba", false},
		{nil, []string{"kube-*"}, "kube-system", false},
		{nil, []string{"kube-*"}, "default", true},
		{nil, []string{"kube-*"}, "", true},
	} {
		n := NamespacesMatching(test.include, test.except)
		u := &unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"namespace": test.namespace}}}
		if got := n.Filter()(u); got != test.want {
			t.Errorf("%s: Filter() of namespace %q = %v, want %v", n, test.namespace, got, test.want)
		}
		if got, want := n.IsLimited(), test.include != nil; got != want {
			t.Errorf("%s: IsLimited() = %v, want %v", n, got, want)
		}
		if got := n.requested(); len(got) != 1 {
			t.Errorf("%s: requested() = %q, want one namespace", n, got)
		}
		if err := n.Validate(); err != nil {
			t.Errorf("%s: Validate() = %v, want no error", n, err)
		}
	}
	a, b := NamespacesMatching([]string{"b*", "a*"}, []string{"c"}), NamespacesMatching([]string{"a*", "b*", "a*"}, []string{"c"})
	if a.String() != b.String() || a.String() == NamespacesMatching([]string{"a*", "b*"}, nil).String() {
		t.Errorf("String() depends on the order, or ignores the exception: %s and %s", a, b)
	}
}

func TestCanFollowSeparately(t *testing.T) {
	namespaced, clusterScoped := typeState{exists: true, Type: typesource.Type{Namespaced: true}},
		typeState{exists: true}
	teams := NamespacesMatching([]string{"prod", "team-*"}, []string{"team-sandbox"})
	for _, test := range []struct {
		namespaces Namespaces
		known      typeState
		want       bool
	}{
		{AllNamespaces(), namespaced, false},
		{OnlyNamespaces("a", "b"), namespaced, false},
		{teams, typeState{}, true},
		{NamespacesMatching(nil, []string{"kube-*"}), namespaced, true},
		{NamespacesMatching(nil, []string{"kube-*"}), clusterScoped, false},
		{AllNamespacesExcept("kube-system"), namespaced, true},
		{AllNamespacesExcept("kube-system"), typeState{}, false},
	} {
		if got := test.namespaces.canFollowSeparately(&test.known); got != test.want {
			t.Errorf("canFollowSeparately() of %s with %+v = %v, want %v", test.namespaces, test.known, got,
				test.want)
		}
	}
}

func TestNamespacesString(t *testing.T) {
	for want, n := range map[string]Namespaces{
		"all": AllNamespaces(), "in a,b": OnlyNamespaces("b", "a", "b"), "except c": AllNamespacesExcept("c"),
		"matching a-*,b": NamespacesMatching([]string{"b", "a-*"}, nil), "not matching kube-*": NamespacesMatching(nil,
			[]string{"kube-*"}),
		"matching a-* except a-b": NamespacesMatching([]string{"a-*"}, []string{"a-b"}),
	} {
		if got := n.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
	if got := (Namespaces{}).String(); got != "all" {
		t.Errorf("String() of the zero value = %q, want all", got)
	}
	if got := NamespacesMatching(nil, nil); got.String() != "all" || got.Key() == AllNamespaces().Key() {
		t.Errorf("Matching(nil, nil) = %q, want all, with another key than All()", got)
	}
}

func TestRunnable(t *testing.T) {
	type options struct {
		versions   Versions
		namespaces Namespaces
	}
	installed := typeState{complete: true, exists: true, Type: typesource.Type{
		Established: true, Versions: []string{"v1"}, Unlistable: []string{"v2"}, ListOnly: []string{"v0"},
	}}
	with := func(change func(*typeState)) typeState { k := installed; change(&k); return k }
	unknown := map[schema.GroupVersion]error{{Group: "example.com", Version: "v4"}: errors.New("stale")}
	failed := with(func(k *typeState) { k.unknown = unknown })
	in := func(n Namespaces) options { return options{namespaces: n} }
	by := func(v Versions) options { return options{versions: v} }
	several := with(func(k *typeState) { k.Versions, k.Unlistable = []string{"v3", "v1"}, []string{"v2"} })
	tests := []struct {
		name      string
		known     typeState
		requested string
		options   options
		version   string
		want      status.Reason
	}{
		{"cluster-scoped in a factory for all namespaces", installed, "v1", in(Namespaces{}), "v1",
			status.ReasonNone},
		{"cluster-scoped in a factory for one", installed, "v1", in(OnlyNamespaces("x")), "",
			status.ReasonScopeConflict},
		{"cluster-scoped in all but one", installed, "v1", in(AllNamespacesExcept("x")), "v1", status.ReasonNone},
		{"namespaced in a factory for one", with(func(k *typeState) { k.Namespaced = true }), "v1",
			in(OnlyNamespaces("x")), "v1", status.ReasonNone},
		{"not watchable", installed, "v0", in(Namespaces{}), "v0", status.ReasonNone},
		{"not listable", installed, "v2", in(Namespaces{}), "", status.ReasonVerbUnsupported},
		{"not served", installed, "v3", in(Namespaces{}), "", status.ReasonVersionNotServed},
		{"not established", with(func(k *typeState) { k.Established = false }), "v1", in(Namespaces{}), "",
			status.ReasonNotEstablished},
		{"absent", typeState{complete: true}, "v1", in(Namespaces{}), "", status.ReasonNotInstalled},
		{"not known", typeState{}, "v1", in(Namespaces{}), "", status.ReasonTypesUnknown},
		{"absent, and the version is unknown", typeState{complete: true, unknown: unknown}, "v4",
			in(Namespaces{}), "", status.ReasonGroupUnknown},
		{"absent, and another version is unknown", typeState{complete: true, unknown: unknown}, "v1",
			in(Namespaces{}), "", status.ReasonNotInstalled},
		{"absent, and any version may be there", typeState{complete: true, unknown: unknown}, "",
			by(VersionsPreferred), "", status.ReasonGroupUnknown},
		{"not served, and the version is unknown", failed, "v4", in(Namespaces{}), "",
			status.ReasonGroupUnknown},
		{"served, and another version is unknown", failed, "v1", in(Namespaces{}), "v1", status.ReasonNone},
		{"the preferred version", several, "v1", by(VersionsPreferred), "v3", status.ReasonNone},
		{"the preferred version of those that can be listed", with(func(k *typeState) { k.Versions = nil }),
			"", by(VersionsPreferred), "v0", status.ReasonNone},
		{"none can be listed", with(func(k *typeState) { k.Versions, k.ListOnly = nil, nil }),
			"", by(VersionsPreferred), "", status.ReasonVerbUnsupported},
		{"no version at all", with(func(k *typeState) { k.Type = typesource.Type{Established: true} }), "v1",
			by(VersionsPreferred), "", status.ReasonVersionNotServed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			version, got, _ := test.known.versionToFollow(schema.GroupVersionResource{Group: "example.com",
				Version: test.requested}, test.options.versions, test.options.namespaces)
			if got != test.want || version != test.version {
				t.Errorf("versionToFollow() = %q, %q; want %q, %q", version, got, test.version, test.want)
			}
		})
	}
}
