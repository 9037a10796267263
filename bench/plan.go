package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// Plan is the steps of a run. Steps without a sandbox come first, because a sandbox uses processor time.
// Steps with the same sandbox follow each other with ascending numbers of objects, because a sandbox can be
// filled but not emptied.
type Plan []Step

// Step is one experiment with one number of objects. Its subjects take turns in each round.
type Step struct {
	Experiment string
	// Size is the size of the objects.
	Size string
	// Objects is the number of objects, or the number of types with PerType objects each.
	Objects, PerType int
	// Gates are the feature gates of the API server.
	Gates    string
	Subjects []string
	// Rounds is the number of measurements of each subject.
	Rounds int
	// Events is the number of updates, and Rate their number per second. With a rate of zero, the client
	// receives all updates at once.
	Events int
	Rate   float64
	// Budget is the processor time of each small operation.
	Budget time.Duration
	// Idle is how long caches are watched while nothing changes.
	Idle time.Duration
}

// Updates per second. The slow rate leaves two cores mostly idle, so that latencies do not include a queue
// at the server.
const (
	slowRate = 200
	fastRate = 5_000
)

// The subjects that most steps compare.
var (
	judgedSubjects = []string{experiment.Stream, experiment.ClientGo, experiment.PackedTrimmed}
	largeSubjects  = append(slices.Clone(judgedSubjects), experiment.Packed, experiment.CompressedTrimmed,
		experiment.AdaptiveTrimmed)
	ourSubjects     = []string{experiment.PackedTrimmed, experiment.CompressedTrimmed}
	scaledSubjects  = append([]string{experiment.ClientGo}, ourSubjects...)
	burstSubjects   = append([]string{experiment.Stream, experiment.Packed}, scaledSubjects...)
	latencySubjects = append([]string{experiment.Stream}, scaledSubjects...)
	updatedSubjects = excludeNames(experiment.SubjectNames(), experiment.AdaptiveTrimmed,
		experiment.ClientGoTrimmed, experiment.Kept)
	readSubjects     = excludeNames(updatedSubjects, experiment.ClientGoMetadata, experiment.Metadata)
	readerSubjects   = append(excludeNames(readSubjects, experiment.Stream), experiment.AdaptiveTrimmed)
	managerSubjects  = []string{experiment.StockManager, experiment.OursManager, experiment.CompressedManager}
	operatorSubjects = []string{experiment.Stream, experiment.StockManager, experiment.OursManager}
	restartSubjects  = []string{experiment.ClientGo, experiment.Packed, experiment.Unchanged,
		experiment.Changed}
	stockSubjects = []string{experiment.Stock, experiment.Ours}
	decoders      = append(slices.Clone(stockSubjects), experiment.OursPacked)
	dumpSubjects  = []string{experiment.Kubectl, experiment.Ours}
	printSubjects = append(slices.Clone(dumpSubjects), experiment.OursQuery, experiment.ServedDump,
		experiment.ServedQuery)
)

func excludeNames(names []string, excluded ...string) []string {
	return slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return slices.Contains(excluded, name) })
}

