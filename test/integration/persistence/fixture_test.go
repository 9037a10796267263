package persistence_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// fixture has types on the server and a folder.
type fixture struct {
	*testing.T
	types     []schema.GroupVersionResource
	namespace string
	clients   []dynamic.ResourceInterface // by type
	dir       string
	// existing has the numbers of the existing objects. next is the next free number.
	existing []int
	next     int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	group, definitions := harness.Group(t), []*unstructured.Unstructured{}
	p := &fixture{T: t, dir: t.TempDir()}
	for n := range *types {
		name := fmt.Sprintf("Thing%d", n)
		definitions = append(definitions, harness.NewCRD(group, name))
		p.types = append(p.types, schema.GroupVersionResource{Group: group, Version: "v1",
			Resource: strings.ToLower(name) + "s"})
	}
	harness.InstallCRDs(t, definitions...)
	p.namespace = harness.Namespace(t)
	config := rest.CopyConfig(harness.Config(t))
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, gvr := range p.types {
		p.clients = append(p.clients, client.Resource(gvr).Namespace(p.namespace))
	}
	t.Cleanup(func() { // faster than the server after the deletion of a type
		p.delete(context.Background(), p.existing)
	})
	return p
}

func nameOf(number int) string { return fmt.Sprintf("thing-%05d", number) }

// client returns the client for the type of an object.
func (p *fixture) client(number int) dynamic.ResourceInterface {
	return p.clients[number%len(p.clients)]
}

func (p *fixture) newThing(number, round int) *unstructured.Unstructured {
	gvr, name := p.types[number%len(p.types)], nameOf(number)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": fmt.Sprintf("Thing%d",
			number%len(p.types)), "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"round": int64(round), "secretName": name + "-tls", "dnsNames": []any{name + ".example.com",
				"www." + name + ".example.com"},
			"issuerRef": map[string]any{"name": "letsencrypt",
				"kind": "ClusterIssuer"}, "duration": "2160h", "usages": []any{"server auth", "client auth"},
		},
	}}
}

// inParallel calls do for each number, eight at a time.
func (p *fixture) inParallel(numbers []int, do func(number int) error) {
	p.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for k := int(next.Add(1)) - 1; k < len(numbers); k = int(next.Add(1)) - 1 {
				if err := do(numbers[k]); err != nil {
					p.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if p.Failed() {
		p.FailNow()
	}
}

func (p *fixture) create(count, round int) {
	p.Helper()
	var numbers []int
	for range count {
		numbers = append(numbers, p.next)
		p.next++
	}
	p.inParallel(numbers, func(number int) error {
		_, err := p.client(number).Create(p.Context(), p.newThing(number, round), metav1.CreateOptions{})
		return err
	})
	p.existing = append(p.existing, numbers...)
}

func (p *fixture) delete(ctx context.Context, numbers []int) {
	p.Helper()
	p.inParallel(numbers, func(number int) error {
		return p.client(number).Delete(ctx, nameOf(number),
			metav1.DeleteOptions{})
	})
}

// change makes count changes: mostly updates, a fifth deletions, and a fifth creations.
func (p *fixture) change(count, round int) {
	p.Helper()
	fifth := count / 5
	p.delete(p.Context(), p.existing[:fifth])
	p.existing = slices.Clone(p.existing[fifth:])
	p.inParallel(p.existing[:count-2*fifth], func(number int) error {
		patch := fmt.Appendf(nil, `{"spec":{"round":%d}}`, round)
		_, err := p.client(number).Patch(p.Context(), nameOf(number), apitypes.MergePatchType, patch,
			metav1.PatchOptions{})
		return err
	})
	p.create(fifth, round)
}

// TestResumeOnAnAPIServer restarts informers after no changes, after changes, after changes of other types,
// and after a compaction.
func TestResumeOnAnAPIServer(t *testing.T) {
	p := newFixture(t)
	p.create(*objects, 0)
	if o := p.runProcess("cold", nil); o.lists == 0 || o.resumed != 0 {
		t.Errorf("the first process: %+v, want lists and no resumed informers", o)
	}
	// Servers before 1.34 do not update an idle watch cache before they answer a list, so informers cannot
	// resume.
	resumable := harness.Has(t, harness.Since("1.34"))
	expectResumed := func(name string, whileSynced func(*process)) {
		t.Helper()
		if o := p.runProcess(name, whileSynced); resumable && (o.lists != 0 || o.resumed != len(p.types)) {
			t.Errorf("%s: %+v, want no lists and all informers resumed", name, o)
		}
	}
	expectResumed("nothing has changed", nil)
	p.change(*changes, 1)
	expectResumed("with changes", func(r *process) {
		p.create(*changes, 2)
		harness.Eventually(t, func(context.Context) error {
			if got, want := r.countObjects(), len(p.existing); got != want {
				return fmt.Errorf("there are %d objects, want %d", got, want)
			}
			return nil
		})
	})
	harness.Apply(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other",
			"namespace": p.namespace},
	}})
	expectResumed("other types have changed", nil)

	p.change(*changes, 3)
	harness.Compact(t)
	harness.RestartAPIServer(t) // because its watch caches keep history, too
	if o := p.runProcess("compacted", nil); o.lists < len(p.types) || o.resumed != 0 {
		t.Errorf("after a compaction: %+v, want lists and no resumed informers", o)
	}
	expectResumed("after that", nil)
}
