package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
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
	judged = []string{subject.Stream, subject.ClientGo, subject.PackedTrimmed}
	large  = append(slices.Clone(judged), subject.Packed, subject.CompressedTrimmed,
		subject.AdaptiveTrimmed)
	ours     = []string{subject.PackedTrimmed, subject.CompressedTrimmed}
	scaled   = append([]string{subject.ClientGo}, ours...)
	burst    = append([]string{subject.Stream, subject.Packed}, scaled...)
	latency  = append([]string{subject.Stream}, scaled...)
	updated  = without(subject.Names(subject.All()), subject.AdaptiveTrimmed, subject.ClientGoTrimmed)
	read     = without(updated, subject.ClientGoMetadata, subject.Metadata)
	readers  = append(without(read, subject.Stream), subject.AdaptiveTrimmed)
	managers = []string{experiment.StockManager, experiment.OursManager, experiment.CompressedManager}
	operator = []string{subject.Stream, experiment.StockManager, experiment.OursManager}
	restarts = []string{subject.ClientGo, subject.Packed, experiment.Unchanged, experiment.Changed}
	stock    = []string{experiment.Stock, experiment.Ours}
	decoders = append(slices.Clone(stock), experiment.OursPacked)
	dumps    = []string{experiment.Kubectl, experiment.Ours}
	printed  = append(slices.Clone(dumps), experiment.OursQuery, experiment.ServedDump,
		experiment.ServedQuery)
)

func without(names []string, excluded ...string) []string {
	return slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return slices.Contains(excluded, name) })
}

// FullPlan returns the plan of the report. Promises that noise could decide have several rounds.
func FullPlan() Plan {
	const small, budget = experiment.Small, 400 * time.Millisecond
	all := subject.Names(subject.All())
	filled := append(slices.Clone(large), subject.ClientGoTrimmed, subject.Object, subject.Metadata)
	return Plan{
		{Experiment: experiment.Types, Size: small, Objects: 1_000, PerType: experiment.ObjectsPerType,
			Subjects: subject.Fleets(), Rounds: 1, Idle: 10 * time.Second},

		{Experiment: experiment.Queries, Size: small, Objects: 1_000, Subjects: stock[1:], Rounds: 2,
			Budget: budget},
		{Experiment: experiment.Decode, Size: small, Objects: 1_000, Subjects: decoders, Rounds: 2,
			Budget: budget},
		{Experiment: experiment.Paths, Size: small, Objects: 1_000, Subjects: stock, Rounds: 2,
			Budget: budget},
		{Experiment: experiment.LatencySlow, Size: small, Objects: 10_000, Subjects: latency, Rounds: 2,
			Events: 2_000, Rate: slowRate},
		{Experiment: experiment.LatencyFast, Size: small, Objects: 10_000, Subjects: latency, Rounds: 2,
			Events: 10_000, Rate: fastRate},
		{Experiment: experiment.Scale, Size: small, Objects: 10_000, Subjects: scaled, Rounds: 3,
			Events: 10_000,
			Rate:   fastRate, Budget: budget},
		{Experiment: experiment.Scale, Size: small, Objects: 100_000, Subjects: scaled, Rounds: 1,
			Events: 10_000,
			Rate:   fastRate, Budget: budget},
		{Experiment: experiment.Scale, Size: small, Objects: 1_000_000, Subjects: ours, Rounds: 1,
			Events: 10_000,
			Rate:   fastRate, Budget: budget},
		{Experiment: experiment.Operator, Size: small, Objects: 50_000, Subjects: operator, Rounds: 3,
			Events: 2_000, Rate: slowRate},
		{Experiment: experiment.SyncList, Size: small, Objects: 10_000,
			Subjects: without(large, subject.Stream), Rounds: 2},
		{Experiment: experiment.UpdatesKey, Size: small, Objects: 10_000, Subjects: judged, Rounds: 3,
			Events: 500, Rate: slowRate},
		{Experiment: experiment.UpdatesKey, Size: small, Objects: 10_000,
			Subjects: without(updated, judged...), Rounds: 1,
			Events: 500, Rate: slowRate},
		{Experiment: experiment.UpdatesRead, Size: small, Objects: 10_000, Subjects: judged, Rounds: 3,
			Events: 500, Rate: slowRate},
		{Experiment: experiment.UpdatesRead, Size: small, Objects: 10_000, Subjects: without(read, judged...),
			Rounds: 1,
			Events: 500, Rate: slowRate},
		{Experiment: experiment.BurstKey, Size: small, Objects: 10_000, Subjects: burst, Rounds: 1,
			Events: 2_000},
		{Experiment: experiment.BurstRead, Size: small, Objects: 10_000, Subjects: burst[1:], Rounds: 1,
			Events: 2_000},
		{Experiment: experiment.Queries, Size: small, Objects: 10_000, Subjects: stock[1:], Rounds: 2,
			Budget: budget},
		{Experiment: experiment.DumpJSON, Size: small, Objects: 20_000, Subjects: printed, Rounds: 2},
		{Experiment: experiment.DumpYAML, Size: small, Objects: 20_000, Subjects: dumps, Rounds: 1},
		{Experiment: experiment.Sync, Size: small, Objects: 50_000, Subjects: filled, Rounds: 3},
		{Experiment: experiment.Sync, Size: small, Objects: 50_000, Subjects: without(all, filled...),
			Rounds: 1},
		{Experiment: experiment.Queries, Size: small, Objects: 50_000, Subjects: stock[1:], Rounds: 2,
			Budget: budget},
		{Experiment: experiment.Reads, Size: small, Objects: 50_000, Subjects: readers, Rounds: 1,
			Budget: budget},
		{Experiment: experiment.ManageUnstructured, Size: small, Objects: 50_000,
			Subjects: managers, Rounds: 1},
		{Experiment: experiment.ManageTyped, Size: small, Objects: 50_000, Subjects: managers, Rounds: 1},
		{Experiment: experiment.Restart, Size: small, Objects: 50_000, Subjects: restarts, Rounds: 2},
		{Experiment: experiment.Shard, Size: small, Objects: 100_000, Rounds: 1,
			Subjects: []string{subject.ClientGo, experiment.OnlyReplica, experiment.ClientReplica}},
		{Experiment: experiment.Shard, Size: small, Objects: 100_000, Rounds: 1,
			Gates:    experiment.ShardingGate,
			Subjects: []string{experiment.ServerReplica}},

		{Experiment: experiment.Sync, Size: experiment.Large, Objects: 5_000, Subjects: large, Rounds: 1},
		{Experiment: experiment.Decode, Size: experiment.Large, Objects: 5_000, Subjects: decoders, Rounds: 2,
			Budget: budget},
	}
}

