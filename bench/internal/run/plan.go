package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/report"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// Plan is the steps of a run: all of one size of objects together, and with ever more objects, because a
// sandbox can be filled but not emptied.
type Plan []Step

// Step is one experiment at one number of objects, for several subjects in turn.
type Step struct {
	Experiment string
	Size       string
	// Objects is how many there are; of many types, how many types with PerType objects each.
	Objects, PerType int
	// Gates are the feature gates of the API server.
	Gates    string
	Subjects []string
	// Rounds is how often all of it is done; the median counts.
	Rounds int
	// Events is how many updates are made, Rate of them in a second; without a rate all of them reach the client at
	// once.
	Events int
	Rate   float64
	// Budget is the processor time for each small operation.
	Budget time.Duration
	// Idle is for how long caches are watched while nothing happens.
	Idle time.Duration
}

// synthetic reports whether the step is measured with the synthetic server.
func (s Step) synthetic() bool {
	return s.Experiment == experiment.Scale || s.Experiment == experiment.LatencySlow || s.Experiment == experiment.LatencyFast
}

// inSandbox is how many objects the sandbox has to have.
func (s Step) inSandbox() int {
	if s.synthetic() {
		return s.recorded()
	}
	if !s.sandboxed() {
		return 0
	}
	return s.Objects
}

// sandboxed reports whether the step needs a sandbox.
func (s Step) sandboxed() bool {
	_, family := s.family()
	return !family && s.Experiment != experiment.Types
}

// String names the step in messages.
func (s Step) String() string {
	if s.Experiment == experiment.Types {
		return fmt.Sprintf("%s, %d with %d objects each", s.Experiment, s.Objects, s.PerType)
	}
	if _, ok := s.family(); ok {
		return fmt.Sprintf("%s, %d %s", s.Experiment, s.Objects, s.Size)
	}
	return fmt.Sprintf("%s, %d %s objects", s.Experiment, s.Objects, s.Size)
}

// NewPlan plans a run.
func NewPlan(o PlanOptions) (Plan, error) {
	if len(o.Sizes) == 0 || o.Rounds < 1 || o.Updates < 1 {
		return nil, errors.New("there have to be sizes, and at least one round and one update")
	}
	if most := max(o.Updates, o.Burst, o.SlowUpdates, o.FastUpdates); most > o.UpdateObjects {
		return nil, fmt.Errorf("%d updates of different objects need more than %d objects", most, o.UpdateObjects)
	}
	known := []string{experiment.Sync, experiment.SyncList, experiment.UpdatesKey, experiment.UpdatesRead, experiment.BurstKey,
		experiment.BurstRead, experiment.Reads, experiment.DumpJSON, experiment.DumpYAML, experiment.Decode, experiment.Paths, experiment.Queries,
		experiment.ManageUnstructured, experiment.ManageTyped, experiment.ManageMetadata, experiment.ManageTypes, experiment.Types, experiment.Restart,
		experiment.Scale, experiment.LatencySlow, experiment.LatencyFast, experiment.Shard}
	for _, name := range o.Experiments {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no experiment %q; there are: %q", name, known)
		}
	}
	subjects, err := subject.Find(o.Subjects)
	if err != nil {
		return nil, err
	}
	p := append(o.types(subjects), o.small(subjects)...)
	for _, size := range o.LargeSizes {
		p = append(p, o.sync(experiment.Large, size, subjects)...)
	}
	if len(o.LargeSizes) > 0 {
		p = append(p, o.decode(experiment.Large, slices.Min(o.LargeSizes)))
	}
	families, err := o.families(subjects)
	if err != nil {
		return nil, err
	}
	p = append(p, families...)
	p = append(p, o.scale(subjects)...)
	p = append(p, o.managers()...)
	p = append(p, o.shards(subjects)...)
	p = append(p, o.restarts()...)
	p = slices.DeleteFunc(p, func(s Step) bool {
		wanted := len(o.Experiments) == 0 || slices.Contains(o.Experiments, s.Experiment)
		return !wanted || len(s.Subjects) == 0
	})
	slices.SortStableFunc(p, func(a, b Step) int {
		if a.sandboxed() != b.sandboxed() {
			return map[bool]int{true: 1, false: -1}[a.sandboxed()] // once there is one, it takes processor time
		}
		if a.Size != b.Size {
			return slices.Index(sizes, a.Size) - slices.Index(sizes, b.Size)
		}
		if a.Gates != b.Gates {
			return cmp.Compare(a.Gates, b.Gates) // none comes first
		}
		return a.inSandbox() - b.inSandbox()
	})
	return p, nil
}

// sizes are what sandboxes are filled with, in order.
var sizes = []string{experiment.Small, experiment.Large, experiment.Many}

