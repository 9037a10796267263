package run

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
	"github.com/crdcache/crdcache/internal/testkit/large"
)

// family returns the family of large objects that the step fills caches with, if it does. Its name is the step's size.
func (s Step) family() (large.Family, bool) {
	all := large.Families()
	i := slices.IndexFunc(all, func(f large.Family) bool { return f.Name == s.Size })
	if i < 0 {
		return large.Family{}, false
	}
	return all[i], true
}

// families plans to fill caches with large objects of several types.
func (o PlanOptions) families(subjects []subject.Subject) (Plan, error) {
	var names []string
	for _, s := range subjects {
		if s.Name == subject.ClientGo || s.Name == subject.PackedTrimmed || s.Name == subject.CompressedTrimmed || s.Name == subject.AdaptiveTrimmed {
			names = append(names, s.Name)
		}
	}
	var p Plan
	for _, name := range o.Families {
		step := Step{Experiment: experiment.Sync, Size: name, Objects: o.FamilyObjects, Rounds: 1, Subjects: names}
		if _, ok := step.family(); !ok {
			return nil, fmt.Errorf("there are no large objects called %q", name)
		}
		p = append(p, step)
	}
	return p, nil
}
