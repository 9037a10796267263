package follow

import (
	"cmp"
	"fmt"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// partKey identifies a part of a plan.
type partKey struct {
	namespace string
	selection *requests.Selection // nil means everything
}

// plan tracks the running parts of an incarnation while namespaces and ranges change. One goroutine uses it.
type plan struct {
	*Follower
	incarnation *incarnation
	// forbidden, if not nil, is called when a list is forbidden, which is then not a failure.
	forbidden     func(error)
	parts         map[partKey]plannedPart
	restoredState informer.PersistedState // of namespaces that are read one by one; optional
	started       bool                    // after the first set
}

type plannedPart struct {
	informer.Partition
	name string
}

// update sets the parts for these namespaces, and reports whether that changes the set.
func (p *plan) update(namespaces []string) bool {
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
	unchanged := p.started && len(keys) == len(p.parts) && len(next) == len(keys)
	for _, key := range keys {
		if _, ok := next[key]; !ok {
			next[key] = p.newPart(key, joins[key.selection], next)
		}
	}
	p.parts, p.started = next, true
	if !unchanged && p.Shard != nil {
		p.Shard.notify()
	}
	return !unchanged
}

func (p *plan) newPart(key partKey, replaced []*requests.Selection,
	others map[partKey]plannedPart) plannedPart {
	description := p.partFor(p.incarnation, key.namespace)
	description.Selection = key.selection
	if hasPartIn(others, key.namespace) { // ranges have been added
		description.Name = fmt.Sprintf("%s, hashes %v", cmp.Or(key.namespace, "all namespaces"),
			key.selection.Ranges())
	}
	description.NamespaceIsNew = p.started && key.namespace != "" && !hasPartIn(p.parts, key.namespace)
	var replacedSelections []informer.Selection
	for _, selection := range replaced {
		replacedSelections = append(replacedSelections, selection)
		description.Replaces = append(description.Replaces, p.parts[partKey{key.namespace, selection}].name)
	}
	part := p.newPartition(description, p.forbidden)
	part.Replaces = replacedSelections
	part.State = p.restoredState
	return plannedPart{part, description.Name}
}

func hasPartIn(parts map[partKey]plannedPart, namespace string) bool {
	for key := range parts {
		if key.namespace == namespace {
			return true
		}
	}
	return false
}

func (p *plan) names() []string {
	names := make([]string, 0, len(p.parts))
	for _, part := range p.parts {
		names = append(names, part.name)
	}
	return names
}

func (p *plan) partitions() []informer.Partition {
	parts := make([]informer.Partition, 0, len(p.parts))
	for _, part := range p.parts {
		parts = append(parts, part.Partition)
	}
	return parts
}
