package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// types writes what many types with few objects cost.
func types(b *strings.Builder, r *Result, folder string) {
	for i, count := range objectCounts(r, experiment.Types, experiment.Small) {
		if i == 0 {
			fmt.Fprintf(b, `## Many types

One cache for each of many types, with %d objects of 0.3 KB each and default options, on an API server of ours in another
process, which speaks TLS and HTTP/2 and compresses watch-lists as a kube-apiserver does. A type's memory is its live heap,
its stacks and its share of what the kernel holds for connections, after it has synced; resident memory is what the process
has for it once it has given back what it can. Idle CPU is the share of one core for all types together while nothing
happens but a bookmark on each watch every ten seconds.

`, experiment.ObjectsPerType)
			embed(b, r, folder, "types-memory", "types-cpu")
		}
		fmt.Fprintf(b, "### %s types\n\n", commas(int64(count)))
		base := subject.ClientGo
		table{experiment: experiment.Types, size: experiment.Small, objects: count, rows: caches(), columns: []column{
			{title: "CPU until synced", metric: experiment.CPU, base: base},
			{title: "elapsed", metric: experiment.Wall, base: base},
			{title: "memory of a type", metric: experiment.TypeMemory, base: base},
			{title: "of that stacks", metric: experiment.TypeStack, base: base},
			{title: "goroutines of a type", metric: experiment.TypeGoroutines, base: base},
			{title: "resident memory of a type", metric: experiment.TypeRSS, base: base},
			{title: "idle CPU, %", metric: experiment.IdleCPU, base: base},
		}}.write(b, r)
	}
}
