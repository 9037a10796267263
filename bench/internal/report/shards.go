package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// shards writes what a replica costs that has its share of the objects.
func shards(b *strings.Builder, r *Result) {
	for i, objects := range objectCounts(r, experiment.Shard, experiment.Small) {
		if i == 0 {
			fmt.Fprintf(b, `## Replicas that share objects

From making the client of a replica until its cache is synced: crdcache, packed, without managedFields, and sharded by UID among
%d replicas. The server filters where it has the feature gate ShardedListAndWatch; elsewhere it sends everything, and the client
keeps its share. Received is counted at the connections, where most is compressed. Peak memory is that of the whole process with
the libraries of all subjects linked in; growth is that beyond what it has resident before it begins. In brackets: as many times as
one replica that has everything.

`, experiment.Replicas)
		}
		fmt.Fprintf(b, "### %s objects\n\n", commas(int64(objects)))
		base := experiment.OnlyReplica
		table{experiment: experiment.Shard, size: experiment.Small, objects: objects, rows: []row{
			{subject.ClientGo, title(subject.ClientGo) + ", of all"},
			{experiment.OnlyReplica, title(experiment.OnlyReplica)},
			{experiment.ServerReplica, title(experiment.ServerReplica)},
			{experiment.ClientReplica, title(experiment.ClientReplica)},
		}, columns: []column{
			{title: "objects", metric: experiment.Kept, base: base, of: true},
			{title: "received", metric: experiment.Received, base: base, of: true},
			{title: "CPU", metric: experiment.CPU, base: base, of: true},
			{title: "elapsed", metric: experiment.Wall, base: base, of: true},
			{title: "live heap", metric: experiment.LiveHeap, base: base, of: true},
			{title: "growth at the peak", metric: experiment.PeakGrowth, base: base, of: true},
			{title: "peak memory", metric: experiment.PeakRSS, base: base, of: true},
		}}.write(b, r)
	}
}
