package references_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers/references"
)

func waitForSync(graph *references.Graph) {
	if err := graph.WaitForSync(context.Background()); err != nil {
		panic(err)
	}
}

func add(t testing.TB, graph *references.Graph, m references.InformerSource) (*handlerCaller, func()) {
	t.Helper()
	f := newHandlerCaller()
	close(f.synced)
	m.Informer = f
	membership, err := graph.Add(m)
	if err != nil {
		t.Fatal(err)
	}
	waitForSync(graph)
	<-membership.Synced()
	return f, membership.Stop
}

func inNamespaces(namespaces ...string) func(string) bool {
	return func(namespace string) bool { return slices.Contains(namespaces, namespace) }
}

func texts(all []references.Reference) []string {
	out := []string{}
	for _, r := range all {
		out = append(out, r.String())
	}
	return out
}

// TestOwnersAreOfOneUID verifies that an owner reference is to one UID: another object of its name, or of its
// kind in another group, is not the owner.
func TestOwnersAreOfOneUID(t *testing.T) {
	graph := references.New()
	defer graph.Close()
	secret, _ := add(t, graph, references.InformerSource{Type: secrets})
	issuer, _ := add(t, graph, references.InformerSource{Type: issuers})
	other, _ := add(t, graph, references.InformerSource{Type: references.Type{Group: "example.com",
		Resource: "issuers", Kind: "Issuer", Namespaced: true}})
	secret.handler.OnAdd(withOwner(object(secrets, "a", "s", "u-s", nil), issuers, "ca", "u-1"), false)
	other.handler.OnAdd(object(issuers, "a", "ca", "u-1", nil), false)
	want := []string{"Secret a/s owners → Issuer.cert-manager.io a/ca (dangling)"}
	if diff := cmp.Diff(want, texts(graph.Dangling())); diff != "" {
		t.Errorf("no owner (-want +got):\n%s", diff)
	}
	issuer.handler.OnAdd(object(issuers, "a", "ca", "u-2", nil), false)
	if diff := cmp.Diff(want, texts(graph.Dangling())); diff != "" {
		t.Errorf("another UID (-want +got):\n%s", diff)
	}
	// an owner reference with a stale UID dangles, so the current object of that name is not the owner
	ca := references.Object{Group: "cert-manager.io", Kind: "Issuer", Namespace: "a", Name: "ca"}
	view := graph.ForType(secrets)
	if to, from := graph.To(ca), view.KeysReferringTo(ca, ""); len(to) > 0 || len(from) > 0 {
		t.Errorf("another UID: the references to %v are %v, from %v", ca, to, from)
	}
	if others := graph.ToOtherUIDs(ca); len(others) != 1 || view.CountRecreated(ca, "") != 1 {
		t.Errorf("another UID: the references that are left out are %v", others)
	}
	if to := graph.ForType(issuers).KeysReferredBy(references.Object{Kind: "Secret", Namespace: "a", Name: "s"},
		""); len(to) > 0 {
		t.Errorf("another UID: the owners are %v", to)
	}
	issuer.handler.OnUpdate(nil, object(issuers, "a", "ca", "u-1", nil))
	if got := texts(graph.Dangling()); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	if got := graph.To(ca); len(got) != 1 || got[0].State != references.Resolved {
		t.Errorf("got %v", got)
	}
	if ca.UID = "u-2"; len(graph.To(ca)) > 0 {
		t.Error("another object has its references")
	}
	if ca.Group = "example.com"; len(graph.To(ca)) > 0 {
		t.Error("another group has its references")
	}
}

