package cel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestOneMeaningOfExpressions verifies that an expression selects the same objects as a validation rule of an
// API server, as a value of an index, as a condition of an index and of a metric, in a query and in a watch.
func TestOneMeaningOfExpressions(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	server, root := readLamps(t, 0)
	var objects []*unstructured.Unstructured
	for seed := range uint64(10) {
		o := &unstructured.Unstructured{Object: generator{rand.New(rand.NewPCG(seed, 3))}.object()}
		o.SetName(fmt.Sprint("lamp-", seed))
		objects = append(objects, o)
	}
	var rules []string
	selected, fails := map[string][]string{}, map[string]bool{} // by rule
	var config strings.Builder
	g := generator{rand.New(rand.NewPCG(1, 4))}
	for len(rules) < 25 {
		rule := g.typed(2)
		if slices.Contains(rules, rule) || server.evaluate(rule, objects[0].Object) == "refused" {
			continue
		}
		for _, o := range objects {
			switch server.evaluate(rule, o.Object) {
			case "true":
				selected[rule] = append(selected[rule], "hall/"+o.GetName())
			case "failure":
				fails[rule] = true
			}
		}
		slices.Sort(selected[rule])
		rules = append(rules, rule)
		text := "'" + strings.ReplaceAll(rule, "'", "''") + "'"
		fmt.Fprintf(&config, "    - {name: value%d, cel: %s}\n    - {name: when%[1]d, path: .metadata.name, whenCEL: %s}\n",
			len(rules), text, text)
	}
	config.WriteString("    metrics:\n")
	for i, rule := range rules {
		fmt.Fprintf(&config, "    - {name: m%d, help: Lamps., whenCEL: '%s'}\n", i+1, strings.ReplaceAll(rule, "'", "''"))
	}
	parsed, err := configOf("    indexes:\n" + config.String())
	must(t, err)
	definitions, err := crd.ReadFile("testdata/lamps.yaml")
	must(t, err)
	if _, err := parsed.Check(definitions); err != nil {
		t.Errorf("Check refuses what an API server accepts: %v", err)
	}
	cluster := lampCluster(t, objects...)
	binding, err := bind.Run(ctx, cluster.Config(), parsed)
	must(t, err)
	lamps, err := binding.Querier("lamps")
	if err != nil || len(binding.Problems()) > 0 {
		t.Fatal(err, binding.Problems())
	}
	counts := map[string]float64{}
	for family := range indexers.ReadMetrics(binding.MetricSources()...) {
		for _, series := range family.Series {
			counts[family.Name] += series.Value
		}
	}
	for i, rule := range rules {
		found, q := map[string][]string{}, query.WhereCEL(rule)
		ways := map[string]query.Query{"index": query.Eq(fmt.Sprint("value", i+1), "true"),
			"whenCEL": query.Exists(fmt.Sprint("when", i+1))}
		if !fails[rule] { // otherwise a query fails
			ways["query"] = q
		}
		for way, q := range ways {
			found[way], err = lamps.WithDefinition(definitions[0], "v1").Keys(ctx, q,
				query.Options{AllowScan: true})
			if err != nil {
				t.Errorf("%s: %s: %v", way, rule, err)
			}
			slices.Sort(found[way])
		}
		matcher, err := query.NewMatcher(query.WithSchema(q, func() *crd.Schema { return root }))
		must(t, err)
		found["watch"] = nil
		for _, o := range objects {
			if matches, _ := matcher.Match(o); matches {
				found["watch"] = append(found["watch"], "hall/"+o.GetName())
			}
		}
		slices.Sort(found["watch"])
		for way, got := range found {
			if diff := cmp.Diff(selected[rule], got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s (-API server +got):\n%s", way, rule, diff)
			}
		}
		if got := counts[fmt.Sprint("m", i+1)]; got != float64(len(selected[rule])) {
			t.Errorf("metric: %s counts %v objects, want %d", rule, got, len(selected[rule]))
		}
	}
}

// lampCluster returns a cluster with the type of lamps.yaml and lamps.
func lampCluster(t *testing.T, lamps ...*unstructured.Unstructured) *testcluster.Cluster {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err == nil {
		err = cluster.LoadFiles(t.Context(), "testdata/lamps.yaml", "testdata/hall.yaml")
	}
	for _, o := range lamps {
		if err == nil {
			err = cluster.Load(t.Context(), o)
		}
	}
	must(t, err)
	return cluster
}

