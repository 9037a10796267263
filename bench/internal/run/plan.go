package run

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// Plan is the steps of a run: all of one size of objects together, and with ever more objects, because a
// sandbox can be filled but not emptied.
type Plan []Step

// PlanOptions say what to measure.
type PlanOptions struct {
	// Sizes are the numbers of small objects to fill caches with, and LargeSizes those of large ones.
	Sizes, LargeSizes []int
	// Subjects are the caches, by name.
	Subjects []string
	// Experiments are those to make, by name; empty means all.
	Experiments []string
	// Rounds is how often everything is measured. What takes long is measured once: more than OnceAbove
	// objects, large ones, updates, reads, printing YAML, and from AllBelow objects on the subjects that matter less.
	// Printing JSON is measured twice at most.
	Rounds int
	// Updates is how many updates to make, and UpdateObjects among how many objects; Burst is how many arrive at once.
	Updates, UpdateObjects, Burst int
	// ListObjects is how many objects are listed, ReadObjects how many are read, DumpObjects how many are
	// dumped.
	ListObjects, ReadObjects, DumpObjects int
	// Budget is the processor time for each small operation.
	Budget time.Duration
}

const (
	// OnceAbove is the number of objects above which one round has to do, and only the subjects that matter most
	// are measured.
	OnceAbove = 100_000
	// AllBelow is the number of objects below which all subjects are measured in all rounds; above it one round has
	// to do for those that matter less.
	AllBelow = 10_000
)

// updateRate is how many updates are made in a second: what two cores do with ease, so that latency is not
// that of a queue before the server.
const updateRate = 200

// DefaultPlanOptions returns the options that the report is made with.
func DefaultPlanOptions() PlanOptions {
	return PlanOptions{
		Sizes:      []int{1_000, 10_000, 50_000, 200_000},
		LargeSizes: []int{10_000},
		Subjects:   subject.Names(subject.All()),
		Rounds:     3,
		Updates:    600, UpdateObjects: 10_000,
		Burst: 2_000, ListObjects: 10_000, ReadObjects: 100_000, DumpObjects: 50_000,
		Budget: 400 * time.Millisecond,
	}
}

// CIPlanOptions returns the options of the short run that guards promises.
func CIPlanOptions() PlanOptions {
	return PlanOptions{
		Sizes:    []int{5_000},
		Subjects: subject.Names(subject.All()),
		Rounds:   3,
		Updates:  300, UpdateObjects: 5_000,
		Burst: 1_000, ListObjects: 5_000, ReadObjects: 5_000, DumpObjects: 3_000,
		Budget: 200 * time.Millisecond,
	}
}

// NewPlan plans a run.
func NewPlan(o PlanOptions) (Plan, error) {
	if len(o.Sizes) == 0 || o.Rounds < 1 || o.Updates < 1 {
		return nil, errors.New("there have to be sizes, and at least one round and one update")
	}
	if most := max(o.Updates, o.Burst); most > o.UpdateObjects {
		return nil, fmt.Errorf("%d updates of different objects need more than %d objects", most, o.UpdateObjects)
	}
	known := []string{experiment.Sync, experiment.SyncList, experiment.UpdatesKey, experiment.UpdatesRead, experiment.BurstKey,
		experiment.BurstRead, experiment.Reads, experiment.DumpJSON, experiment.DumpYAML, experiment.Decode, experiment.Paths, experiment.Queries}
	for _, name := range o.Experiments {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no experiment %q; there are: %q", name, known)
		}
	}
	subjects, err := subject.Find(o.Subjects)
	if err != nil {
		return nil, err
	}
	p := o.small(subjects)
	for _, size := range o.LargeSizes {
		p = append(p, o.sync(experiment.Large, size, subjects)...)
	}
	if len(o.LargeSizes) > 0 {
		p = append(p, o.decode(experiment.Large, slices.Min(o.LargeSizes)))
	}
	p = slices.DeleteFunc(p, func(s Step) bool {
		wanted := len(o.Experiments) == 0 || slices.Contains(o.Experiments, s.Experiment)
		return !wanted || len(s.Subjects) == 0
	})
	slices.SortStableFunc(p, func(a, b Step) int {
		if a.Size != b.Size {
			return map[string]int{experiment.Small: 0, experiment.Large: 1}[a.Size] - map[string]int{experiment.Small: 0, experiment.Large: 1}[b.Size]
		}
		return a.Objects - b.Objects
	})
	return p, nil
}

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
	bodies := slices.DeleteFunc(slices.Clone(subjects), func(s subject.Subject) bool { return !s.Bodies })
	updates := Step{
		Experiment: experiment.UpdatesKey, Size: experiment.Small, Objects: o.UpdateObjects, Rounds: 1,
		Subjects: subject.Names(subjects), Events: o.Updates, Rate: updateRate,
	}
	p = append(p, updates)
	updates.Experiment, updates.Subjects = experiment.UpdatesRead, subject.Names(bodies)
	p = append(p, updates)
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
		if size <= OnceAbove {
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

// sync plans to fill caches: the subjects that matter, and where that does not take too long the others.
func (o PlanOptions) sync(size string, objects int, subjects []subject.Subject) Plan {
	main := Step{Experiment: experiment.Sync, Size: size, Objects: objects, Rounds: o.Rounds}
	if objects > OnceAbove || size == experiment.Large {
		main.Rounds = 1
	}
	others := main
	if objects >= AllBelow {
		others.Rounds = 1
	}
	for _, s := range subjects {
		switch {
		case s.Scales && !(objects > OnceAbove && s.Name == subject.Packed): // which grows as it does without managed fields
			main.Subjects = append(main.Subjects, s.Name)
		case objects <= OnceAbove && size == experiment.Small:
			others.Subjects = append(others.Subjects, s.Name)
		}
	}
	if main.Rounds == others.Rounds { // in turn, so that a busy moment of the machine does not hit one kind alone
		main.Subjects = append(main.Subjects, others.Subjects...)
		return Plan{main}
	}
	return Plan{main, others}
}

// Estimate is about how long the run takes.
func (p Plan) Estimate() time.Duration {
	seconds := 0.0
	most := map[string]int{}
	for _, s := range p {
		seconds += s.estimate()
		most[s.Size] = max(most[s.Size], s.Objects)
	}
	for size, objects := range most {
		each := fillPer1000
		if size == experiment.Large {
			each *= largeFactor
		}
		seconds += sandboxStart + each*float64(objects)/1000
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
