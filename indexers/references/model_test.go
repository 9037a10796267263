package references_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// model computes the expected state of a graph by scanning all objects.
type model struct {
	sources []*testSource
}

// testSource is a source of the graph, with the objects for which the test has called its handler.
type testSource struct {
	references.InformerSource
	handlers *handlerCaller
	stop     func()
	synced   bool
	objects  map[string]*unstructured.Unstructured // by namespace/name
}

type target struct {
	name string
	to   references.Object
}

// targets returns the references of an object, read without an index.
func (t *testSource) targets(u *unstructured.Unstructured) (targets []target) {
	for _, owner := range u.GetOwnerReferences() {
		group := ""
		if owner.APIVersion != "v1" {
			group = "cert-manager.io"
		}
		targets = append(targets, target{references.Owners, references.Object{Group: group, Kind: owner.Kind,
			Namespace: u.GetNamespace(), Name: owner.Name, UID: string(owner.UID)}})
	}
	if len(t.References) == 0 {
		return targets
	}
	if name, ok, _ := unstructured.NestedString(u.Object, "spec", "issuerRef", "name"); ok {
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "issuerRef", "kind")
		targets = append(targets, target{"issuer", references.Object{Group: "cert-manager.io",
			Kind: cmp.Or(kind, "Issuer"), Namespace: u.GetNamespace(), Name: name}})
	}
	if name, ok, _ := unstructured.NestedString(u.Object, "spec", "secretName"); ok {
		targets = append(targets, target{"secret", references.Object{Resource: "secrets",
			Namespace: u.GetNamespace(), Name: name}})
	}
	return targets
}

// resolve returns a target with the resource, kind and scope of its type, and the state of a reference to it.
func (m *model) resolve(to references.Object) (references.Object, references.State) {
	state := references.Unknown
	isTypeKnown := false
	for _, typ := range []references.Type{certificates, issuers, clusterIssuers, secrets} {
		if typ.Group != to.Group || typ.Kind != to.Kind && typ.Resource != to.Resource {
			continue
		}
		for _, v := range m.sources {
			if v.Type != typ {
				continue
			}
			isTypeKnown = true
			key := references.Object{Namespace: to.Namespace, Name: to.Name}
			if !typ.Namespaced {
				key.Namespace = ""
			}
			u := v.objects[key.Key()]
			switch {
			case u != nil && (to.UID == "" || to.UID == string(u.GetUID())):
				state = references.Resolved
			case typ.Namespaced && key.Namespace == "": // the namespace is unknown
			case state == references.Unknown && v.synced && !v.HasSelector &&
				(v.Namespaces == nil || v.Namespaces(key.Namespace)):
				state = references.Dangling
			}
		}
		if isTypeKnown || m.hadSource(typ) {
			to.Resource, to.Kind = typ.Resource, typ.Kind
			if !typ.Namespaced {
				to.Namespace = ""
			}
		}
	}
	return to, state
}

// hasOtherUID reports whether objects with the target's name exist, but none with its UID.
func (m *model) hasOtherUID(to references.Object) bool {
	if to.UID == "" {
		return false
	}
	found := false
	for _, v := range m.sources {
		if u := v.objects[to.Key()]; u != nil && v.Type.Group == to.Group &&
			(v.Type.Kind == to.Kind || v.Type.Resource == to.Resource) {
			if found = true; string(u.GetUID()) == to.UID {
				return false
			}
		}
	}
	return found
}

// knownTypes has the types that have or had a source.
var knownTypes map[references.Type]bool

func (m *model) hadSource(typ references.Type) bool { return knownTypes[typ] }

