package indexers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/integration/harness"
)

// danglingReferences has the dangling references according to a subscription.
type danglingReferences struct {
	mu   sync.Mutex
	set  map[string]bool
	last string // event
}

// hear applies an event. A started reference dangles until its stop event.
func (s *danglingReferences) hear(e references.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := e.Reference.Name + " " + e.Reference.To.Name
	if e.Type == references.Started {
		s.set[name] = true
	} else {
		delete(s.set, name)
	}
	s.last = strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Reason))
}

// now returns the dangling references and the last event.
func (s *danglingReferences) now() (dangling []string, last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.set {
		dangling = append(dangling, name)
	}
	slices.Sort(dangling)
	return dangling, s.last
}

func widgetWithReferences(group, namespace, issuer string,
	owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	u := object(group, "Widget", namespace, "x", m{"color": "red"})
	if issuer != "" {
		u.Object["spec"].(m)["issuer"] = issuer
	}
	var list []metav1.OwnerReference
	for _, o := range owners {
		list = append(list, metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(),
			Name: o.GetName(), UID: o.GetUID()})
	}
	u.SetOwnerReferences(list)
	return u
}

// TestReferences changes the objects at both ends of references, the target type, and owners that are created
// again with the same name. The graph, queries and a subscription must agree.
func TestReferences(t *testing.T) {
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Widget"), harness.NewCRD(group, "Issuer"))
	namespace := harness.Namespace(t)
	s := newFixture(t)
	b := s.bindConfig(parseConfig(t, `  - name: widgets
    match: {group: `+group+`, kind: Widget}
    references: [{name: issuer, to: {group: `+group+`, kind: Issuer, name: .spec.issuer}}]
  - name: issuers
    match: {group: `+group+`, kind: Issuer}
`))
	graph, err := b.References()
	if err != nil {
		t.Fatal(err)
	}
	heard := &danglingReferences{set: map[string]bool{}}
	subscription, err := graph.Subscribe(heard.hear)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(subscription.Stop)
	issuers := s.admin.Resource(schema.GroupVersionResource{Group: group, Version: "v1",
		Resource: "issuers"}).Namespace(namespace)
	// dangle waits until exactly these references of the widget dangle and this is the last event.
	dangle := func(last string, want ...string) {
		t.Helper()
		harness.Eventually(t, func(context.Context) error {
			if got, event := heard.now(); !slices.Equal(got, want) || event != last {
				return fmt.Errorf("told that %v dangle, at last %s; want %v, %s", got, event, want, last)
			}
			return nil
		})
		for query, dangles := range map[string]bool{
			"dangling()": len(want) > 0, "dangling(issuer)": slices.Contains(want,
				"issuer ca"), "dangling(owners)": slices.Contains(want, "owners root"),
		} {
			if dangles {
				s.awaitQuery(b, "widgets", query, namespace+"/x")
			} else {
				s.awaitQuery(b, "widgets", query)
			}
		}
		if all := graph.Dangling(); len(all) != len(want) {
			t.Errorf("%v dangle", all)
		}
	}

	harness.Apply(t, widgetWithReferences(group, namespace, "ca"))
	dangle("Started", "issuer ca")
	harness.Apply(t, object(group, "Issuer", namespace, "ca", m{}))
	dangle("Stopped TargetFound")
	s.awaitQuery(b, "widgets", "refersTo(Issuer."+group+", "+namespace+"/ca)", namespace+"/x")
	s.awaitQuery(b, "issuers", "referredBy(Widget."+group+", "+namespace+"/x)", namespace+"/ca")
	deleteAndWait(s, issuers, "ca")
	dangle("Started", "issuer ca")
	harness.Apply(t, widgetWithReferences(group, namespace, ""))
	dangle("Stopped ReferenceGone")

	// An owner reference has a UID: a new object with the same name is not the owner.
	harness.Apply(t, object(group, "Issuer", namespace, "root", m{}))
	root, err := issuers.Get(s.ctx, "root", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Apply(t, widgetWithReferences(group, namespace, "ca", root))
	dangle("Started", "issuer ca")
	deleteAndWait(s, issuers, "root")
	dangle("Started", "issuer ca", "owners root")
	harness.Apply(t, object(group, "Issuer", namespace, "root", m{}),
		object(group, "Issuer", namespace, "ca", m{}))
	dangle("Stopped TargetFound", "owners root")
	if again, err := issuers.Get(s.ctx, "root", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	} else {
		harness.Apply(t, widgetWithReferences(group, namespace, "ca", again))
	}
	harness.Eventually(t, func(context.Context) error {
		if got, _ := heard.now(); len(got) > 0 {
			return fmt.Errorf("told that %v dangle", got)
		}
		return nil
	})

	// While the type is missing, the state is unknown. When it is installed again without objects, both
	// dangle.
	definitions := s.admin.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	deleteAndWait(s, definitions, "issuers."+group)
	dangle("Stopped TargetUnknown")
	widget := references.Object{Group: group, Kind: "Widget", Namespace: namespace, Name: "x"}
	for _, r := range graph.From(widget) {
		if r.State != references.Unknown {
			t.Errorf("%s is %s without its type", r, r.State)
		}
	}
	harness.InstallCRDs(t, harness.NewCRD(group, "Issuer"))
	dangle("Started", "issuer ca", "owners root")
}

// deleteAndWait deletes an object and waits for the deletion.
func deleteAndWait(s *fixture, resource dynamic.ResourceInterface, name string) {
	s.Helper()
	if err := resource.Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	harness.Eventually(s, func(ctx context.Context) error {
		_, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("%s is still there", name)
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
