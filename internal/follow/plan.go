package follow

import (
	"cmp"
	"fmt"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// partKey tells the parts of a plan apart.
type partKey struct {
	namespace string
	selection *requests.Selection // nil: everything
}

// plan says which parts of a generation run, as namespaces and ranges come and go. Its methods are called by one goroutine.
type plan struct {
	*Follower
	generation *generation
	// forbidden is what parts are told that listing is forbidden; nil: that is a failure.
	forbidden func(error)
	parts     map[partKey]plannedPart
	begun     bool // there has been a set
}

// plannedPart is a part with what reporters know it by.
type plannedPart struct {
	informer.Part
	name string
}

// take makes the parts of these namespaces the ones that run, and reports whether that changes anything.
func (p *plan) take(namespaces []string) bool {
	var keys []partKey
	if p.Shard == nil {
		for _, name := range namespaces {
			keys = append(keys, partKey{namespace: name})
		}
	} else {
		for name, selections := range p.Shard.selections(namespaces) {
			for _, selection := range selections {
				keys = append(keys, partKey{name, selection})
			}
		}
	}
	next := make(map[partKey]plannedPart, len(keys))
	same := p.begun && len(keys) == len(p.parts)
	for _, key := range keys {
		part, ok := p.parts[key]
		if !ok {
			part, same = p.make(key), false
		}
		next[key] = part
	}
	p.parts, p.begun = next, true
	if !same && p.Shard != nil {
		p.Shard.told()
	}
	return !same
}

// make returns a part that has not run.
func (p *plan) make(key partKey) plannedPart {
	described := p.describe(p.generation, key.namespace)
	described.Selection = key.selection
	if p.follows(key.namespace) { // ranges have been added
		described.Name = fmt.Sprintf("%s, hashes %v", cmp.Or(key.namespace, "all namespaces"), key.selection.Ranges())
	} else {
		described.Late = p.begun && key.namespace != ""
	}
	return plannedPart{p.part(described, p.forbidden), described.Name}
}

// follows reports whether there is a part in a namespace.
func (p *plan) follows(namespace string) bool {
	for key := range p.parts {
		if key.namespace == namespace {
			return true
		}
	}
	return false
}

// names are those that reporters know the parts by.
func (p *plan) names() []string {
	names := make([]string, 0, len(p.parts))
	for _, part := range p.parts {
		names = append(names, part.name)
	}
	return names
}

// set returns the parts.
func (p *plan) set() []informer.Part {
	parts := make([]informer.Part, 0, len(p.parts))
	for _, part := range p.parts {
		parts = append(parts, part.Part)
	}
	return parts
}