// FullPlan returns the plan of the report. Promises that noise could decide have several rounds.
func FullPlan() Plan {
	const small, budget = experiment.Small, 400 * time.Millisecond
	allNames := experiment.SubjectNames()
	filled := append(slices.Clone(largeSubjects), experiment.ClientGoTrimmed, experiment.Object,
		experiment.Metadata, experiment.Kept)
	return Plan{
		{Experiment: experiment.Types, Size: small, Objects: 1_000, PerType: experiment.ObjectsPerType,
			Subjects: experiment.Fleets(), Rounds: 1, Idle: 10 * time.Second},

		{Experiment: experiment.Queries, Size: small, Objects: 1_000, Subjects: stockSubjects[1:], Rounds: 2,
			Budget: budget},
		{Experiment: experiment.Decode, Size: small, Objects: 1_000, Subjects: decoders, Rounds: 2,
			Budget: budget},
		{Experiment: experiment.Paths, Size: small, Objects: 1_000, Subjects: stockSubjects, Rounds: 2,
			Budget: budget},
		{Experiment: experiment.LatencySlow, Size: small, Objects: 10_000,
			Subjects: latencySubjects, Rounds: 2,
			Events: 2_000, Rate: slowRate},
		{Experiment: experiment.LatencyFast, Size: small, Objects: 10_000,
			Subjects: latencySubjects, Rounds: 2,
			Events: 10_000, Rate: fastRate},
		{Experiment: experiment.BurstKey, Size: small, Objects: 10_000, Subjects: burstSubjects, Rounds: 1,
			Events: 2_000},
		{Experiment: experiment.BurstRead, Size: small, Objects: 10_000,
			Subjects: burstSubjects[1:], Rounds: 1, Events: 2_000},
		{Experiment: experiment.Scale, Size: small, Objects: 10_000, Subjects: scaledSubjects, Rounds: 3,
			Events: 10_000,
			Rate:   fastRate, Budget: budget},
		{Experiment: experiment.Scale, Size: small, Objects: 100_000, Subjects: scaledSubjects, Rounds: 1,
			Events: 10_000,
			Rate:   fastRate, Budget: budget},
		{Experiment: experiment.Scale, Size: small, Objects: 1_000_000, Subjects: ourSubjects, Rounds: 1,
			Events: 10_000,
			Rate:   fastRate, Budget: budget},
		{Experiment: experiment.Operator, Size: small, Objects: 50_000, Subjects: operatorSubjects, Rounds: 3,
			Events: 2_000, Rate: slowRate},
		{Experiment: experiment.SyncList, Size: small, Objects: 10_000,
			Subjects: excludeNames(largeSubjects, experiment.Stream), Rounds: 2},
		{Experiment: experiment.UpdatesKey, Size: small, Objects: 10_000, Subjects: judgedSubjects, Rounds: 3,
			Events: 500, Rate: slowRate},
		{Experiment: experiment.UpdatesKey, Size: small, Objects: 10_000,
			Subjects: excludeNames(updatedSubjects, judgedSubjects...), Rounds: 1, Events: 500,
			Rate: slowRate},
		{Experiment: experiment.UpdatesRead, Size: small, Objects: 10_000,
			Subjects: judgedSubjects, Rounds: 3, Events: 500, Rate: slowRate},
		{Experiment: experiment.UpdatesRead, Size: small, Objects: 10_000,
			Subjects: excludeNames(readSubjects, judgedSubjects...), Rounds: 1, Events: 500, Rate: slowRate},
		{Experiment: experiment.Queries, Size: small, Objects: 10_000, Subjects: stockSubjects[1:], Rounds: 2,
			Budget: budget},
		{Experiment: experiment.DumpJSON, Size: small, Objects: 20_000, Subjects: printSubjects, Rounds: 2},
		{Experiment: experiment.DumpYAML, Size: small, Objects: 20_000, Subjects: dumpSubjects, Rounds: 1},
		{Experiment: experiment.Sync, Size: small, Objects: 50_000, Subjects: filled, Rounds: 3},
		{Experiment: experiment.Sync, Size: small, Objects: 50_000,
			Subjects: excludeNames(allNames, filled...),
			Rounds:   1},
		{Experiment: experiment.Queries, Size: small, Objects: 50_000, Subjects: stockSubjects[1:], Rounds: 2,
			Budget: budget},
		{Experiment: experiment.Reads, Size: small, Objects: 50_000, Subjects: readerSubjects, Rounds: 1,
			Budget: budget},
		{Experiment: experiment.ManageUnstructured, Size: small, Objects: 50_000,
			Subjects: managerSubjects, Rounds: 1},
		{Experiment: experiment.ManageTyped, Size: small, Objects: 50_000,
			Subjects: managerSubjects, Rounds: 1},
		{Experiment: experiment.Restart, Size: small, Objects: 50_000, Subjects: restartSubjects, Rounds: 2},
		{Experiment: experiment.Shard, Size: small, Objects: 100_000, Rounds: 1,
			Subjects: []string{experiment.ClientGo, experiment.OnlyReplica, experiment.ClientReplica}},
		{Experiment: experiment.Shard, Size: small, Objects: 100_000, Rounds: 1,
			Gates:    experiment.ShardingGate,
			Subjects: []string{experiment.ServerReplica}},

		{Experiment: experiment.Sync, Size: experiment.Large, Objects: 5_000,
			Subjects: largeSubjects, Rounds: 1},
		{Experiment: experiment.Decode, Size: experiment.Large, Objects: 5_000, Subjects: decoders, Rounds: 2,
			Budget: budget},
	}
}