// CIPlan returns the short plan that checks the margins of promises on a busy machine.
func CIPlan() Plan {
	const small, budget = experiment.Small, 200 * time.Millisecond
	filled := without(subject.Names(subject.All()), subject.ControllerRuntime)
	update := func(name string, subjects []string) Step {
		return Step{Experiment: name, Size: small, Objects: 5_000, Subjects: subjects, Rounds: 1, Events: 300,
			Rate: slowRate}
	}
	scale := func(objects, rounds int) Step {
		return Step{Experiment: experiment.Scale, Size: small, Objects: objects, Subjects: ours,
			Rounds: rounds, Events: 5_000,
			Rate: fastRate, Budget: budget}
	}
	return Plan{
		{Experiment: experiment.Types, Size: small, Objects: 200, PerType: experiment.ObjectsPerType,
			Subjects: []string{subject.ClientGo, subject.Packed}, Rounds: 1},

		{Experiment: experiment.DumpJSON, Size: small, Objects: 3_000, Subjects: printed, Rounds: 2},
		{Experiment: experiment.DumpYAML, Size: small, Objects: 3_000, Subjects: dumps, Rounds: 1},
		{Experiment: experiment.Sync, Size: small, Objects: 5_000, Subjects: filled, Rounds: 3},
		{Experiment: experiment.SyncList, Size: small, Objects: 5_000,
			Subjects: without(large, subject.Stream), Rounds: 2},
		update(experiment.UpdatesKey, judged),
		update(experiment.UpdatesRead, judged),
		{Experiment: experiment.BurstKey, Size: small, Objects: 5_000, Subjects: burst, Rounds: 1,
			Events: 1_000},
		{Experiment: experiment.BurstRead, Size: small, Objects: 5_000, Subjects: burst[1:], Rounds: 1,
			Events: 1_000},
		{Experiment: experiment.Reads, Size: small, Objects: 5_000, Subjects: scaled, Rounds: 1,
			Budget: budget},
		{Experiment: experiment.Decode, Size: small, Objects: 5_000, Subjects: decoders, Rounds: 3,
			Budget: budget},
		{Experiment: experiment.Paths, Size: small, Objects: 5_000, Subjects: stock, Rounds: 3,
			Budget: budget},
		scale(10_000, 2),
		scale(30_000, 1),
		{Experiment: experiment.Operator, Size: small, Objects: 5_000, Subjects: operator, Rounds: 1,
			Events: 1_000, Rate: slowRate},
		{Experiment: experiment.ManageUnstructured, Size: small, Objects: 5_000,
			Subjects: managers, Rounds: 1},
		{Experiment: experiment.ManageTyped, Size: small, Objects: 5_000, Subjects: managers, Rounds: 1},
		{Experiment: experiment.Restart, Size: small, Objects: 5_000, Subjects: restarts, Rounds: 2},
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

// synthetic reports whether the step needs the synthetic server.
func (s Step) synthetic() bool {
	return s.Experiment == experiment.Scale || s.Experiment == experiment.Operator ||
		s.Experiment == experiment.LatencySlow ||
		s.Experiment == experiment.LatencyFast
}

// sandboxed reports whether the step needs a sandbox.
func (s Step) sandboxed() bool { return s.Experiment != experiment.Types }

// String names the step in messages.
func (s Step) String() string {
	if s.Experiment == experiment.Types {
		return fmt.Sprintf("%s, %d with %d objects each", s.Experiment, s.Objects, s.PerType)
	}
	return fmt.Sprintf("%s, %d %s objects", s.Experiment, s.Objects, s.Size)
}
