package dynamicinformer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func newSelector(t *testing.T, label, field string) (s Selector) {
	t.Helper()
	var err error
	if s.Label, err = labels.Parse(label); err != nil {
		t.Fatal(err)
	}
	if s.Field, err = fields.ParseSelector(field); err != nil {
		t.Fatal(err)
	}
	return s
}

func labelledWidget(name string, pairs ...string) *unstructured.Unstructured {
	u := widget("ns", name)
	all := map[string]string{}
	for k := 0; k < len(pairs); k += 2 {
		all[pairs[k]] = pairs[k+1]
	}
	u.SetLabels(all)
	return u
}

// TestAnyOf verifies that an object that matches any alternative is cached once. Handlers receive its moves
// between alternatives as updates, and its last selected state when it matches none. It works with and
// without watch-lists, in each storage mode and with relists.
func TestAnyOf(t *testing.T) {
	for name, tt := range map[string]struct {
		options ResourceOptions
		lists   bool
	}{
		"packed": {}, "lists": {lists: true},
		"objects":    {options: ResourceOptions{Storage: Storage{Mode: StorageObject}}},
		"metadata":   {options: ResourceOptions{Storage: Storage{Mode: StorageMetadata}}},
		"namespaces": {options: ResourceOptions{Namespaces: InNamespaces("ns", "other")}},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				if tt.lists {
					server.AddFaults(fault(widgetsPath, "watch-list", http.StatusUnprocessableEntity))
				}
				server.Create(t, widgets, labelledWidget("x", "red", "1"), labelledWidget("y", "blue", "1"),
					labelledWidget("both", "red", "1", "blue", "1"), labelledWidget("none"), labelledWidget("named"))
				f := newFactory(t, server, Options{})
				must(t, f.Start(longContext(t)))
				tt.options.AnyOf = []Selector{newSelector(t, "red", ""), newSelector(t, "blue", ""),
					newSelector(t, "", "metadata.name=named")}
				i := acquireSynced(t, f, tt.options)[0]
				e, _ := recordAll(t, []*Informer{i})
				expectEvents(t, "start", e, "add ns/both", "add ns/named", "add ns/x", "add ns/y")
				var last map[string]string
				_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
					DeleteFunc: func(obj any) {
						if o, ok := obj.(*unstructured.Unstructured); ok {
							last = o.GetLabels()
						}
					}})
				must(t, err)
				server.Update(t, widgets, labelledWidget("x", "blue", "1"), labelledWidget("y", "red", "1"))
				expectEvents(t, "moved", e, "update ns/x", "update ns/y")
				server.Update(t, widgets, labelledWidget("both", "blue", "1"), labelledWidget("none", "green", "1"))
				expectEvents(t, "one of two", e, "update ns/both")
				server.Update(t, widgets, labelledWidget("x", "green", "1"), labelledWidget("none", "red", "1"))
				expectEvents(t, "left and entered", e, "add ns/none", "delete ns/x")
				if last["blue"] != "1" {
					t.Errorf("the handler received a deletion with the labels %v, want the last selected state", last)
				}
				server.Delete(t, widgets, "ns", "y")
				server.Create(t, widgets, labelledWidget("y", "blue", "1"))
				server.Delete(t, widgets, "ns", "both")
				server.Create(t, widgets, labelledWidget("both"))
				expectEvents(t, "recreated", e, "add ns/y", "delete ns/both", "delete ns/y")
				if err := i.WaitForVersion(t.Context(), versionOnServer(t, server, "both")); err != nil {
					t.Error(err)
				}
				server.AddFaults(fault(widgetsPath, "watch", http.StatusGone),
					fault(inNamespace("ns"), "watch", http.StatusGone))
				server.CloseClientConnections()
				time.Sleep(5 * time.Second)
				server.Update(t, widgets, labelledWidget("y", "red", "1"), labelledWidget("x", "blue", "1"), labelledWidget("none"))
				server.Repair()
				time.Sleep(time.Minute)
				expectEvents(t, "relisted", e, "add ns/x", "gone ns/none", "update ns/y")
				if relists := i.Stats().Events.Relists; relists == 0 {
					t.Error("the informer did not relist")
				}
			})
		})
	}
}

