package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// dumps writes what printing costs.
func dumps(b *strings.Builder, r *Result) {
	sections := []struct{ experiment, format string }{{experiment.DumpJSON, "json"}, {experiment.DumpYAML, "yaml"}}
	for _, s := range sections {
		for _, objects := range objectCounts(r, s.experiment, experiment.Small) {
			fmt.Fprintf(b, "## Printing %s objects as %s\n\n", commas(int64(objects)), s.format)
			fmt.Fprint(b, "The whole command, its output thrown away. The ratios are against kubectl.\n\n")
			base := experiment.Kubectl
			table{experiment: s.experiment, size: experiment.Small, objects: objects, rows: []row{
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
func small(b *strings.Builder, r *Result) {
	var rows []row
	for _, name := range []string{experiment.Stock, experiment.Ours, experiment.OursPacked} {
		rows = append(rows, row{name, title(name)})
	}
	base := experiment.Stock
	if has(r, experiment.Decode) {
		b.WriteString(`## Decoding

JSON to unstructured objects, complete with managedFields: one object at a time, and a list of 500 as the dynamic client
reads it. Packed objects are not decoded: they are checked, identified and kept as JSON, without managedFields.
CPU and allocations for each object.

`)
	}
	for _, size := range []string{experiment.Small, experiment.Large} {
		for _, objects := range objectCounts(r, experiment.Decode, size) {
			fmt.Fprintf(b, "Objects of %s:\n\n", map[string]string{experiment.Small: "2 KB", experiment.Large: "10 KB"}[size])
			table{experiment: experiment.Decode, size: size, objects: objects, rows: rows, columns: []column{
				{title: "object", metric: experiment.DecodeObject, base: base},
				{title: "allocations", metric: experiment.DecodeObjectAllocs, base: base},
				{title: "in a list", metric: experiment.DecodeList, base: base},
				{title: "allocations", metric: experiment.DecodeListAllocs, base: base},
			}}.write(b, r)
		}
	}
	for _, objects := range objectCounts(r, experiment.Paths, experiment.Small) {
		b.WriteString("## JSONPath\n\nCPU for each object. The first table is over decoded objects: `.spec.issuerRef.name` of one object again and\n" +
			"again, and of 500 in turn, which have to come from memory first; `.spec.dnsNames[*]` and\n" +
			"`.status.conditions[?(@.type==\"Ready\")].status` of 500 in turn. The second is eight paths over an object's JSON of\n" +
			"2 KB, which client-go's package can only evaluate after decoding.\n\n")
		t := table{experiment: experiment.Paths, size: experiment.Small, objects: objects, rows: rows}
		t.columns = []column{
			{title: "field, one object", metric: experiment.PathOne, base: base},
			{title: "allocations", metric: experiment.PathOneAllocs, base: base},
			{title: "field", metric: experiment.PathField, base: base},
			{title: "list", metric: experiment.PathList, base: base},
			{title: "filter", metric: experiment.PathFilter, base: base},
			{title: "allocations", metric: experiment.PathFilterAllocs, base: base},
		}
		t.write(b, r)
		t.columns = []column{
			{title: "eight paths over JSON", metric: experiment.PathEight, base: base},
			{title: "allocations", metric: experiment.PathEightAllocs, base: base},
		}
		t.write(b, r)
	}
}

// queries writes what asking costs.
func queries(b *strings.Builder, r *Result) {
	for i, objects := range objectCounts(r, experiment.Queries, experiment.Small) {
		if i == 0 {
			b.WriteString("## Queries\n\nCPU for each query of generated objects of 1 KB, which are packed: ten by an index, read, in no order and in that of\n" +
				"another index; their keys alone; the first ten of all in that order; and the ten references that dangle.\n\n")
		}
		fmt.Fprintf(b, "%s objects:\n\n", commas(int64(objects)))
		table{experiment: experiment.Queries, size: experiment.Small, objects: objects, rows: []row{{experiment.Ours, title(experiment.Ours)}}, columns: []column{
			{title: "ten", metric: experiment.QueryFew},
			{title: "ten in order", metric: experiment.QuerySorted},
			{title: "ten keys", metric: experiment.QueryKeys},
			{title: "ten keys in order", metric: experiment.QuerySortedKeys},
			{title: "the first ten", metric: experiment.QueryFirst},
			{title: "what dangles", metric: experiment.QueryDangling},
		}}.write(b, r)
	}
}
