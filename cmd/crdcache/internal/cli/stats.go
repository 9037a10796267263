package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/naming"
)

type statsVerb struct {
	streams      genericiooptions.IOStreams
	flags        session.ReadFlags
	storage      string
	keep         bool
	limitObjects int
	// recommendsLimits is set if --limit is given, also with 0.
	recommendsLimits bool
	format           string

	*session.Reader
}

func newStats(streams genericiooptions.IOStreams) *cobra.Command {
	o := &statsVerb{streams: streams}
	cmd := &cobra.Command{
		Use:        "stats TYPE... [flags]",
		SuggestFor: []string{"top", "count"},
		Short:      "Show the memory of caches and the values of indexes",
		Args:       session.AtLeastOne("type", "certificates.cert-manager.io"),
		RunE:       session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd, true)
	o.flags.AddSelectors(cmd.Flags())
	o.flags.AddCache(cmd)
	session.AddChoice(cmd, &o.storage, "storage", "",
		"Storage mode: packed, compressed, adaptive, object, metadata or none.",
		"packed", "compressed", "adaptive", "object", "metadata", "none")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "Estimate the memory with only the fields that --config reads.")
	cmd.Flags().IntVar(&o.limitObjects, "limit", 0,
		"Recommend memory limits for this number of objects; 0 means the cached ones.")
	session.AddOutput(cmd, &o.format, session.FormatText, session.FormatJSON)
	return cmd
}

func (o *statsVerb) complete(cmd *cobra.Command, args []string) error {
	if o.limitObjects < 0 || o.limitObjects > maxLimitObjects {
		return session.Usagef("--limit is %d: give 0 for the cached objects, or at most %d",
			o.limitObjects, maxLimitObjects)
	}
	var options dynamicinformer.ResourceOptions
	err := options.Storage.Mode.UnmarshalText([]byte(o.storage))
	if err != nil {
		return err
	}
	switch options.Storage.Mode {
	case dynamicinformer.StorageCompressed, dynamicinformer.StorageAdaptive:
		options.Storage.Compression = s2.New()
	}
	options.Prune.Presets = []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}
	if o.Reader, err = o.flags.Reader(cmd.Context(), args, options, o.streams); err != nil {
		return err
	}
	o.WholeObjects = o.keep
	switch {
	case o.keep && !o.Config.IsSet:
		return session.Usagef("--keep needs --config: the indexes and references of the config select the fields")
	case o.keep && options.Storage.Mode == dynamicinformer.StorageMetadata:
		return session.Usagef("--keep needs complete objects: use another --storage than metadata")
	}
	o.recommendsLimits = cmd.Flags().Changed("limit")
	if options.Storage.Mode == dynamicinformer.StorageNone && (o.keep || o.recommendsLimits ||
		o.Config.IsSet) {
		return session.Usagef("--keep, --limit and --config need stored objects: use another --storage than none")
	}
	return nil
}

// statsReport is the JSON form of the statistics of a type.
type statsReport struct {
	Type        string        `json:"type"`
	Namespace   string        `json:"namespace,omitempty"` // the only one that was read
	Storage     string        `json:"storage"`
	Objects     int           `json:"objects"`
	Compressed  int           `json:"compressed,omitempty"`
	SyncTime    string        `json:"syncTime"`
	Bytes       int64         `json:"bytes"`
	ObjectBytes int64         `json:"objectBytes"`
	TableBytes  int64         `json:"tableBytes"`
	Indexes     []indexReport `json:"indexes"`
	Keep        *keepEstimate `json:"keep,omitempty"`
	Limits      *memoryLimits `json:"limits,omitempty"`
}

// keepEstimate compares packed objects with the same objects reduced to some fields.
type keepEstimate struct {
	Fields []string `json:"fields"`
	// ObjectBytes and KeptObjectBytes are the bytes of an average object.
	ObjectBytes     int `json:"objectBytes"`
	KeptObjectBytes int `json:"keptObjectBytes"`
}

type indexReport struct {
	Name    string `json:"name"`
	Values  int    `json:"values"`
	Entries int    `json:"entries"`
	// Objects counts the objects with a value.
	Objects int          `json:"objects"`
	Bytes   int64        `json:"bytes"`
	Top     []valueCount `json:"top,omitempty"`
	// Skipped counts the skipped objects by the keys of skipReasons.
	Skipped map[string]uint64 `json:"skipped,omitempty"`
	// WithoutValue are the keys of the first objects without a value, for an index with "missing: Report".
	WithoutValue []string `json:"reported,omitempty"`
}

// skipReasons are the reasons why an index skips objects (see indexers.Stats) and their descriptions.
var skipReasons = [][2]string{{"missing", "missing"}, {"type", "of another type"}, {"limit", "beyond a limit"},
	{"when", "excluded by its condition"}}

type valueCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// run syncs the types and reports on the synced ones.
func (o *statsVerb) run(ctx context.Context) error {
	var started time.Time
	return o.Sync(ctx, session.SyncCallbacks{
		BeforeSync: func(*session.Types) error {
			started = time.Now()
			return nil
		},
		AfterSync: func(ctx context.Context, _ *session.Types, synced []session.Cache) error {
			reports := []statsReport{}
			for _, c := range synced {
				r, err := o.report(ctx, c)
				if err != nil {
					return session.ExplainQuery(err)
				}
				r.SyncTime = c.Informer.Status().Since.Sub(started).Round(time.Millisecond).String()
				reports = append(reports, r)
			}
			return o.print(reports)
		},
	})
}

// keepSample is the number of objects that --keep packs for its estimate.
const keepSample = 1000

func (o *statsVerb) report(ctx context.Context, c session.Cache) (statsReport, error) {
	declared, _, err := o.Declared(c.Resource)
	if err != nil {
		return statsReport{}, err
	}
	indexes := declared.Indexes
	if err := c.Informer.Compress(ctx); err != nil {
		return statsReport{}, err
	}
	s := c.Informer.Stats()
	r := statsReport{
		Type: c.Resource.String(), Namespace: o.NamespaceFor(c.Resource), Storage: s.Storage,
		Objects: s.Objects, Compressed: s.Compressed,
		Bytes: s.Bytes(), ObjectBytes: s.ObjectBytes, TableBytes: s.TableBytes,
		Indexes: []indexReport{},
	}
	if o.keep {
		kept := *declared
		kept.Keep.Paths = append([]string{}, kept.Keep.Paths...)
		r.Keep = &keepEstimate{Fields: kept.EffectiveKeep().Paths}
		if r.Keep.ObjectBytes, r.Keep.KeptObjectBytes, err = c.Informer.Snapshot().EstimateKeep(
			dynamicinformer.Keep{Paths: r.Keep.Fields}, keepSample); err != nil {
			return r, err
		}
	}
	if o.recommendsLimits && r.Objects > 0 {
		count := float64(r.Objects)
		r.Limits = recommendLimits(float64(r.Bytes)/count, cmp.Or(o.limitObjects, r.Objects))
	}
	if c.Informer.Snapshot().Err() != nil { // --storage none has no indexes
		return r, nil
	}
	querier := query.New(bind.ForInformer(c.Informer), indexes...)
	indexReports, err := reportSkipped(ctx, c, indexes)
	if err != nil {
		return r, err
	}
	for _, x := range s.Indexes {
		indexReport := indexReports[x.Name]
		indexReport.Name, indexReport.Values, indexReport.Entries, indexReport.Bytes = x.Name, x.Values,
			x.Entries, x.Bytes
		if indexReport.Objects, err = querier.Count(ctx, query.Exists(x.Name),
			query.Options{AllowScan: true}); err != nil {
			return r, err
		}
		if indexReport.Top, err = topValues(ctx, querier, x.Name); err != nil {
			return r, err
		}
		if x.Name != cache.NamespaceIndex || c.Resource.Scope == discovery.Namespaced {
			r.Indexes = append(r.Indexes, indexReport)
		}
	}
	return r, nil
}

// reportSkipped returns a report for each index, with the objects that the index skipped.
func reportSkipped(ctx context.Context, c session.Cache,
	indexes []*indexers.Index) (map[string]indexReport, error) {
	stats, err := c.IndexStats(ctx, indexes)
	if err != nil {
		return nil, err
	}
	out := map[string]indexReport{}
	for i, index := range indexes {
		s := stats[i]
		skipped := map[string]uint64{"missing": s.SkippedMissing, "type": s.SkippedType, "limit": s.SkippedLimit,
			"when": s.SkippedWhen}
		maps.DeleteFunc(skipped, func(_ string, count uint64) bool { return count == 0 })
		out[index.Name] = indexReport{WithoutValue: s.Reported, Skipped: skipped}
	}
	return out, nil
}

func topValues(ctx context.Context, querier *query.Querier, index string) ([]valueCount, error) {
	values, err := querier.Values(ctx, index, query.All(), query.Options{AllowScan: true})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(values, func(a, b query.ValueCount) int { return b.Count - a.Count })
	var out []valueCount
	for _, v := range values[:min(len(values), maxListed)] {
		if v.Value == indexers.Null {
			v.Value = "(null)"
		}
		out = append(out, valueCount{v.Value, v.Count})
	}
	return out, nil
}

func (o *statsVerb) print(reports []statsReport) error {
	if o.format == session.FormatJSON && len(reports) > 0 { // otherwise no type was read
		return session.WriteStructured(o.Out, session.FormatJSON, reports)
	}
	out := bufio.NewWriter(o.Out)
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		o.printReport(out, r) // bufio keeps the first error for Flush
	}
	return out.Flush()
}

