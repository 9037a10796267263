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
