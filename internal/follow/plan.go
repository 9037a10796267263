package follow

import (
	"maps"
	"slices"

	"github.com/crdcache/crdcache/internal/informer"
)

// plan tracks the partitions of an incarnation while namespaces and selections change. One goroutine uses it.
type plan struct {
	*Follower
	incarnation *incarnation
	// forbidden, if not nil, is called when a list is forbidden, which is then not a failure.
	forbidden func(error)
	// running are the partitions by namespace. It is nil before the first update.
	running       map[string]informer.Partition
	restoredState informer.PersistedState // of namespaces that are read one by one; optional
}

// update sets the partitions for these namespaces, and reports whether the set has changed.
func (p *plan) update(namespaces []string) bool {
	selections := map[string]Selection{}
	if p.Selections != nil {
		selections = p.Selections.selectionsFor(namespaces)
		namespaces = slices.Collect(maps.Keys(selections))
	}
	next := make(map[string]informer.Partition, len(namespaces))
	changed := p.running == nil || len(namespaces) != len(p.running)
	for _, name := range namespaces {
		partition, runs := p.running[name]
		if selection := selections[name]; !runs || selection != nil && partition.Selection != selection {
			partition, changed = p.newPlannedPartition(name, selection), true
		}
		next[name] = partition
	}
	p.running = next
	return changed
}

func (p *plan) newPlannedPartition(namespace string, selection Selection) informer.Partition {
	description := p.partitionSpec(p.incarnation, namespace)
	description.Selection = selection
	_, known := p.running[namespace]
	description.NamespaceIsNew = p.running != nil && namespace != "" && !known
	partition := p.newPartition(description, p.forbidden)
	partition.State = p.restoredState
	return partition
}

func (p *plan) names() []string { return slices.Collect(maps.Keys(p.running)) }

func (p *plan) partitions() []informer.Partition { return slices.Collect(maps.Values(p.running)) }
