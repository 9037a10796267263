package references_test

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
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// waitForSync panics if the graph does not sync.
func waitForSync(graph *references.Graph) {
	if err := graph.WaitForSync(context.Background()); err != nil {
		panic(err)
	}
}

// addSource adds a synced source to a graph. It returns the source's handler and the function that removes
// it.
func addSource(t testing.TB, graph *references.Graph, m references.InformerSource) (*handlerCaller, func()) {
	t.Helper()
	f := newHandlerCaller()
	close(f.synced)
	m.Informer = f
	registration, err := graph.Add(m)
	if err != nil {
		t.Fatal(err)
	}
	waitForSync(graph)
	<-registration.Synced()
	return f, registration.Stop
}

func inNamespaces(namespaces ...string) func(string) bool {
	return func(namespace string) bool { return slices.Contains(namespaces, namespace) }
}

func formatReferences(refs []references.Reference) []string {
	out := []string{}
	for _, r := range refs {
		out = append(out, r.String())
	}
	return out
}

// TestOwnersAreOfOneUID verifies that an owner reference resolves only to the object with its UID. An object
// with the same name and another UID, or in another group, is not the owner.
func TestOwnersAreOfOneUID(t *testing.T) {
	graph := references.New()
	defer graph.Close()
	secret, _ := addSource(t, graph, references.InformerSource{Type: secrets})
	issuer, _ := addSource(t, graph, references.InformerSource{Type: issuers})
	other, _ := addSource(t, graph, references.InformerSource{Type: references.Type{Group: "example.com",
		Resource: "issuers", Kind: "Issuer", Namespaced: true}})
	secret.handler.OnAdd(withOwner(newObject(secrets, "a", "s", "u-s", nil), issuers, "ca", "u-1"), false)
	other.handler.OnAdd(newObject(issuers, "a", "ca", "u-1", nil), false)
	want := []string{"Secret a/s owners → Issuer.cert-manager.io a/ca (dangling)"}
	if diff := cmp.Diff(want, formatReferences(graph.Dangling())); diff != "" {
		t.Errorf("Dangling without the owner (-want +got):\n%s", diff)
	}
	issuer.handler.OnAdd(newObject(issuers, "a", "ca", "u-2", nil), false)
	if diff := cmp.Diff(want, formatReferences(graph.Dangling())); diff != "" {
		t.Errorf("Dangling with an owner of another UID (-want +got):\n%s", diff)
	}
	// an owner reference with a stale UID dangles, so the current object of that name is not the owner
	ca := references.Object{Group: "cert-manager.io", Kind: "Issuer", Namespace: "a", Name: "ca"}
	view := graph.ForType(secrets)
	if to, from := graph.To(ca), view.KeysReferringTo(ca, ""); len(to) > 0 || len(from) > 0 {
		t.Errorf("another UID: To(%v) = %v, KeysReferringTo = %v; want none", ca, to, from)
	}
	if others := graph.ToOtherUIDs(ca); len(others) != 1 || view.CountRecreated(ca, "") != 1 {
		t.Errorf("another UID: ToOtherUIDs = %v, CountRecreated = %d; want one reference", others,
			view.CountRecreated(ca, ""))
	}
	if to := graph.ForType(issuers).KeysReferredBy(references.Object{Kind: "Secret", Namespace: "a", Name: "s"},
		""); len(to) > 0 {
		t.Errorf("another UID: KeysReferredBy = %v, want none", to)
	}
	issuer.handler.OnUpdate(nil, newObject(issuers, "a", "ca", "u-1", nil))
	if got := formatReferences(graph.Dangling()); len(got) > 0 {
		t.Errorf("Dangling once the owner has the UID = %v, want none", got)
	}
	if got := graph.To(ca); len(got) != 1 || got[0].State != references.Resolved {
		t.Errorf("To(%v) once the owner has the UID = %v, want one resolved reference", ca, got)
	}
	if ca.UID = "u-2"; len(graph.To(ca)) > 0 {
		t.Errorf("To(%v) of another UID found references, want none", ca)
	}
	if ca.Group = "example.com"; len(graph.To(ca)) > 0 {
		t.Errorf("To(%v) of another group found references, want none", ca)
	}
}

