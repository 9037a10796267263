package run

import (
	"slices"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// shards plans to share objects among replicas, with a server that sends them all and with one that does not.
func (o PlanOptions) shards(subjects []subject.Subject) Plan {
	step := Step{Experiment: experiment.Shard, Size: experiment.Small, Objects: o.ShardedObjects, Rounds: 1}
	if step.Objects == 0 {
		return nil
	}
	sends := step
	if slices.Contains(subject.Names(subjects), subject.ClientGo) {
		sends.Subjects = append(sends.Subjects, subject.ClientGo)
	}
	sends.Subjects = append(sends.Subjects, experiment.OnlyReplica, experiment.ClientReplica)
	step.Gates, step.Subjects = experiment.ShardingGate, []string{experiment.ServerReplica}
	return Plan{sends, step}
}
