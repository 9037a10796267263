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

// plan says which parts of a generation run, as namespaces and ranges come and go. Its methods are called by
// one goroutine.
type plan struct {
	*Follower
	generation *generation
	// forbidden is what parts are told that listing is forbidden; nil: that is a failure.
	forbidden func(error)
	parts     map[partKey]plannedPart
	past      informer.Past // of namespaces that are read one by one; nil: nothing is kept
	begun     bool          // there has been a set
}

// plannedPart is a part with what reporters know it by.
type plannedPart struct {
	informer.Part
	name string
}

// take makes the parts of these namespaces the ones that run, and reports whether that changes anything.
func (p *plan) take(namespaces []string) bool {
	var keys []partKey
	joins := map[*requests.Selection][]*requests.Selection{}
	if p.Shard == nil {
		for _, name := range namespaces {
			keys = append(keys, partKey{namespace: name})
		}
	} else {
		for name, selections := range p.Shard.selections(namespaces) {
			for selection := range selections {
				keys = append(keys, partKey{name, selection})
				joins[selection] = selections[selection]
			}
		}
	}
	next := make(map[partKey]plannedPart, len(keys))
	for _, key := range keys {
		if part, ok := p.parts[key]; ok {
			next[key] = part
		}
	}
	same := p.begun && len(keys) == len(p.parts) && len(next) == len(keys)
	for _, key := range keys {
		if _, ok := next[key]; !ok {
			next[key] = p.make(key, joins[key.selection], next)
		}
	}
	p.parts, p.begun = next, true
	if !same && p.Shard != nil {
		p.Shard.told()
	}
	return !same
}

// make returns a part that has not run, and joins some that do. Others are beside it.
func (p *plan) make(key partKey, joins []*requests.Selection, beside map[partKey]plannedPart) plannedPart {
	described := p.describe(p.generation, key.namespace)
	described.Selection = key.selection
	if partIn(beside, key.namespace) { // ranges have been added
		described.Name = fmt.Sprintf("%s, hashes %v", cmp.Or(key.namespace, "all namespaces"),
			key.selection.Ranges())
	}
	described.Late = p.begun && key.namespace != "" && !partIn(p.parts, key.namespace)
	var joined []informer.Selection
	for _, selection := range joins {
		joined = append(joined, selection)
		described.Joins = append(described.Joins, p.parts[partKey{key.namespace, selection}].name)
	}
	part := p.part(described, p.forbidden)
	part.Joins = joined
	part.Past = p.past
	return plannedPart{part, described.Name}
}

// partIn reports whether one of some parts is in a namespace.
func partIn(parts map[partKey]plannedPart, namespace string) bool {
	for key := range parts {
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
