package filler

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// A random history must leave the population as a plain set would be.
func TestPopulationIsASet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, model := &population{}, map[types.NamespacedName]bool{}
	for range 5000 {
		name := types.NamespacedName{Name: strconv.Itoa(rng.IntN(50))}
		if rng.IntN(2) == 0 {
			p.add(name)
			model[name] = true
		} else {
			p.remove(name)
			delete(model, name)
		}
		if found, ok := p.random(rng); ok != (len(model) > 0) || ok && !model[found] {
			t.Fatalf("random gave %v, %v; the set is %v", found, ok, model)
		}
	}
	got := map[types.NamespacedName]bool{}
	for _, name := range p.mu.names {
		got[name] = true
	}
	if diff := cmp.Diff(model, got); diff != "" || len(p.mu.names) != len(model) {
		t.Errorf("%d names:\n%s", len(p.mu.names), diff)
	}
}
