package plan

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

// Options say what to measure.
type Options struct {
	// Sizes are the numbers of small objects to fill caches with, and LargeSizes those of large ones.
	Sizes, LargeSizes []int
	// Subjects are the caches, by name.
	Subjects []string
	// Experiments are those to make, by name; empty means all.
	Experiments []string
	// Rounds is how often everything is measured. What takes long is measured once: more than OnceAbove
	// objects, large ones, updates and reads.
	Rounds int
	// Updates is how many updates to make, and UpdateObjects among how many objects.
	Updates, UpdateObjects int
	// ListObjects is how many objects are listed, ReadObjects how many are read, DumpObjects how many are
	// dumped.
	ListObjects, ReadObjects, DumpObjects int
	// Budget is the processor time for each small operation.
	Budget time.Duration
}

// OnceAbove is the number of objects above which one round has to do, and only the subjects that matter most
// are measured.
const OnceAbove = 100_000

// updateRate is how many updates are made in a second: what two cores do with ease, so that latency is not
// that of a queue before the server.
const updateRate = 200

// Default returns the options that the report is made with.
func Default() Options {
	return Options{
		Sizes:      []int{1_000, 10_000, 50_000, 200_000},
		LargeSizes: []int{10_000},
		Subjects:   subject.Names(subject.All()),
		Rounds:     3,
		Updates:    800, UpdateObjects: 10_000,
		ListObjects: 10_000, ReadObjects: 100_000, DumpObjects: 10_000,
		Budget: 400 * time.Millisecond,
	}
}

// CI returns the options of the short run that guards promises.
func CI() Options {
	return Options{
		Sizes:    []int{5_000},
		Subjects: subject.Names(subject.All()),
		Rounds:   3,
		Updates:  300, UpdateObjects: 5_000,
		ListObjects: 5_000, ReadObjects: 5_000, DumpObjects: 3_000,
		Budget: 200 * time.Millisecond,
	}
}

// New plans a run.
func New(o Options) (Plan, error) {
	if len(o.Sizes) == 0 || o.Rounds < 1 || o.Updates < 1 {
		return nil, errors.New("there have to be sizes, and at least one round and one update")
	}
	if o.Updates > o.UpdateObjects {
		return nil, fmt.Errorf("%d updates of different objects need more than %d objects", o.Updates, o.UpdateObjects)
	}
	known := []string{experiment.Sync, experiment.SyncList, experiment.UpdatesKey, experiment.UpdatesRead, experiment.Reads,
		experiment.DumpJSON, experiment.DumpYAML, experiment.Decode, experiment.Paths}
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
		p = append(p, o.sync(Large, size, subjects))
	}
	p = slices.DeleteFunc(p, func(s Step) bool {
		wanted := len(o.Experiments) == 0 || slices.Contains(o.Experiments, s.Experiment)
		return !wanted || len(s.Subjects) == 0
	})
	slices.SortStableFunc(p, func(a, b Step) int {
		if a.Size != b.Size {
			return map[string]int{Small: 0, Large: 1}[a.Size] - map[string]int{Small: 0, Large: 1}[b.Size]
		}
		return a.Objects - b.Objects
	})
	return p, nil
}

func (o Options) small(subjects []subject.Subject) Plan {
	var p Plan
	for _, size := range o.Sizes {
		p = append(p, o.sync(Small, size, subjects))
	}
	lists := o.sync(Small, o.ListObjects, subjects)
	lists.Experiment = experiment.SyncList
	lists.Subjects = nil
	for _, s := range subjects {
		if s.Scales && s.Bodies {
			lists.Subjects = append(lists.Subjects, s.Name)
		}
	}
	p = append(p, lists)
	bodies := slices.DeleteFunc(slices.Clone(subjects), func(s subject.Subject) bool { return !s.Bodies })
	updates := Step{
		Experiment: experiment.UpdatesKey, Size: Small, Objects: o.UpdateObjects, Rounds: 1,
		Subjects: subject.Names(subjects), Events: o.Updates, Rate: updateRate,
	}
	p = append(p, updates)
	updates.Experiment, updates.Subjects = experiment.UpdatesRead, subject.Names(bodies)
	p = append(p, updates)
	readers := slices.DeleteFunc(slices.Clone(subjects), func(s subject.Subject) bool {
		return !s.Bodies || s.Name == subject.ClientGoTrimmed // which reads as plain client-go does
	})
	p = append(p, Step{
		Experiment: experiment.Reads, Size: Small, Objects: o.ReadObjects, Rounds: 1,
		Subjects: subject.Names(readers), Budget: o.Budget,
	})
	for _, e := range []string{experiment.DumpJSON, experiment.DumpYAML} {
		p = append(p, Step{
			Experiment: e, Size: Small, Objects: o.DumpObjects, Rounds: o.Rounds,
			Subjects: []string{experiment.Kubectl, experiment.Ours},
		})
	}
	each := Step{Size: Small, Objects: slices.Min(o.Sizes), Rounds: o.Rounds, Budget: o.Budget}
	each.Experiment = experiment.Decode
	each.Subjects = []string{experiment.Stock, experiment.Ours, experiment.OursPacked}
	p = append(p, each)
	each.Experiment = experiment.Paths
	each.Subjects = []string{experiment.Stock, experiment.Ours}
	return append(p, each)
}

// sync plans to fill caches.
func (o Options) sync(size string, objects int, subjects []subject.Subject) Step {
	s := Step{Experiment: experiment.Sync, Size: size, Objects: objects, Rounds: o.Rounds}
	for _, candidate := range subjects {
		if objects <= OnceAbove && size == Small || candidate.Scales {
			s.Subjects = append(s.Subjects, candidate.Name)
		}
	}
	if objects > OnceAbove || size == Large {
		s.Rounds = 1
	}
	return s
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
		if size == Large {
			each *= largeFactor
		}
		seconds += sandboxStart + each*float64(objects)/1000
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
