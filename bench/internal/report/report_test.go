package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

func TestTable(t *testing.T) {
	r := &Result{}
	add := func(who string, metrics map[string]float64) { r.Add("e", "small", 10, who, metrics) }
	add("base", map[string]float64{"cpu_s": 10, "wall_s": 4, "object_allocs": 8})
	add("us", map[string]float64{"cpu_s": 2, "wall_s": 5, "object_allocs": 0})
	add("partly", map[string]float64{"cpu_s": 20, "floor_s": 3})
	r.Add("e", "small", 11, "other", map[string]float64{"cpu_s": 1})
	var b strings.Builder
	written := table{experiment: "e", size: "small", objects: 10,
		rows: []row{{"base", "the base"}, {"us", "us"}, {"other", "measured elsewhere"}, {"partly", "partly"}},
		columns: []column{
			{title: "CPU", metric: "cpu_s", base: "base"},
			{title: "nobody has it", metric: "heap_b"},
			{title: "elapsed", metric: "wall_s", base: "base", of: true},
			{title: "allocations", metric: "object_allocs", base: "base"},
			{title: "less", metric: "wall_s", base: "base", less: Key{Experiment: "e", Subject: "partly", Metric: "floor_s"}},
		},
	}.write(&b, r)
	const want = `|  | CPU | elapsed | allocations | less |
|---|---:|---:|---:|---:|
| the base | 10.0 s | 4.00 s | 8.00 | 1.00 s |
| us | 2.00 s (5.00×) | 5.00 s (1.25×) | 0 | 2.00 s (0.50×) |
| partly | 20.0 s (0.50×) | – | – | – |

`
	if diff := cmp.Diff(want, b.String()); diff != "" || !written {
		t.Errorf("written is %v; the table (-want +got):\n%s", written, diff)
	}
	b.Reset()
	if (table{experiment: "e", rows: []row{{"us", "us"}}}).write(&b, r) || b.Len() > 0 {
		t.Errorf("a table without figures writes %q", b.String())
	}
}

// TestMarkdown checks that every figure of a complete result gets into the report, and says what is not there.
func TestMarkdown(t *testing.T) {
	r := &Result{
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Noise:   &Noise{Load: 0.25, Others: 0.015},
		Machine: Machine{CPU: "a processor", Cores: 2, Kubernetes: "v1.2.3"},
	}
	r.Failures = []string{"sync of nobody: it broke\nwith details"}
	r.Add(experiment.Sync, experiment.Small, 1_000, subject.ClientGo, map[string]float64{experiment.CPU: 1, experiment.CPUPerObject: 1000})
	r.Add(experiment.Sync, experiment.Small, 1_000, subject.ClientGo, map[string]float64{experiment.CPU: 2, experiment.CPUPerObject: 2000})
	r.Add(experiment.Sync, experiment.Small, 2_000, subject.ClientGo, map[string]float64{experiment.CPUPerObject: 777})
	r.Add(experiment.Sync, experiment.Large, 1_000, subject.Stream, map[string]float64{experiment.Wall: 33})
	r.Add(experiment.SyncList, experiment.Small, 1_000, subject.ClientGo, map[string]float64{experiment.PeakRSS: 22 << 20})
	r.Add(experiment.UpdatesKey, experiment.Small, 1_000, subject.Stream, map[string]float64{experiment.LatencyP99: 44})
	r.Add(experiment.Reads, experiment.Small, 1_000, subject.ClientGo, map[string]float64{experiment.GetHot: 55, experiment.IndexPause: 66})
	r.Add(experiment.DumpYAML, experiment.Small, 1_000, experiment.Ours, map[string]float64{experiment.PeakRSS: 77 << 20})
	r.Add(experiment.BurstKey, experiment.Small, 1_000, subject.Stream, map[string]float64{experiment.CPUPerEvent: 9})
	r.Add(experiment.BurstRead, experiment.Small, 1_000, subject.ClientGo, map[string]float64{experiment.CPUPerEvent: 45.5})
	r.Add(experiment.Decode, experiment.Large, 1_000, experiment.Ours, map[string]float64{experiment.DecodeObject: 111})
	r.Add(experiment.Decode, experiment.Small, 1_000, experiment.Ours, map[string]float64{experiment.DecodeObject: 88})
	r.Add(experiment.ManageTyped, experiment.Small, 1_000, experiment.OursManager, map[string]float64{experiment.CPU: 12.3})
	r.Add(experiment.ManageTypes, experiment.Many, 6_000, experiment.StockManager, map[string]float64{experiment.PeakRSS: 123 << 20})
	r.Add(experiment.Restart, experiment.Small, 1_000, subject.Packed, map[string]float64{experiment.Received: 1 << 20})
	r.Add(experiment.Restart, experiment.Small, 1_000, experiment.Unchanged, map[string]float64{experiment.Received: 1 << 15})
	r.Add(experiment.Restart, experiment.Many, 6_000, experiment.Unchanged, map[string]float64{experiment.Readable: 0.135})
	r.Add(experiment.Paths, experiment.Small, 1_000, experiment.Ours, map[string]float64{experiment.PathEight: 99})
	for objects, heap := range map[int]float64{10_000: 1_111, 1_000_000: 1_222} {
		r.Add(experiment.Scale, experiment.Small, objects, subject.PackedTrimmed, map[string]float64{experiment.HeapPerObject: heap})
	}
	r.Add(experiment.Scale, experiment.Small, 1_000_000, subject.CompressedTrimmed, map[string]float64{experiment.RelistPeak: 1.25})
	r.Add(experiment.LatencyFast, experiment.Small, 10_000, subject.ClientGo, map[string]float64{experiment.LatencyP999: 8.76})
	r.Add(experiment.Sync, "pods", 3_000, subject.ClientGo, map[string]float64{experiment.HeapPerObject: 54_321})
	r.Add(experiment.Shard, experiment.Small, 100_000, experiment.OnlyReplica, map[string]float64{experiment.Received: 80 << 20})
	r.Add(experiment.Shard, experiment.Small, 100_000, experiment.ServerReplica, map[string]float64{experiment.Received: 21 << 20})
	text := markdown(r, "charts")
	for _, want := range []string{
		"2 January 2026", "#### 3,000 pods", "54,321 B", "a processor", "v1.2.3",
		"### 1,000 objects\n", "### 1,000 objects, large", "1.50 s", "777 µs", "33.0 s", "### 1,000 objects, listed", "22.0 MiB", "44.0 ms", "55.0 ns", "66.0 ms",
		"12.3 s", "300 types of 20 objects", "123 MiB", "77.0 MiB", "88.0 ns", "99.0 ns", "111 ns", "45.5 µs", "36.5 µs", "load average 0.25 before", "## Up to 1,000,000 objects", "| 1,111 B | 1,222 B | 1.10× |", "| – | 1.25× | – |",
		"### 5,000 updates a second, 10,000 objects", "8.76 ms", "took 1.5 %", "| client CPU until synced | 2 | 66.7 % | 66.7 % |", "| 32,768 B (32.0×) |", "### 6,000 objects of 300 types, 20 of each", "135 ms", "- sync of nobody: it broke\n",
		"### 100,000 objects\n", "| one of 4 replicas, the server filters | 21.0 MiB (0.26×) |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if empty := markdown(&Result{}, "charts"); strings.Contains(empty, "## Filling") || strings.Contains(empty, "## Following") {
		t.Errorf("the report of nothing has sections:\n%s", empty)
	}
	if strings.Contains(text, "with details") {
		t.Error("the report has more than the first line of a failure")
	}
}

