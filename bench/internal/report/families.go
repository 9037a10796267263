package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/internal/testkit/large"
)

// families writes what large objects of several types cost.
func families(b *strings.Builder, r *Result) {
	introduced := false
	for _, f := range large.Families() {
		for _, objects := range objectCounts(r, experiment.Sync, f.Name) {
			if !introduced {
				b.WriteString(`### Large objects of other types

Made up after what clusters have, no two the same, and sent by the synthetic server: pods of workloads with sidecars, which
are the most alike of each other, the reports of a policy engine, which are the least, and definitions, whose schemas are
the deepest. Packed mode keeps the text of objects, so what it gains depends on how much of an object is text: little
where few fields have long values, as in the Certificates above with their notes and a hundred names. For large objects, use adaptive or
compressed mode, which keep a tenth of the text.

`)
				introduced = true
			}
			fmt.Fprintf(b, "#### %s %s\n\n", commas(int64(objects)), f.Name)
			filled(experiment.Sync, f.Name, objects).write(b, r)
		}
	}
}