// TestReferenceWithoutNamespace verifies that a reference without namespace to a namespaced type can be to
// any namespace: it does not dangle and is counted as unchecked. It is evaluated again if the type becomes
// cluster-scoped.
func TestReferenceWithoutNamespace(t *testing.T) {
	graph := references.New()
	defer graph.Close()
	nodes, _ := add(t, graph, references.InformerSource{Type: references.Type{Group: "example.com", Resource: "roots",
		Kind: "Root"}, References: parseReferences(t)})
	root := object(clusterIssuers, "", "r", "u",
		m{"secretName": "s", "issuerRef": m{"name": "ca", "kind": "ClusterIssuer"}})
	nodes.handler.OnAdd(root, false)
	secret, _ := add(t, graph, references.InformerSource{Type: secrets})
	add(t, graph, references.InformerSource{Type: clusterIssuers})
	secret.handler.OnAdd(object(secrets, "a", "s", "u-s", nil), false)
	want := []string{"Root.example.com r issuer → ClusterIssuer.cert-manager.io ca (dangling)"}
	if diff := cmp.Diff(want, texts(graph.Dangling())); diff != "" {
		t.Errorf("dangling (-want +got):\n%s", diff)
	}
	want = []string{
		"Root.example.com r issuer → ClusterIssuer.cert-manager.io ca (dangling)",
		"Root.example.com r secret → Secret s (unknown)",
	}
	if diff := cmp.Diff(want, texts(graph.From(references.Object{Group: "example.com", Kind: "Root",
		Name: "r"}))); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	unchecked := graph.ForType(references.Type{Group: "example.com", Kind: "Root"}).Unchecked("secret")
	if len(unchecked) != 1 || unchecked[0].
		String() != "1 reference to Secret is not checked: they name no namespace" {
		t.Errorf("unchecked: %v", unchecked)
	}
	nodes.handler.OnDelete(root)
	if unchecked := graph.Unchecked(); len(unchecked) != 0 {
		t.Errorf("unchecked references of a deleted object: %v", unchecked)
	}
}

// TestUnknownIsNotDangling verifies that an object that is not known to be missing does not dangle.
func TestUnknownIsNotDangling(t *testing.T) {
	spec := m{"issuerRef": m{"name": "ca"}}
	for _, test := range []struct {
		reason string
		target *references.InformerSource // nil: no source has the type
		state  references.State
	}{
		{"no source has the type", nil, references.Unknown},
		{"all are followed", &references.InformerSource{Type: issuers}, references.Dangling},
		{"its namespace is followed", &references.InformerSource{Type: issuers, Namespaces: inNamespaces("a")},
			references.Dangling},
		{"other namespaces are followed", &references.InformerSource{Type: issuers, Namespaces: inNamespaces("b", "c")},
			references.Unknown},
		{"some are selected", &references.InformerSource{Type: issuers, HasSelector: true}, references.Unknown},
	} {
		graph := references.New()
		certs, _ := add(t, graph, references.InformerSource{Type: certificates,
			References: parseReferences(t)})
		certs.handler.OnAdd(object(certificates, "a", "c", "u", spec), false)
		if test.target != nil {
			_, stop := add(t, graph, *test.target)
			defer stop()
		}
		all := graph.From(references.Object{Group: "cert-manager.io", Resource: "certificates",
			Namespace: "a", Name: "c"})
		if len(all) != 1 || all[0].State != test.state ||
			(len(graph.Dangling()) == 1) != (test.state == references.Dangling) {
			t.Errorf("%s: %v", test.reason, all)
		}
		graph.Close()
	}
}

// TestSubscription verifies that events have the reason why a reference stopped dangling, and replacing a
// source causes no events.
func TestSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		graph := references.New()
		defer graph.Close()
		certs, _ := add(t, graph, references.InformerSource{Type: certificates,
			References: parseReferences(t)})
		issuer, stop := add(t, graph, references.InformerSource{Type: issuers})
		cert := object(certificates, "a", "c", "u", m{"issuerRef": m{"name": "ca"}})
		certs.handler.OnAdd(cert, false)
		var got []string
		s, err := graph.Subscribe(func(e references.Event) {
			got = append(got, fmt.Sprint(e.Type, e.Reason, e.Initial, " ", e.Reference.To.Name))
		})
		if err != nil {
			t.Fatal(err)
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			got = nil
		}
		expect("Startedtrue ca")
		issuer.handler.OnAdd(object(issuers, "a", "ca", "u-1", nil), false)
		expect("StoppedTargetFoundfalse ca")
		_, stopOther := add(t, graph, references.InformerSource{Type: issuers}) // has no object ca yet
		stop()
		expect("Startedfalse ca")
		certs.handler.OnUpdate(cert, object(certificates, "a", "c", "u", m{"issuerRef": m{"name": "other"}}))
		expect("Startedfalse other", "StoppedReferenceGonefalse ca")
		stopOther()
		expect("StoppedTargetUnknownfalse other")
		_, stop = add(t, graph, references.InformerSource{Type: issuers})
		expect("Startedfalse other")
		s.Stop()
		s.Stop()
		stop()
		expect()
	})
}

