package run

import (
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// PlanOptions say what to measure.
type PlanOptions struct {
	// Sizes are the numbers of small objects to fill caches with, and LargeSizes those of large ones.
	Sizes, LargeSizes []int
	// Families are types of large objects to fill caches with, by name, FamilyObjects of each.
	Families      []string
	FamilyObjects int
	// Types are the numbers of types to keep caches of, PerType how many objects each has, and Idle for how long to watch
	// them while nothing happens.
	Types   []int
	PerType int
	Idle    time.Duration
	// Subjects are the caches, by name.
	Subjects []string
	// Experiments are those to make, by name; empty means all.
	Experiments []string
	// Rounds is how often everything is measured. What takes long is measured once: more than onceAbove
	// objects, large ones, updates, reads, printing YAML, managers, and from allBelow objects on the subjects that matter less.
	// Printing JSON is measured twice at most.
	Rounds int
	// Judged is how often that is measured at least, whatever Rounds says, from which promises are judged that the noise
	// between two rounds could decide: processor time of filling and updates.
	Judged int
	// Updates is how many updates to make, and UpdateObjects among how many objects; Burst is how many arrive at once.
	Updates, UpdateObjects, Burst int
	// Scales are the numbers of objects of the synthetic server to fill caches with, with ScalePeers those of client-go
	// too. FastUpdates and SlowUpdates are how many updates that server makes, fastRate and updateRate of them in a
	// second. Without SlowUpdates, latencies are not measured.
	Scales                   []int
	ScalePeers               bool
	FastUpdates, SlowUpdates int
	// ListObjects is how many objects are listed, ReadObjects how many are read, DumpObjects how many are
	// dumped.
	ListObjects, ReadObjects, DumpObjects int
	// ManagedObjects is how many objects managers reconcile, and RestartObjects how many a process has that is begun anew; with
	// ManyTypes, others do so with those of many types.
	ManagedObjects, RestartObjects int
	ManyTypes                      bool
	// ShardedObjects is how many objects replicas share; 0: none do.
	ShardedObjects int
	// Budget is the processor time for each small operation.
	Budget time.Duration
}

const (
	// onceAbove is the number of objects above which one round has to do, and only the subjects that matter most
	// are measured.
	onceAbove = 100_000
	// allBelow is the number of objects below which all subjects are measured in all rounds; above it one round has
	// to do for those that matter less.
	allBelow = 10_000
)

// latencyRounds is in how many rounds those latencies are measured that promises are judged by. All of them together give
// the quantiles.
const latencyRounds = 2

// updateRate is how many updates are made in a second: what two cores do with ease, so that latency is not
// that of a queue before the server.
const updateRate = 200

// fastRate is how many updates the synthetic server makes in a second where it makes many.
const fastRate = 5_000

// DefaultPlanOptions returns the options that the report is made with.
func DefaultPlanOptions() PlanOptions {
	return PlanOptions{
		Sizes:      []int{1_000, 10_000, 50_000},
		LargeSizes: []int{5_000},
		// The most alike of each other, the least, and the deepest.
		Families: []string{"pods", "policyreports", "definitions"}, FamilyObjects: 5_000,
		Types: []int{100, 1_000}, PerType: experiment.ObjectsPerType, Idle: 10 * time.Second,
		Subjects: subject.Names(subject.All()),
		Rounds:   2, Judged: 3,
		Updates: 500, UpdateObjects: 10_000,
		Scales: []int{10_000, 100_000, 1_000_000}, ScalePeers: true, FastUpdates: 10_000, SlowUpdates: 2_000,
		Burst: 2_000, ListObjects: 10_000, ReadObjects: 50_000, DumpObjects: 20_000,
		ManagedObjects: 50_000, RestartObjects: 50_000, ManyTypes: true, ShardedObjects: 100_000,
		Budget: 400 * time.Millisecond,
	}
}

// CIPlanOptions returns the options of the short run that guards promises.
func CIPlanOptions() PlanOptions {
	return PlanOptions{
		Sizes: []int{5_000},
		Types: []int{200}, PerType: experiment.ObjectsPerType, Idle: 2 * time.Second,
		Subjects: subject.Names(subject.All()),
		Rounds:   3, Judged: 1,
		Updates: 300, UpdateObjects: 5_000,
		Scales: []int{10_000, 30_000}, FastUpdates: 5_000,
		Burst: 1_000, ListObjects: 5_000, ReadObjects: 5_000, DumpObjects: 3_000,
		ManagedObjects: 5_000, RestartObjects: 5_000,
		Budget: 200 * time.Millisecond,
	}
}