// TestReferenceWithoutNamespace verifies that a reference without a namespace to a namespaced type does not
// dangle, because the graph cannot know which namespace it means. It is unchecked instead.
func TestReferenceWithoutNamespace(t *testing.T) {
	graph := references.New()
	defer graph.Close()
	roots, _ := addSource(t, graph, references.InformerSource{Type: references.Type{Group: "example.com",
		Resource: "roots",
		Kind:     "Root"}, References: parseReferences(t)})
	root := newObject(clusterIssuers, "", "r", "u",
		m{"secretName": "s", "issuerRef": m{"name": "ca", "kind": "ClusterIssuer"}})
	roots.handler.OnAdd(root, false)
	secret, _ := addSource(t, graph, references.InformerSource{Type: secrets})
	addSource(t, graph, references.InformerSource{Type: clusterIssuers})
	secret.handler.OnAdd(newObject(secrets, "a", "s", "u-s", nil), false)
	want := []string{"Root.example.com r issuer → ClusterIssuer.cert-manager.io ca (dangling)"}
	if diff := cmp.Diff(want, formatReferences(graph.Dangling())); diff != "" {
		t.Errorf("Dangling (-want +got):\n%s", diff)
	}
	want = []string{
		"Root.example.com r issuer → ClusterIssuer.cert-manager.io ca (dangling)",
		"Root.example.com r secret → Secret s (unknown)",
	}
	if diff := cmp.Diff(want, formatReferences(graph.From(references.Object{Group: "example.com", Kind: "Root",
		Name: "r"}))); diff != "" {
		t.Errorf("From (-want +got):\n%s", diff)
	}
	unchecked := graph.ForType(references.Type{Group: "example.com", Kind: "Root"}).Unchecked("secret")
	if len(unchecked) != 1 || unchecked[0].
		String() != "1 reference to Secret is not checked: they name no namespace" {
		t.Errorf("Unchecked = %v, want the reference secret without a namespace", unchecked)
	}
	roots.handler.OnDelete(root)
	if unchecked := graph.Unchecked(); len(unchecked) != 0 {
		t.Errorf("Unchecked after the object is deleted = %v, want none", unchecked)
	}
}

// TestUnknownIsNotDangling verifies that a reference dangles only if the graph knows that its target does not
// exist.
func TestUnknownIsNotDangling(t *testing.T) {
	spec := m{"issuerRef": m{"name": "ca"}}
	for _, test := range []struct {
		reason string
		target *references.InformerSource // nil if no source has the type
		state  references.State
	}{
		{"no source has the type", nil, references.Unknown},
		{"a source has all objects", &references.InformerSource{Type: issuers}, references.Dangling},
		{"a source has the namespace", &references.InformerSource{Type: issuers, Namespaces: inNamespaces("a")},
			references.Dangling},
		{"a source has other namespaces", &references.InformerSource{Type: issuers, Namespaces: inNamespaces("b", "c")},
			references.Unknown},
		{"a source has a selector", &references.InformerSource{Type: issuers, HasSelector: true}, references.Unknown},
	} {
		graph := references.New()
		certs, _ := addSource(t, graph, references.InformerSource{Type: certificates,
			References: parseReferences(t)})
		certs.handler.OnAdd(newObject(certificates, "a", "c", "u", spec), false)
		if test.target != nil {
			_, stop := addSource(t, graph, *test.target)
			defer stop()
		}
		all := graph.From(references.Object{Group: "cert-manager.io", Resource: "certificates",
			Namespace: "a", Name: "c"})
		if len(all) != 1 || all[0].State != test.state ||
			(len(graph.Dangling()) == 1) != (test.state == references.Dangling) {
			t.Errorf("%s: From = %v, want one reference with the state %v", test.reason, all, test.state)
		}
		graph.Close()
	}
}

// TestSubscription verifies that a subscription receives an event when a reference starts or stops dangling,
// with the reason.
func TestSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		graph := references.New()
		defer graph.Close()
		certs, _ := addSource(t, graph, references.InformerSource{Type: certificates,
			References: parseReferences(t)})
		issuer, stop := addSource(t, graph, references.InformerSource{Type: issuers})
		cert := newObject(certificates, "a", "c", "u", m{"issuerRef": m{"name": "ca"}})
		certs.handler.OnAdd(cert, false)
		var got []string
		s, err := graph.Subscribe(func(e references.Event) {
			got = append(got, fmt.Sprint(e.Type, e.Reason, e.Initial, " ", e.Reference.To.Name))
		})
		if err != nil {
			t.Fatal(err)
		}
		expectEvents := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			got = nil
		}
		expectEvents("Startedtrue ca")
		issuer.handler.OnAdd(newObject(issuers, "a", "ca", "u-1", nil), false)
		expectEvents("StoppedTargetFoundfalse ca")
		_, stopOther := addSource(t, graph, references.InformerSource{Type: issuers}) // has no object ca yet
		stop()
		expectEvents("Startedfalse ca")
		certs.handler.OnUpdate(cert, newObject(certificates, "a", "c", "u", m{"issuerRef": m{"name": "other"}}))
		expectEvents("Startedfalse other", "StoppedReferenceGonefalse ca")
		stopOther()
		expectEvents("StoppedTargetUnknownfalse other")
		_, stop = addSource(t, graph, references.InformerSource{Type: issuers})
		expectEvents("Startedfalse other")
		s.Stop()
		s.Stop()
		stop()
		expectEvents()
	})
}

