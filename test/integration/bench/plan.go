package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

// Plan is the steps of a run: see plan.yaml for their order.
type Plan []Step

// Step is one experiment with one number of objects. Its subjects take turns in each round.
type Step struct {
	Experiment string
	// Size is the size of the objects. Default: small.
	Size string
	// Objects is the number of objects, of types with PerType objects each, or of clusters with such types.
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
	Budget metav1.Duration
	// Idle is how long caches are watched while nothing changes.
	Idle metav1.Duration
}

//go:embed plan.yaml
var planText []byte

// readPlans returns the plans of plan.yaml by name.
func readPlans() map[string]Plan {
	var all map[string]Plan
	if err := yaml.UnmarshalStrict(planText, &all); err != nil {
		panic(err) // TestPlanOrder reads the file
	}
	for _, plan := range all {
		for i := range plan {
			plan[i].Size = cmp.Or(plan[i].Size, experiment.Small)
		}
	}
	return all
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

func (s Step) needsSandbox() bool {
	return s.Experiment != experiment.Types && s.Experiment != experiment.Controllers && !s.hasClusters() &&
		s.Size != experiment.Pods
}

// hasClusters reports whether Objects is a number of clusters.
func (s Step) hasClusters() bool {
	return s.Experiment == experiment.Clusters || s.Experiment == experiment.ClustersSparse
}

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
	switch {
	case s.hasClusters():
		return fmt.Sprintf("%s, %d with %d types of %d objects each", s.Experiment, s.Objects,
			experiment.ClusterTypes, s.PerType)
	case s.Experiment == experiment.Types, s.Experiment == experiment.Controllers:
		return fmt.Sprintf("%s, %d with %d objects each", s.Experiment, s.Objects, s.PerType)
	}
	return fmt.Sprintf("%s, %d %s objects", s.Experiment, s.Objects, s.Size)
}