// matching returns the sorted texts of the selected references, without duplicates.
func (m *model) matching(selects func(references.Reference) bool) []string {
	matching := map[string]bool{}
	for _, v := range m.sources {
		for _, u := range v.objects {
			from := references.Object{Group: v.Type.Group, Resource: v.Type.Resource, Kind: v.Type.Kind,
				Namespace: u.GetNamespace(), Name: u.GetName()}
			for _, t := range v.targets(u) {
				to, state := m.resolve(t.to)
				if r := (references.Reference{From: from, Name: t.name, To: to, State: state}); selects(r) {
					matching[format(r)] = true
				}
			}
		}
	}
	all := []string{}
	for text := range matching {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// format returns a reference with the UID of its target and its state.
func format(r references.Reference) string {
	return fmt.Sprintf("%s %s → %s %s %s", r.From, r.Name, r.To, r.To.UID, r.State)
}

// formatAll returns the sorted texts of references.
func formatAll(refs []references.Reference) []string {
	out := []string{}
	for _, r := range refs {
		out = append(out, format(r))
	}
	slices.Sort(out)
	return out
}

// TestGraphMatchesModel compares a graph with a model after each step of random histories: objects and
// sources are created, changed, replaced and deleted.
func TestGraphMatchesModel(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) { runHistory(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// runHistory runs one random history. A subscription's events are compared with the model as well.
func runHistory(t *testing.T, random *rand.Rand) {
	knownTypes = map[references.Type]bool{}
	graph := references.New()
	defer graph.Close()
	dangling := map[string]bool{} // according to a subscription
	unexpected := []string{}
	subscription, err := graph.Subscribe(func(e references.Event) {
		id := fmt.Sprint(e.Reference.From, e.Reference.Name, e.Reference.To, e.Reference.To.UID)
		if dangling[id] == (e.Type == references.DanglingStarted) ||
			(e.Type == references.DanglingStarted) != (e.Reason == "") {
			unexpected = append(unexpected, fmt.Sprintf("%+v", e))
		}
		dangling[id] = e.Type == references.DanglingStarted
		if !dangling[id] {
			delete(dangling, id)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &historyGenerator{random: random, graph: graph, certificateReferences: parseReferences(t)}
	for step := range 250 {
		operation := h.step(t)
		synctest.Wait()
		everything := func(references.Reference) bool { return true }
		dangles := func(r references.Reference) bool { return r.State == references.Dangling }
		got := formatAll(graph.Dangling())
		if diff := gocmp.Diff(h.matching(dangles), got); diff != "" {
			t.Fatalf("step %d, %s: Dangling (-model +graph):\n%s", step, operation, diff)
		}
		if len(unexpected) > 0 || len(dangling) != len(got) || subscription.QueueLength() > 0 {
			t.Fatalf("step %d, %s: unexpected events %v; %d references dangle, %d according to the events",
				step,
				operation, unexpected, len(got), len(dangling))
		}
		if s := graph.Stats(); s.References < len(got) || s.References != len(h.matching(everything)) ||
			s.Dangling != len(got) || s.Informers != len(h.sources) {
			t.Fatalf("step %d, %s: Stats = %+v, want %d references, %d dangling, %d informers", step,
				operation, s,
				len(h.matching(everything)), len(got), len(h.sources))
		}
		o := h.randomObject()
		from := func(r references.Reference) bool {
			return r.From.Kind == o.Kind && r.From.Key() == o.Key()
		}
		if diff := gocmp.Diff(h.matching(from), formatAll(graph.From(o))); diff != "" {
			t.Fatalf("step %d, %s: From(%v) (-model +graph):\n%s", step, operation, o, diff)
		}
		to := func(r references.Reference) bool {
			return (r.To.Kind == o.Kind || r.To.Resource == o.Resource) && r.To.Group == o.Group &&
				r.To.Key() == o.Key() && !h.hasOtherUID(r.To)
		}
		if diff := gocmp.Diff(h.matching(to), formatAll(graph.To(o))); diff != "" {
			t.Fatalf("step %d, %s: To(%v) (-model +graph):\n%s", step, operation, o, diff)
		}
	}
}

type historyGenerator struct {
	model
	random                *rand.Rand
	graph                 *references.Graph
	certificateReferences []*indexers.Reference
}

func (h *historyGenerator) pick(list ...string) string { return list[h.random.IntN(len(list))] }

// randomObject returns the type, the namespace and the name of a random object, which may not exist.
func (h *historyGenerator) randomObject() references.Object {
	typ := []references.Type{certificates, issuers, clusterIssuers, secrets}[h.random.IntN(4)]
	o := references.Object{Group: typ.Group, Resource: typ.Resource, Kind: typ.Kind,
		Name: h.pick("x", "y", "z")}
	if typ.Namespaced {
		o.Namespace = h.pick("a", "b")
	}
	return o
}

// step does a random operation and returns its description.
func (h *historyGenerator) step(t *testing.T) string {
	switch n := h.random.IntN(20); {
	case n == 0 && len(h.sources) < 6, len(h.sources) == 0:
		return h.addSource(t)
	case n == 1:
		i := h.random.IntN(len(h.sources))
		v := h.sources[i]
		v.stop()
		v.stop()
		if v.handlers.removals != 1 {
			t.Errorf("two calls of Stop removed the handler %d times, want once", v.handlers.removals)
		}
		h.sources = slices.Delete(h.sources, i, i+1)
		return "stop " + v.Type.Resource
	case n < 5:
		v := h.sources[h.random.IntN(len(h.sources))]
		if !v.synced {
			v.synced = true
			close(v.handlers.synced)
		}
		return "sync " + v.Type.Resource
	default:
		return h.write(h.sources[h.random.IntN(len(h.sources))])
	}
}

// addSource adds a random source to the graph.
func (h *historyGenerator) addSource(t *testing.T) string {
	v := &testSource{handlers: newHandlerCaller(), objects: map[string]*unstructured.Unstructured{}}
	v.Type = []references.Type{certificates, certificates, issuers, clusterIssuers, secrets}[h.random.IntN(5)]
	v.Informer = v.handlers
	if v.Type == certificates {
		v.References = h.certificateReferences
	}
	v.HasSelector = h.random.IntN(5) == 0
	if h.random.IntN(4) == 0 && v.Type.Namespaced {
		v.Namespaces = inNamespaces("a")
	}
	registration, err := h.graph.Add(v.InformerSource)
	if err != nil {
		t.Fatal(err)
	}
	v.stop = registration.Stop
	knownTypes[v.Type] = true
	h.sources = append(h.sources, v)
	return "add " + v.Type.Resource
}

// write creates, changes or deletes an object of a source, calls the handler, and returns a description.
func (h *historyGenerator) write(v *testSource) string {
	namespace := ""
	if v.Type.Namespaced {
		namespace = h.pick("a", "b")
	}
	if v.Namespaces != nil {
		namespace = "a"
	}
	at := references.Object{Namespace: namespace, Name: h.pick("x", "y", "z")}
	old := v.objects[at.Key()]
	if old != nil && h.random.IntN(3) == 0 {
		delete(v.objects, at.Key())
		if h.random.IntN(3) == 0 {
			v.handlers.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: at.Key()})
		} else {
			v.handlers.handler.OnDelete(old)
		}
		return fmt.Sprintf("delete %s %s", v.Type.Resource, at.Key())
	}
	next := newObject(v.Type, namespace, at.Name, h.pick("u1", "u2"), m{})
	spec := next.Object["spec"].(m)
	if h.random.IntN(4) > 0 {
		ref := m{"name": h.pick("x", "y", "z")}
		if h.random.IntN(2) == 0 {
			ref["kind"] = h.pick("Issuer", "ClusterIssuer", "Other")
		}
		spec["issuerRef"] = ref
	}
	if h.random.IntN(2) == 0 {
		spec["secretName"] = h.pick("x", "y")
	}
	for range h.random.IntN(3) {
		withOwner(next, []references.Type{certificates, issuers, clusterIssuers, secrets}[h.random.IntN(4)],
			h.pick("x", "y"), h.pick("u1", "u2"))
	}
	v.objects[at.Key()] = next
	if old == nil || h.random.IntN(6) == 0 {
		v.handlers.handler.OnAdd(next, !v.synced)
	} else {
		v.handlers.handler.OnUpdate(old, next)
	}
	return fmt.Sprintf("write %s %s", v.Type.Resource, at.Key())
}