func versionOnServer(t *testing.T, server *apitest.Server, name string) string {
	t.Helper()
	o, err := server.Client(t).Resource(widgets).Namespace("ns").Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return o.GetResourceVersion()
}

// TestAnyOfRequests verifies that requests contain the parts of the selectors that all alternatives have in
// common.
func TestAnyOfRequests(t *testing.T) {
	nothing := Selector{Label: labels.Nothing()}
	for name, tt := range map[string]struct {
		options       ResourceOptions
		labels, field string
	}{
		"one": {ResourceOptions{AnyOf: []Selector{newSelector(t, "a=b,c!=d", "spec.x=y"), nothing}}, "a=b,c!=d", "spec.x=y"},
		"one label twice": {ResourceOptions{AnyOf: []Selector{newSelector(t, "a in (b,c),a in (c,d)", ""), nothing}},
			"a in (b,c),a in (c,d)", ""},
		"values": {ResourceOptions{AnyOf: []Selector{newSelector(t, "a=b", ""), newSelector(t, "a in (c,d)", "")}}, "a in (b,c,d)", ""},
		"common": {ResourceOptions{AnyOf: []Selector{newSelector(t, "a=b,c", "spec.x=y,metadata.name=n"),
			newSelector(t, "c,d", "spec.x=y")}}, "c", "spec.x=y"},
		"different":       {ResourceOptions{AnyOf: []Selector{newSelector(t, "a", ""), newSelector(t, "b", "")}}, "", ""},
		"with everything": {ResourceOptions{AnyOf: []Selector{newSelector(t, "a", ""), {}}}, "", ""},
		"with others": {ResourceOptions{LabelSelector: newSelector(t, "x=y", "").Label,
			FieldSelector: newSelector(t, "", "spec.a=b").Field,
			AnyOf:         []Selector{newSelector(t, "a=b", ""), newSelector(t, "a=c", "")}}, "a in (b,c),x=y", "spec.a=b"},
	} {
		if errs := tt.options.validate(); len(errs) > 0 {
			t.Errorf("%s: validate() = %v, want no errors", name, errs)
		}
		label, field, _ := tt.options.serverSelectors()
		if label.String() != tt.labels || field.String() != tt.field {
			t.Errorf("%s: requests %q and %q, want %q and %q", name, label, field, tt.labels, tt.field)
		}
	}
	if o := (ResourceOptions{AnyOf: []Selector{nothing}}); !o.matchesNothing() {
		t.Error("matchesNothing() = false for alternatives that match nothing")
	}
	a, b := newSelector(t, "a", ""), newSelector(t, "b", "metadata.name=x")
	one, other := ResourceOptions{AnyOf: []Selector{a, b}}, ResourceOptions{AnyOf: []Selector{b, a, a}}
	if one.key() != other.key() || one.key() == (ResourceOptions{}).key() {
		t.Error("the key depends on the order of alternatives, or not on the alternatives")
	}
	labelled := ResourceOptions{LabelSelector: a.Label, AnyOf: []Selector{b, newSelector(t, "c", "")}}
	unlabelled := ResourceOptions{AnyOf: []Selector{newSelector(t, "ab", "metadata.name=x"), newSelector(t, "c", "")}}
	if gvr := (schema.GroupVersionResource{}); labelled.view(gvr) == unlabelled.view(gvr) {
		t.Error("different selections have equal persistence keys")
	}
	if text := one.describe(); text != "any of: a | b with fields metadata.name=x" {
		t.Errorf("describe() = %q, want both alternatives", text)
	}
	wrong := ResourceOptions{AnyOf: []Selector{newSelector(t, "", "spec.x=y"), a}}
	if errs := wrong.validate(); len(errs) != 1 || !strings.Contains(errs[0].Error(), `"spec.x"`) {
		t.Errorf("validate() = %v, want one error about spec.x", errs)
	}
}