func (o PlanOptions) small(subjects []subject.Subject) Plan {
	var p Plan
	for _, size := range o.Sizes {
		p = append(p, o.sync(experiment.Small, size, subjects)...)
	}
	main := slices.DeleteFunc(slices.Clone(subjects), func(s subject.Subject) bool { return !s.Scales })
	mainBodies := slices.DeleteFunc(slices.Clone(main), func(s subject.Subject) bool { return !s.Bodies })
	p = append(p, Step{
		Experiment: experiment.SyncList, Size: experiment.Small, Objects: o.ListObjects, Rounds: o.Rounds, Subjects: subject.Names(mainBodies),
	})
	changing := slices.DeleteFunc(slices.Clone(subjects), func(s subject.Subject) bool {
		return s.Name == subject.AdaptiveTrimmed || // where what changes is packed
			s.Name == subject.ClientGoTrimmed // which follows as plain client-go does
	})
	bodies := slices.DeleteFunc(slices.Clone(changing), func(s subject.Subject) bool {
		return !s.Bodies && s.Name != subject.Stream // which costs of reading are beyond
	})
	updates := Step{
		Experiment: experiment.UpdatesKey, Size: experiment.Small, Objects: o.UpdateObjects, Rounds: 1,
		Subjects: subject.Names(changing), Events: o.Updates, Rate: updateRate,
	}
	judged := []string{subject.Stream, subject.ClientGo, subject.PackedTrimmed}
	p = append(p, updates.split(o.Judged, judged)...)
	updates.Experiment, updates.Subjects = experiment.UpdatesRead, subject.Names(bodies)
	p = append(p, updates.split(o.Judged, judged)...)
	if o.Burst > 0 {
		burst := Step{
			Experiment: experiment.BurstKey, Size: experiment.Small, Objects: o.UpdateObjects, Rounds: 1,
			Subjects: subject.Names(main), Events: o.Burst,
		}
		p = append(p, burst)
		burst.Experiment, burst.Subjects = experiment.BurstRead, subject.Names(mainBodies)
		p = append(p, burst)
	}
	readers := slices.DeleteFunc(slices.Clone(subjects), func(s subject.Subject) bool {
		return !s.Bodies || s.Name == subject.ClientGoTrimmed // which reads as plain client-go does
	})
	p = append(p, Step{
		Experiment: experiment.Reads, Size: experiment.Small, Objects: o.ReadObjects, Rounds: 1,
		Subjects: subject.Names(readers), Budget: o.Budget,
	})
	dump := Step{
		Experiment: experiment.DumpJSON, Size: experiment.Small, Objects: o.DumpObjects, Rounds: min(o.Rounds, 2),
		Subjects: []string{experiment.Kubectl, experiment.Ours},
	}
	p = append(p, dump)
	dump.Experiment, dump.Rounds = experiment.DumpYAML, 1
	p = append(p, dump)
	for _, size := range o.Sizes {
		if size <= onceAbove {
			p = append(p, Step{
				Experiment: experiment.Queries, Size: experiment.Small, Objects: size, Rounds: o.Rounds, Budget: o.Budget, Subjects: []string{experiment.Ours},
			})
		}
	}
	least := slices.Min(o.Sizes)
	return append(p, o.decode(experiment.Small, least), Step{
		Experiment: experiment.Paths, Size: experiment.Small, Objects: least, Rounds: o.Rounds, Budget: o.Budget,
		Subjects: []string{experiment.Stock, experiment.Ours},
	})
}

func (o PlanOptions) decode(size string, objects int) Step {
	return Step{
		Experiment: experiment.Decode, Size: size, Objects: objects, Rounds: o.Rounds, Budget: o.Budget,
		Subjects: []string{experiment.Stock, experiment.Ours, experiment.OursPacked},
	}
}

// managers plans to run managers.
func (o PlanOptions) managers() Plan {
	var p Plan
	step := Step{
		Size: experiment.Small, Objects: o.ManagedObjects, Rounds: 1,
		Subjects: []string{experiment.StockManager, experiment.OursManager, experiment.CompressedManager},
	}
	for _, step.Experiment = range []string{experiment.ManageUnstructured, experiment.ManageTyped, experiment.ManageMetadata} {
		p = append(p, step)
	}
	if o.ManyTypes {
		step.Experiment, step.Size, step.Objects = experiment.ManageTypes, experiment.Many, experiment.ManyTypes*experiment.ManyEach
		p = append(p, step)
	}
	return p
}

