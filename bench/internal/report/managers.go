package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// managers writes what the managers of controller-runtime cost.
func managers(b *strings.Builder, r *Result, folder string) {
	sections := []struct{ experiment, size, text string }{
		{experiment.ManageUnstructured, experiment.Small, "unstructured.Unstructured"},
		{experiment.ManageTyped, experiment.Small, "cert-manager's Certificate"},
		{experiment.ManageMetadata, experiment.Small, "metav1.PartialObjectMetadata"},
		{experiment.ManageTypes, experiment.Many, fmt.Sprintf("unstructured.Unstructured, %d types of %d objects, a controller for each", experiment.ManyTypes, experiment.ManyEach)},
	}
	title := "## Managers of controller-runtime\n\nFrom making the manager until each object has been reconciled, which is to get it once through the manager's client.\n" +
		"The same program in all rows but for `NewCache`; the ratios are against controller-runtime's cache. What work\nqueues cost is in all of them.\n\n"
	for _, s := range sections {
		for _, objects := range objectCounts(r, s.experiment, s.size) {
			if title != "" {
				b.WriteString(title)
				embed(b, r, folder, "manager-cpu", "manager-peak")
				title = ""
			}
			fmt.Fprintf(b, "%s objects as %s:\n\n", commas(int64(objects)), s.text)
			base := experiment.StockManager
			table{experiment: s.experiment, size: s.size, objects: objects, rows: []row{
				{experiment.StockManager, titles[experiment.StockManager]},
				{experiment.OursManager, titles[experiment.OursManager]},
				{experiment.CompressedManager, titles[experiment.CompressedManager]},
			}, columns: []column{
				{title: "CPU", metric: experiment.CPU, base: base},
				{title: "elapsed", metric: experiment.Wall, base: base},
				{title: "live heap per object", metric: experiment.HeapPerObject, base: base},
				{title: "peak memory", metric: experiment.PeakRSS, base: base},
			}}.write(b, r)
		}
	}
}