func TestGraphErrors(t *testing.T) {
	graph := references.New()
	for _, m := range []references.InformerSource{{Informer: newHandlerCaller()}, {Type: issuers},
		{Type: references.Type{Resource: "issuers"}, Informer: newHandlerCaller()}, {Type: issuers,
			Informer: &handlerCaller{failsToAdd: true}}} {
		if _, err := graph.Add(m); err == nil {
			t.Errorf("Add(%+v) returned no error", m)
		}
	}
	if s := graph.Stats(); s != (references.Stats{}) {
		t.Errorf("Stats after failed calls of Add = %+v, want zero", s)
	}
	if _, err := graph.Add(references.InformerSource{Type: issuers,
		Informer: newHandlerCaller()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	errStopped := errors.New("stopped")
	cancel(errStopped)
	if err := graph.WaitForSync(ctx); !errors.Is(err, errStopped) {
		t.Errorf("WaitForSync with a canceled context: got the error %v, want the cause", err)
	}
	waiting := make(chan error)
	go func() { waiting <- graph.WaitForSync(t.Context()) }() // ends with Close
	graph.Close()
	graph.Close()
	if err := <-waiting; !errors.Is(err, references.ErrClosed) && err != nil {
		t.Errorf("WaitForSync during Close: got the error %v, want ErrClosed or none", err)
	}
	if _, err := graph.Add(references.InformerSource{Type: issuers,
		Informer: newHandlerCaller()}); !errors.Is(err,
		references.ErrClosed) {
		t.Errorf("Add after Close: got the error %v, want ErrClosed", err)
	}
	if _, err := graph.Subscribe(func(references.Event) {}); !errors.Is(err, references.ErrClosed) {
		t.Errorf("Subscribe after Close: got the error %v, want ErrClosed", err)
	}
}

// TestReferencesWithSlashes verifies that a name with a slash does not resolve to an object. "a/s" would be
// the key of the object s in the namespace a.
func TestReferencesWithSlashes(t *testing.T) {
	graph := references.New()
	defer graph.Close()
	issuer, _ := addSource(t, graph, references.InformerSource{Type: clusterIssuers,
		References: parseReferences(t)})
	issuer.handler.OnAdd(newObject(clusterIssuers, "", "ci", "u", m{"secretName": "a/s"}), false)
	from := references.Object{Group: clusterIssuers.Group, Kind: clusterIssuers.Kind, Name: "ci"}
	if got := graph.ForType(secrets).KeysReferredBy(from, ""); len(got) != 0 {
		t.Errorf("KeysReferredBy(%v) = %v, want none", from, got)
	}
}

// TestDroppedFields verifies that a source is refused if its informer drops a field that a reference reads.
func TestDroppedFields(t *testing.T) {
	certs := schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	kept := []string{".spec.issuerRef.group", ".spec.issuerRef.kind", ".spec.issuerRef.name"}
	for want, o := range map[string]dynamicinformer.ResourceOptions{
		`"secret" reads .spec.secretName`: {Keep: dynamicinformer.Keep{Paths: kept}},
		`"issuer" reads .spec.issuerRef.`: {Prune: dynamicinformer.Prune{Paths: []string{".spec.issuerRef"}}},
		"":                                {Keep: dynamicinformer.Keep{Paths: append(kept, ".spec.secretName")}},
	} {
		f, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: "none"}, Defaults: o})
		if err != nil {
			t.Fatal(err)
		}
		informer, err := f.ForResource(certs)
		if err != nil {
			t.Fatal(err)
		}
		g := references.New()
		_, err = g.Add(references.InformerSource{Type: certificates, References: parseReferences(t),
			Informer: informer})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Add of an informer with %+v: got the error %v, want %q", o, err, want)
		}
		g.Close()
	}
}

// TestShard verifies that a reference to an object outside the shard does not dangle, and that an object that
// left the shard has no references.
func TestShard(t *testing.T) {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	server := apitest.New(t, apitest.Type{GVR: gvr, Kind: "Secret", Namespaced: true})
	halves := sharding.Split(2)
	in := newObject(secrets, "a", "in", "", nil)
	for n := 0; !halves[0].Contains(sharding.Hash(string(in.GetUID()))); n++ {
		in.SetUID(types.UID(fmt.Sprintf("%d-u-in", n)))
	}
	server.Create(t, gvr, withOwner(in, secrets, "out", "u-out"))
	shard := dynamicinformer.NewShard(sharding.ByUID, halves[0])
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(),
		Defaults: dynamicinformer.ResourceOptions{Shard: shard}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := factory.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	informer, err := factory.ForResource(gvr)
	if err != nil {
		t.Fatal(err)
	}
	graph := references.New()
	defer graph.Close()
	registration, err := graph.Add(references.InformerSource{Type: secrets, Informer: informer})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-registration.Synced()
	waitForSync(graph)
	if got := formatReferences(graph.Dangling()); len(got) > 0 {
		t.Errorf("Dangling with a target outside of the shard = %q, want none", got)
	}
	var unchecked []string
	for _, u := range graph.Unchecked() {
		unchecked = append(unchecked, u.String())
	}
	if diff := cmp.Diff([]string{"1 reference to Secret is not checked: only a shard of them is followed"},
		unchecked); diff != "" {
		t.Errorf("Unchecked (-want +got):\n%s", diff)
	}
	shard.SetRanges(halves[1])
	if err := informer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := graph.Stats(); s.References != 0 {
		t.Errorf("Stats after the object left the shard = %+v, want no references", s)
	}
}