// CIPlan returns the short plan that checks the margins of promises on a busy machine.
func CIPlan() Plan {
	const small, budget = experiment.Small, 200 * time.Millisecond
	filled := excludeNames(experiment.SubjectNames(), experiment.ControllerRuntime)
	update := func(name string, subjects []string) Step {
		return Step{Experiment: name, Size: small, Objects: 5_000, Subjects: subjects, Rounds: 1, Events: 300,
			Rate: slowRate}
	}
	scale := func(objects, rounds int) Step {
		return Step{Experiment: experiment.Scale, Size: small, Objects: objects, Subjects: ourSubjects,
			Rounds: rounds, Events: 5_000,
			Rate: fastRate, Budget: budget}
	}
	return Plan{
		{Experiment: experiment.Types, Size: small, Objects: 200, PerType: experiment.ObjectsPerType,
			Subjects: []string{experiment.ClientGo, experiment.Packed}, Rounds: 1},

		{Experiment: experiment.DumpJSON, Size: small, Objects: 3_000, Subjects: printSubjects, Rounds: 2},
		{Experiment: experiment.DumpYAML, Size: small, Objects: 3_000, Subjects: dumpSubjects, Rounds: 1},
		{Experiment: experiment.Sync, Size: small, Objects: 5_000, Subjects: filled, Rounds: 3},
		{Experiment: experiment.SyncList, Size: small, Objects: 5_000,
			Subjects: excludeNames(largeSubjects, experiment.Stream), Rounds: 2},
		update(experiment.UpdatesKey, judgedSubjects),
		update(experiment.UpdatesRead, judgedSubjects),
		{Experiment: experiment.BurstKey, Size: small, Objects: 5_000, Subjects: burstSubjects, Rounds: 1,
			Events: 1_000},
		{Experiment: experiment.BurstRead, Size: small, Objects: 5_000,
			Subjects: burstSubjects[1:], Rounds: 1,
			Events: 1_000},
		{Experiment: experiment.Reads, Size: small, Objects: 5_000, Subjects: scaledSubjects, Rounds: 1,
			Budget: budget},
		{Experiment: experiment.Decode, Size: small, Objects: 5_000, Subjects: decoders, Rounds: 3,
			Budget: budget},
		{Experiment: experiment.Paths, Size: small, Objects: 5_000, Subjects: stockSubjects, Rounds: 3,
			Budget: budget},
		scale(10_000, 2),
		scale(30_000, 1),
		{Experiment: experiment.Operator, Size: small, Objects: 5_000, Subjects: operatorSubjects, Rounds: 1,
			Events: 1_000, Rate: slowRate},
		{Experiment: experiment.ManageUnstructured, Size: small, Objects: 5_000,
			Subjects: managerSubjects, Rounds: 1},
		{Experiment: experiment.ManageTyped, Size: small, Objects: 5_000,
			Subjects: managerSubjects, Rounds: 1},
		{Experiment: experiment.Restart, Size: small, Objects: 5_000, Subjects: restartSubjects, Rounds: 2},
	}
}

// Choice restricts a plan. Zero values do not restrict it.
type Choice struct {
	// Experiments and Subjects are names.
	Experiments, Subjects []string
	// Objects replaces the number of objects, and Rounds the number of rounds, of every step.
	Objects, Rounds int
}

// Choose returns the restricted plan. It returns an error if a name is not in the plan, or if nothing is
// left.
func (p Plan) Choose(c Choice) (Plan, error) {
	knownExperiments, knownSubjects := map[string]bool{}, map[string]bool{}
	var chosen Plan
	for _, s := range p {
		knownExperiments[s.Experiment] = true
		for _, name := range s.Subjects {
			knownSubjects[name] = true
		}
		if len(c.Experiments) > 0 && !slices.Contains(c.Experiments, s.Experiment) {
			continue
		}
		if len(c.Subjects) > 0 {
			s.Subjects = slices.DeleteFunc(slices.Clone(s.Subjects),
				func(name string) bool { return !slices.Contains(c.Subjects, name) })
		}
		if c.Objects > 0 {
			s.Objects = c.Objects
		}
		if c.Rounds > 0 {
			s.Rounds = c.Rounds
		}
		if s.Events > s.Objects {
			return nil, fmt.Errorf("%s: %d updates of different objects need more objects", s, s.Events)
		}
		if len(s.Subjects) > 0 {
			chosen = append(chosen, s)
		}
	}
	for _, check := range []struct {
		kind  string
		names []string
		known map[string]bool
	}{{"experiment", c.Experiments, knownExperiments}, {"subject", c.Subjects, knownSubjects}} {
		for _, name := range check.names {
			if !check.known[name] {
				return nil, fmt.Errorf("unknown %s %q; the plan has %q", check.kind, name,
					slices.Sorted(maps.Keys(check.known)))
			}
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no step has the chosen experiments and subjects")
	}
	return chosen, nil
}

// needsSandbox reports whether the step needs a sandbox.
func (s Step) needsSandbox() bool { return s.Experiment != experiment.Types }

// needsSyntheticServer reports whether the step needs very many objects, types that the sandbox does not
// have, the time of each write, or many writes at once.
func (s Step) needsSyntheticServer() bool {
	switch s.Experiment {
	case experiment.Scale, experiment.Operator, experiment.LatencySlow, experiment.LatencyFast,
		experiment.BurstKey, experiment.BurstRead:
		return true
	}
	return false
}

// String names the step in messages.
func (s Step) String() string {
	if s.Experiment == experiment.Types {
		return fmt.Sprintf("%s, %d with %d objects each", s.Experiment, s.Objects, s.PerType)
	}
	return fmt.Sprintf("%s, %d %s objects", s.Experiment, s.Objects, s.Size)
}
