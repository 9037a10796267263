package follow

import (
	"cmp"
	"fmt"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// partitionKey identifies a partition of a plan.
type partitionKey struct {
	namespace string
	selection *requests.Selection // nil means everything
}

// plan tracks the running partitions of an incarnation while namespaces and ranges change. It is used by one
// goroutine.
type plan struct {
	*Follower
	incarnation *incarnation
	// forbidden, if not nil, is called when a list is forbidden, which is then not a failure.
	forbidden     func(error)
	running       map[partitionKey]plannedPartition
	restoredState informer.PersistedState // of namespaces that are read one by one; optional
	started       bool                    // set by the first update
}

type plannedPartition struct {
	informer.Partition
	name string
}

// update sets the partitions for these namespaces, and reports whether the set has changed.
func (p *plan) update(namespaces []string) bool {
	var keys []partitionKey
	joins := map[*requests.Selection][]*requests.Selection{}
	if p.Shard == nil {
		for _, name := range namespaces {
			keys = append(keys, partitionKey{namespace: name})
		}
	} else {
		for name, selections := range p.Shard.selections(namespaces) {
			for selection := range selections {
				keys = append(keys, partitionKey{name, selection})
				joins[selection] = selections[selection]
			}
		}
	}
	next := make(map[partitionKey]plannedPartition, len(keys))
	for _, key := range keys {
		if partition, ok := p.running[key]; ok {
			next[key] = partition
		}
	}
	unchanged := p.started && len(keys) == len(p.running) && len(next) == len(keys)
	for _, key := range keys {
		if _, ok := next[key]; !ok {
			next[key] = p.newPlannedPartition(key, joins[key.selection], next)
		}
	}
	p.running, p.started = next, true
	if !unchanged && p.Shard != nil {
		p.Shard.notify()
	}
	return !unchanged
}

func (p *plan) newPlannedPartition(key partitionKey, replaced []*requests.Selection,
	others map[partitionKey]plannedPartition) plannedPartition {
	description := p.partitionSpec(p.incarnation, key.namespace)
	description.Selection = key.selection
	if hasPartitionIn(others, key.namespace) { // ranges have been added
		description.Name = fmt.Sprintf("%s, hashes %v", cmp.Or(key.namespace, "all namespaces"),
			key.selection.Ranges())
	}
	description.NamespaceIsNew = p.started && key.namespace != "" && !hasPartitionIn(p.running, key.namespace)
	var replacedSelections []informer.Selection
	for _, selection := range replaced {
		replacedSelections = append(replacedSelections, selection)
		before := p.running[partitionKey{key.namespace, selection}]
		description.Replaces = append(description.Replaces, before.name)
	}
	partition := p.newPartition(description, p.forbidden)
	partition.Replaces = replacedSelections
	partition.State = p.restoredState
	return plannedPartition{partition, description.Name}
}

func hasPartitionIn(partitions map[partitionKey]plannedPartition, namespace string) bool {
	for key := range partitions {
		if key.namespace == namespace {
			return true
		}
	}
	return false
}

func (p *plan) names() []string {
	names := make([]string, 0, len(p.running))
	for _, partition := range p.running {
		names = append(names, partition.name)
	}
	return names
}

func (p *plan) partitions() []informer.Partition {
	partitions := make([]informer.Partition, 0, len(p.running))
	for _, partition := range p.running {
		partitions = append(partitions, partition.Partition)
	}
	return partitions
}