func (o *statsVerb) printReport(out *bufio.Writer, r statsReport) {
	namespace := ""
	if r.Namespace != "" {
		namespace = " in namespace " + r.Namespace
	}
	fmt.Fprintf(out, "%s: %s%s, %s in storage mode %s, synced in %s\n", r.Type, naming.FormatCount(r.Objects, "object"), namespace,
		sizeText(r.Bytes), r.Storage, r.SyncTime)
	if r.Objects == 0 {
		if o.recommendsLimits {
			fmt.Fprintln(out, "  cannot recommend memory limits: no objects are cached")
		}
		return
	}
	bytesPerObject := float64(r.Bytes) / float64(r.Objects)
	fmt.Fprintf(out, "  %.0f bytes per object; in total: objects %s, key table %s, indexes %s\n",
		bytesPerObject,
		sizeText(r.ObjectBytes), sizeText(r.TableBytes), sizeText(r.Bytes-r.ObjectBytes-r.TableBytes))
	if k := r.Keep; k != nil {
		fmt.Fprintf(out, "  with keep: objects of about %d instead of %d bytes, %s instead of %s (packed)\n",
			k.KeptObjectBytes, k.ObjectBytes, sizeText(int64(k.KeptObjectBytes*r.Objects)),
			sizeText(int64(k.ObjectBytes*r.Objects)))
		fmt.Fprintf(out, "    kept fields: %s\n", cmp.Or(strings.Join(k.Fields, ", "), "none besides names, labels and owners"))
	}
	if l := r.Limits; l != nil {
		fmt.Fprintf(out, "  for %d objects: memory budget %s, GOMEMLIMIT=%dMiB, container limit %dMi\n", l.Objects,
			sizeText(l.Budget), l.GoMemoryLimit>>20, l.ContainerLimit>>20)
	}
	for _, x := range r.Indexes {
		fmt.Fprintf(out, "  %s: %s in %d of %d objects, %s\n", x.Name, naming.FormatCount(x.Values, "value"), x.Objects,
			r.Objects, sizeText(x.Bytes))
		for _, v := range x.Top {
			value := cmp.Or(print.Printable(v.Value), `""`)
			fmt.Fprintf(out, "    %7d %s\n", v.Count, print.Truncate(value, maxValueLength))
		}
		printProblems(out, x)
	}
}

// maxValueLength bounds a printed value, in characters.
const maxValueLength = 32

// maxListed bounds the values and objects in a line about problems.
const maxListed = 5

// printProblems prints the skipped objects and the objects without a value.
func printProblems(out *bufio.Writer, x indexReport) {
	var parts []string
	for _, reason := range skipReasons {
		if count := x.Skipped[reason[0]]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, reason[1]))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(out, "    skipped: %s\n", strings.Join(parts, ", "))
	}
	if len(x.WithoutValue) > 0 {
		listed, more := x.WithoutValue[:min(len(x.WithoutValue), maxListed)], ""
		if len(listed) < len(x.WithoutValue) {
			more = " " + print.Ellipsis() // their number is unknown: the list is incomplete
		}
		fmt.Fprintf(out, "    without a value: %s%s\n", print.Printable(strings.Join(listed, ", ")), more)
	}
}

func sizeText(bytes int64) string {
	const step = 1024
	if bytes < step {
		return fmt.Sprintf("%d B", bytes)
	}
	value, prefixes := float64(bytes)/step, "KMGT"
	for ; value >= step && len(prefixes) > 1; value /= step {
		prefixes = prefixes[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, prefixes[0])
}

// memoryLimits are recommended limits, in bytes, of a program that caches a number of objects of a type.
type memoryLimits struct {
	Objects int `json:"objects"`
	// Budget is for Options.MemoryBudget: the cache at rest and a tenth of it.
	Budget int64 `json:"budget"`
	// GoMemoryLimit is for GOMEMLIMIT, and ContainerLimit for the container.
	GoMemoryLimit  int64 `json:"goMemoryLimit"`
	ContainerLimit int64 `json:"containerLimit"`
}

const maxLimitObjects = 1_000_000_000

// recommendLimits returns the limits for objects of objectBytes each, including the cache's table and
// indexes. A relist needs up to 1.4 times the memory of the cache;
// the garbage collector needs room beyond that.
func recommendLimits(objectBytes float64, objects int) *memoryLimits {
	const (
		mebibyte = 1 << 20
		// runtimeMemory is for goroutines, connections and buffers, and programMemory for the program's code.
		runtimeMemory, programMemory = 24 * mebibyte, 40 * mebibyte
	)
	cacheBytes := objectBytes * float64(objects)
	roundUp := func(bytes float64) int64 { return (int64(bytes)/mebibyte + 1) * mebibyte }
	limits := &memoryLimits{Objects: objects, Budget: roundUp(cacheBytes * 1.1),
		GoMemoryLimit: roundUp(cacheBytes*2 + runtimeMemory)}
	limits.ContainerLimit = roundUp(float64(limits.GoMemoryLimit)*1.1 + programMemory)
	return limits
}
