package persistence_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/test/integration/harness"
)

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
