package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/plan"
	"github.com/crdcache/crdcache/bench/internal/result"
)

// dumps writes what printing costs.
func dumps(b *strings.Builder, r *result.Result) {
	sections := []struct{ experiment, format string }{{experiment.DumpJSON, "json"}, {experiment.DumpYAML, "yaml"}}
	for _, s := range sections {
		for _, objects := range objectCounts(r, s.experiment, plan.Small) {
			fmt.Fprintf(b, "## Printing %s objects as %s\n\n", commas(int64(objects)), s.format)
			fmt.Fprint(b, "The whole command, its output thrown away. The ratios are against kubectl.\n\n")
			base := experiment.Kubectl
			table{experiment: s.experiment, size: plan.Small, objects: objects, rows: []row{
				{experiment.Kubectl, "`kubectl get -A -o " + s.format + "`"},
				{experiment.Ours, "`crdcache dump -A -o " + s.format + "`"},
			}, columns: []column{
				{title: "CPU", metric: experiment.CPU, base: base},
				{title: "elapsed", metric: experiment.Wall, base: base},
				{title: "peak memory", metric: experiment.PeakRSS, base: base},
			}}.write(b, r)
		}
	}
}

// small writes what decoding and paths cost.
func small(b *strings.Builder, r *result.Result) {
	var rows []row
	for _, name := range []string{experiment.Stock, experiment.Ours, experiment.OursPacked} {
		rows = append(rows, row{name, title(name)})
	}
	base := experiment.Stock
	for _, objects := range objectCounts(r, experiment.Decode, plan.Small) {
		b.WriteString(`## Decoding

JSON to unstructured objects, complete with managedFields: one object at a time, and a list of 500 as the dynamic client
reads it. Packed objects are not decoded: they are checked, identified and kept as JSON, without managedFields.
CPU and allocations for each object.

`)
		table{experiment: experiment.Decode, size: plan.Small, objects: objects, rows: rows, columns: []column{
			{title: "object", metric: experiment.DecodeObject, base: base},
			{title: "allocations", metric: experiment.DecodeObjectAllocs, base: base},
			{title: "in a list", metric: experiment.DecodeList, base: base},
			{title: "allocations", metric: experiment.DecodeListAllocs, base: base},
		}}.write(b, r)
	}
	for _, objects := range objectCounts(r, experiment.Paths, plan.Small) {
		b.WriteString("## JSONPath\n\nCPU for each object. The first three columns are over decoded objects: `.spec.issuerRef.name`,\n" +
			"`.spec.dnsNames[*]` and `.status.conditions[?(@.type==\"Ready\")].status`. The last one is eight paths over the\n" +
			"object's JSON, which client-go's package can only evaluate after decoding.\n\n")
		table{experiment: experiment.Paths, size: plan.Small, objects: objects, rows: rows, columns: []column{
			{title: "field", metric: experiment.PathField, base: base},
			{title: "list", metric: experiment.PathList, base: base},
			{title: "filter", metric: experiment.PathFilter, base: base},
			{title: "eight paths over JSON", metric: experiment.PathEight, base: base},
			{title: "their allocations", metric: experiment.PathEightAllocs, base: base},
		}}.write(b, r)
	}
}
