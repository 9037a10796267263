package filler

import (
	"math/rand/v2"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// population is the set of objects that exist, as far as a churner knows. Its
// methods may be called concurrently.
type population struct {
	mu struct {
		sync.Mutex
		names []types.NamespacedName
		index map[types.NamespacedName]int
	}
}

func (p *population) add(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.index == nil {
		p.mu.index = map[types.NamespacedName]int{}
	}
	if _, known := p.mu.index[name]; known {
		return
	}
	p.mu.index[name] = len(p.mu.names)
	p.mu.names = append(p.mu.names, name)
}

// remove moves the last name into the gap.
func (p *population) remove(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, known := p.mu.index[name]
	if !known {
		return
	}
	last := len(p.mu.names) - 1
	p.mu.names[i] = p.mu.names[last]
	p.mu.index[p.mu.names[i]] = i
	p.mu.names = slices.Delete(p.mu.names, last, last+1)
	delete(p.mu.index, name)
}

// random returns any name, or false if there is none.
func (p *population) random(rng *rand.Rand) (types.NamespacedName, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.names) == 0 {
		return types.NamespacedName{}, false
	}
	return p.mu.names[rng.IntN(len(p.mu.names))], true
}