// TestSchemaChanges verifies that an index waits for the schema that its expression needs, that it is
// computed again when a change of the CRD changes its values, and that no other change of the CRD does that.
func TestSchemaChanges(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	config, err := configOf("    indexes:\n    - {name: groups, cel: \"self.spec.groups == ['b', 'a']\"}\n" +
		"    - {name: class, cel: self.spec.class + '.'}\n" +
		"    metrics: [{name: m, help: Lamps., whenCEL: \"self.spec.groups == ['b', 'a']\"}]\n")
	must(t, err)
	cluster := lampCluster(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": map[string]any{"name": "l", "namespace": "hall"},
		"spec": map[string]any{"class": "gold", "groups": []any{"a", "b"}}}})
	forbid := testcluster.Fault{Effect: testcluster.Status(403, "", "no right"), Match: testcluster.Match{
		Verbs: []string{"get"}, Resource: crd.GVR.Resource}}
	allow := cluster.Faults().Add(forbid)
	changes := make(chan *bind.Target, 10)
	binding, err := bind.Run(ctx, cluster.Config(), config, bind.Options{
		OnChange: func(_, target *bind.Target) { changes <- target }})
	must(t, err)
	// next returns the values of the indexes after the next change.
	next := func() string {
		select {
		case <-changes:
		case <-ctx.Done():
			t.Fatal("no change of the target")
		}
		lamps, err := binding.Querier("lamps")
		must(t, err)
		var values []string
		for _, index := range []string{"class", "groups"} {
			found, _ := lamps.Values(ctx, index, query.All(), query.Options{AllowScan: true})
			values = append(values, fmt.Sprint(index, found))
		}
		return strings.Join(values, " ")
	}
	want := func(step, want string) {
		t.Helper()
		if got := next(); !strings.Contains(got, want) {
			t.Errorf("%s: the values are %s, want %s", step, got, want)
		}
	}
	// stale returns the value of crdcache_stale.
	stale := func() (value float64) {
		for family := range indexers.ReadMetrics(binding.MetricSources()...) {
			if family.Name == "crdcache_stale" {
				value = family.Series[0].Value
			}
		}
		return value
	}
	definitions := cluster.Client().Resource(crd.GVR)
	change := func(patch string) {
		t.Helper()
		if _, err := definitions.Patch(ctx, "lamps.example.com", types.JSONPatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	want("forbidden", "class[{gold. [gold.] 1}] groups[]")
	if problems := fmt.Sprint(binding.Problems()); !strings.Contains(problems, `index "groups" is left out: E310`) ||
		!strings.Contains(problems, "no right") || strings.Contains(problems, `"class"`) {
		t.Errorf("the problems are %s, want E310 for the index groups with the reason", problems)
	}
	if stale() != 1 {
		t.Error("without the metric, the type is not stale")
	}
	allow()
	want("allowed", "groups[{true [true] 1}]") // a set
	if problems := binding.Problems(); len(problems) > 0 || stale() != 0 {
		t.Errorf("the problems are %v, and stale is %v; want none", problems, stale())
	}
	const spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	before := cluster.Faults().Count(forbid.Match)
	change(`[{"op": "add", "path": "` + spec + `more", "value": {"type": "string"}}]`)
	must(t, cluster.Faults().Await(ctx, forbid.Match, before+1))
	change(`[{"op": "replace", "path": "` + spec + `groups/x-kubernetes-list-type", "value": "atomic"}]`)
	want("a list, after a change without effect", "groups[{false [false] 1}]")
	cluster.Faults().Add(forbid)
	change(`[{"op": "replace", "path": "` + spec + `groups/x-kubernetes-list-type", "value": "set"}]`)
	want("forbidden again", "groups[{false [false] 1}]")
	if problems := fmt.Sprint(binding.Problems()); !strings.Contains(problems, "can be out of date") {
		t.Errorf("the problems are %s, want the outdated schema", problems)
	}
}

// handlerStub is an informer that lets the test call its handler.
type handlerStub struct{ cache.ResourceEventHandler }

func (h *handlerStub) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.ResourceEventHandler = handler
	return nil, nil
}

func (h *handlerStub) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// TestSubscription verifies that a subscription reports the objects on which an expression fails, and
// continues with their next change.
func TestSubscription(t *testing.T) {
	for text, want := range map[string][]string{
		"self.names.all(a, self.names.all(b, a.size() + b.size() > 0))": {
			"Added a", "Deleted a", "Failed a: cost limit exceeded", "Added a", "Deleted a", "Failed a: no such key",
			"Failed b: no such key"},
		"!(has(self.names) && self.names.exists(a, self.names.exists(b, a + b == '')))": {
			"Added a", "Deleted a", "Failed a: cost limit exceeded", "Added a", "Modified a", "Added b", "Deleted a"},
		"self.names == self.names || self.names.size() > 1": {"Added a", "Modified a", "Modified a", "Deleted a",
			"Failed a: no such key", "Failed b: no such key"},
	} {
		q := query.WhereCEL(text)
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			q = query.Not(query.WhereCEL(rest))
		}
		matcher, err := query.NewMatcher(q)
		must(t, err)
		informer, got := &handlerStub{}, []string{}
		if _, err := query.Subscribe(informer, matcher, func(e query.Event) {
			line := fmt.Sprint(e.Type, " ", e.Key)
			for _, cause := range []string{"cost limit exceeded", "no such key"} {
				if e.Err != nil && strings.Contains(e.Err.Error(), " fails on "+e.Key+": ") &&
					strings.Contains(e.Err.Error(), cause) {
					line += ": " + cause
				}
			}
			got = append(got, line)
		}); err != nil {
			t.Fatal(err)
		}
		object := func(name string, names int, version string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name,
				"resourceVersion": version}}}
			if names > 0 {
				list := make([]any, names)
				for n := range list {
					list[n] = fmt.Sprint("n", n)
				}
				u.Object["names"] = list
			}
			return u
		}
		small, large, again, without := object("a", 2, "1"), object("a", 3000, "2"), object("a", 3, "3"),
			object("a", 0, "4")
		informer.OnAdd(small, true)
		informer.OnUpdate(small, large)
		informer.OnUpdate(large, large) // repeated
		informer.OnUpdate(large, again)
		informer.OnUpdate(again, without)
		informer.OnAdd(object("b", 0, "5"), false)
		informer.OnDelete(without)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