// TestUnknownTypes verifies that UnknownTypes are the target types without sources.
func TestUnknownTypes(t *testing.T) {
	graph := references.New()
	defer graph.Close()
	certs, _ := add(t, graph, references.InformerSource{Type: certificates, References: parseReferences(t)})
	certs.handler.OnAdd(withOwner(object(certificates, "a", "c", "u",
		m{"issuerRef": m{"name": "ca"}, "secretName": "s"}), certificates, "c", "u"), false)
	want := []references.Type{{Resource: "secrets"}, {Group: "cert-manager.io", Kind: "Issuer"}}
	if diff := cmp.Diff(want, graph.UnknownTypes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, stop := add(t, graph, references.InformerSource{Type: issuers})
	stop()
	if diff := cmp.Diff(want[:1], graph.UnknownTypes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if names := graph.ForType(certificates).Names(); !slices.Equal(names, []string{"issuer", "owners",
		"secret"}) || !slices.Equal(names, references.NewTypeGraph(parseReferences(t)).Names()) {
		t.Errorf("got %v", names)
	}
}

// TestReferencesWithSlashes verifies that a name with a slash resolves to no object: "a/s" is the key of
// object s in another namespace.
func TestReferencesWithSlashes(t *testing.T) {
	graph := references.New()
	defer graph.Close()
	from, _ := add(t, graph, references.InformerSource{Type: clusterIssuers, References: parseReferences(t)})
	from.handler.OnAdd(object(clusterIssuers, "", "ci", "u", m{"secretName": "a/s"}), false)
	at := references.Object{Group: clusterIssuers.Group, Kind: clusterIssuers.Kind, Name: "ci"}
	if got := graph.ForType(secrets).KeysReferredBy(at, ""); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestGraphErrors(t *testing.T) {
	graph := references.New()
	for _, m := range []references.InformerSource{{Informer: newHandlerCaller()}, {Type: issuers},
		{Type: references.Type{Resource: "issuers"}, Informer: newHandlerCaller()}, {Type: issuers,
			Informer: &handlerCaller{failsToAdd: true}}} {
		if _, err := graph.Add(m); err == nil {
			t.Errorf("%+v has a source", m)
		}
	}
	if s := graph.Stats(); s != (references.Stats{}) {
		t.Errorf("got %+v", s)
	}
	if _, err := graph.Add(references.InformerSource{Type: issuers,
		Informer: newHandlerCaller()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if err := graph.WaitForSync(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	waiting := make(chan error)
	go func() { waiting <- graph.WaitForSync(t.Context()) }() // ends with Close
	graph.Close()
	graph.Close()
	if err := <-waiting; !errors.Is(err, references.ErrClosed) && err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := graph.Add(references.InformerSource{Type: issuers,
		Informer: newHandlerCaller()}); !errors.Is(err,
		references.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := graph.Subscribe(func(references.Event) {}); !errors.Is(err, references.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkDangling returns ten dangling references among few and many.
func BenchmarkDangling(b *testing.B) {
	for _, objects := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			graph := references.New()
			defer graph.Close()
			certs, _ := add(b, graph, references.InformerSource{Type: certificates,
				References: parseReferences(b)})
			issuer, _ := add(b, graph, references.InformerSource{Type: issuers})
			issuer.handler.OnAdd(object(issuers, "a", "ca", "u", nil), true)
			for i := range objects {
				name := "ca"
				if i < 10 {
					name = "none"
				}
				certs.handler.OnAdd(object(certificates, "a", fmt.Sprint("c", i), "u",
					m{"issuerRef": m{"name": name}}), true)
			}
			for b.Loop() {
				if all := graph.Dangling(); len(all) != 10 {
					b.Fatal(len(all))
				}
			}
		})
	}
}