// restarts plans to begin processes anew.
func (o PlanOptions) restarts() Plan {
	step := Step{
		Experiment: experiment.Restart, Size: experiment.Small, Objects: o.RestartObjects, Rounds: min(o.Rounds, 2),
		Subjects: []string{subject.ClientGo, subject.Packed, experiment.Unchanged, experiment.Changed},
	}
	p := Plan{step}
	if o.ManyTypes {
		step.Size, step.Objects, step.Rounds = experiment.Many, experiment.ManyTypes*experiment.ManyEach, 1
		step.Subjects = []string{subject.ClientGo, subject.Packed, experiment.Unchanged}
		p = append(p, step)
	}
	return p
}

// types plans to keep caches of many types.
func (o PlanOptions) types(subjects []subject.Subject) Plan {
	var p Plan
	for _, count := range o.Types {
		step := Step{
			Experiment: experiment.Types, Size: experiment.Small, Objects: count, PerType: o.PerType, Rounds: 1, Idle: o.Idle,
		}
		if count < slices.Max(o.Types) { // for the curves of what a type costs
			step.Idle = 0
		}
		for _, s := range subjects {
			if slices.Contains(subject.Fleets(), s.Name) {
				step.Subjects = append(step.Subjects, s.Name)
			}
		}
		p = append(p, step)
	}
	return p
}

// scale plans what is measured with the synthetic server.
func (o PlanOptions) scale(subjects []subject.Subject) Plan {
	var names, few []string
	for _, s := range subjects {
		if !s.Scales || s.Name == subject.Packed { // which grows as it does without managed fields
			continue
		}
		few = append(few, s.Name)
		if s.Bodies {
			names = append(names, s.Name)
		}
	}
	var p Plan
	for _, objects := range o.Scales {
		step := Step{
			Experiment: experiment.Scale, Size: experiment.Small, Objects: objects, Subjects: names, Rounds: 1,
			Events: o.FastUpdates, Rate: fastRate, Budget: o.Budget,
		}
		if objects > onceAbove || !o.ScalePeers {
			step.Subjects = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == subject.ClientGo })
		}
		if objects > allBelow {
			p = append(p, step)
			continue
		}
		// A tenth of a second each, which all growth is compared with.
		p = append(p, step.split(o.Judged, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == subject.ClientGo }))...)
	}
	for _, l := range []struct {
		name   string
		events int
		rate   float64
	}{
		{experiment.LatencySlow, o.SlowUpdates, updateRate},
		{experiment.LatencyFast, o.FastUpdates, fastRate},
	} {
		if o.SlowUpdates > 0 && l.events > 0 {
			step := Step{
				Experiment: l.name, Size: experiment.Small, Objects: o.UpdateObjects, Subjects: few, Rounds: 1,
				Events: l.events, Rate: l.rate,
			}
			p = append(p, step.split(latencyRounds, []string{subject.ClientGo, subject.PackedTrimmed})...)
		}
	}
	return p
}

// sync plans to fill caches: the subjects that matter, and where that does not take too long the others.
func (o PlanOptions) sync(size string, objects int, subjects []subject.Subject) Plan {
	step := Step{Experiment: experiment.Sync, Size: size, Objects: objects, Rounds: o.Rounds}
	if objects >= allBelow || size == experiment.Large {
		step.Rounds = 1
	}
	var main []string
	for _, s := range subjects {
		switch {
		case (s.Scales || s.Name == subject.AdaptiveTrimmed) && objects <= onceAbove:
			main = append(main, s.Name)
		case s.Scales && s.Name != subject.Packed: // which grows as it does without managed fields
			main = append(main, s.Name)
		case size == experiment.Large || objects > onceAbove:
			continue
		}
		step.Subjects = append(step.Subjects, s.Name)
	}
	switch {
	case objects > onceAbove || size == experiment.Large:
		return Plan{step}
	case objects == o.judgedSize():
		return step.split(max(o.Rounds, o.Judged), main)
	default:
		return step.split(o.Rounds, main)
	}
}

// judgedSize is the number of objects that promises of filling are judged at.
func (o PlanOptions) judgedSize() int {
	judged := 0
	for _, size := range o.Sizes {
		if size <= report.Fills {
			judged = max(judged, size)
		}
	}
	return judged
}

// split makes two steps of one: some of its subjects in so many rounds, and the others as it says. Where the rounds are
// the same, it stays one, so that a busy moment of the machine does not hit one kind alone.
func (s Step) split(rounds int, some []string) Plan {
	if rounds <= s.Rounds {
		return Plan{s}
	}
	often, others := s, s
	often.Rounds, often.Subjects, others.Subjects = rounds, nil, nil
	for _, name := range s.Subjects {
		if slices.Contains(some, name) {
			often.Subjects = append(often.Subjects, name)
		} else {
			others.Subjects = append(others.Subjects, name)
		}
	}
	return Plan{often, others}
}