func TestOutcomes(t *testing.T) {
	p := Promise{What: "speed", Who: subject.Stream, Against: "kubectl", Target: 10, Margin: 4}
	fixed := Promise{Required: true, What: "pause", Who: "us", Absolute: true, AtMost: true, Target: 10, Over: Key{Metric: "index_pause_ms"}}
	limited := Promise{What: "size", Who: "us", Against: "us", Flat: true, AtMost: true, Target: 1.15}
	outcomes := []Outcome{
		{Promise: p, Measured: true, Ratio: 12, Met: true, Objects: 5_000},
		{Promise: p, Measured: true, Ratio: 3, Broken: true, Objects: 5_000},
		{Promise: limited, Measured: true, Ratio: 1.2, Objects: 5_000},
		{Promise: limited},
		{Promise: fixed, Measured: true, Ratio: 4.5, Met: true, Objects: 5_000},
	}
	var text, markdown strings.Builder
	WriteOutcomes(&text, outcomes)
	promises(&markdown, outcomes)
	const wantText = `yes      speed, bytes of the stream alone against kubectl: promised ≥ 10.0×, measured 12.0× (CI fails < 4.00×)
no       speed, bytes of the stream alone against kubectl: promised ≥ 10.0×, measured 3.00× (CI fails < 4.00×)
no       size, us against itself with 10,000 objects: promised ≤ 1.15×, measured 1.20×
unknown  size, us against itself with 10,000 objects: promised ≤ 1.15×, measured –
yes      pause, us against –: promised ≤ 10.0 ms, measured 4.50 ms
`
	if diff := cmp.Diff(wantText, text.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	const wantRows = `| speed | bytes of the stream alone | kubectl | ≥ 10.0× | 12.0× | 5,000 | yes | < 4.00× |
| speed | bytes of the stream alone | kubectl | ≥ 10.0× | 3.00× | 5,000 | no | < 4.00× |
| size | us | itself with 10,000 objects | ≤ 1.15× | 1.20× | 5,000 | no | – |
| size | us | itself with 10,000 objects | ≤ 1.15× | – | – | unknown | – |
`
	if want := "| pause | us | – | ≤ 10.0 ms | 4.50 ms | 5,000 | yes | – |\n\nThese"; !strings.Contains(markdown.String(), want) {
		t.Errorf("Markdown is\n%swant\n%s", markdown.String(), want)
	}
	if !strings.HasSuffix(markdown.String(), wantRows+"\n") {
		t.Errorf("Markdown is\n%swant the rows\n%s", markdown.String(), wantRows)
	}
}
