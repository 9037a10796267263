package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// WriteMarkdown writes the report of a result to a file, in Markdown, and its charts to the folder beside it that has the
// file's name without the ending.
func WriteMarkdown(path string, r *Result) error {
	folder := strings.TrimSuffix(path, filepath.Ext(path))
	if err := writeCharts(folder, r); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(markdown(r, filepath.Base(folder))), 0o666)
}

// markdown returns the report, whose charts are in folder.
func markdown(r *Result, folder string) string {
	var b strings.Builder
	intro(&b, r)
	promises(&b, Judge(r))
	syncs(&b, r, folder)
	families(&b, r)
	lists(&b, r)
	growth(&b, r, folder)
	scales(&b, r, folder)
	updates(&b, r, folder)
	latencies(&b, r, folder)
	reads(&b, r)
	types(&b, r, folder)
	restarts(&b, r)
	managers(&b, r, folder)
	shards(&b, r)
	dumps(&b, r)
	small(&b, r)
	queries(&b, r)
	noise(&b, r)
	failures(&b, r)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func intro(b *strings.Builder, r *Result) {
	m := r.Machine
	fmt.Fprintf(b, `# Benchmarks

crdcache beside client-go, controller-runtime and kubectl, all measured in one run on one machine against one real
API server. `+"`make bench`"+` repeats it and writes this page; all figures are in [benchmarks.json](benchmarks.json).

| | |
|---|---|
| date | %s; the run took %s |
| crdcache | %s |
| machine | %s, %d cores, %s of memory, %s %s (%s) |
| what else it did | %s |
| Go | %s, default settings |
| API server | kube-apiserver %s and etcd, on the same machine and the same cores |
| peers | client-go %s, controller-runtime %s |
| objects | cert-manager Certificates, with status and managedFields: 2 KB each, or 10 KB where it says large |

`, r.Started.Format("2 January 2006"), r.Took, orUnknown(m.Commit), orUnknown(m.CPU), m.Cores, byteCount(float64(m.MemoryBytes)),
		m.OS, m.Kernel, m.Arch, besidesThis(r.Noise), m.Go, orUnknown(m.Kubernetes), orUnknown(m.ClientGo), orUnknown(m.ControllerRuntime))
	b.WriteString(`**How to read it.** Each figure was measured in a process of its own and is the median of its rounds, in which the subjects
take turns. (Not the least: the collector's share is a part of the cost, and falls on some rounds more than on others.)
Quantiles of latencies are those of all rounds' updates together. A ratio in
brackets says how many times less than client-go's dynamicinformer, unless the heading says otherwise; below 1 it
is more. CPU is the time of all threads of the client process, user and system, garbage collection included. The
server works on the same cores, so elapsed time is mostly the server's, and is compared with a client that
only reads the bytes.

`)
}

// besidesThis says what happened on the machine besides the run.
func besidesThis(n *Noise) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprintf("load average %.2f before the run; other processes took %.1f %% of the cores' time during it, other machines %.1f %%",
		n.Load, 100*n.Others, 100*n.Stolen)
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// has reports whether there are figures of any of the experiments.
func has(r *Result, experiments ...string) bool {
	return slices.ContainsFunc(r.Figures, func(f Figure) bool { return slices.Contains(experiments, f.Experiment) })
}

// objectCounts returns the numbers of objects of an experiment, ascending.
func objectCounts(r *Result, experiment, size string) []int {
	var counts []int
	for _, f := range r.Figures {
		if f.Experiment == experiment && f.Size == size && !slices.Contains(counts, f.Objects) {
			counts = append(counts, f.Objects)
		}
	}
	slices.Sort(counts)
	return counts
}

func failures(b *strings.Builder, r *Result) {
	if len(r.Failures) == 0 {
		return
	}
	b.WriteString("## Not measured\n\n")
	for _, failure := range r.Failures {
		first, _, _ := strings.Cut(failure, "\n")
		fmt.Fprintf(b, "- %s\n", first)
	}
}
