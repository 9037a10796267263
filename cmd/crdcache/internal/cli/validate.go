package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/internal/naming"
)

type validateVerb struct {
	genericiooptions.IOStreams
	flags  session.ServerFlags
	crds   []string
	live   bool
	format string

	configs []string
	target  *session.Target // nil without --live and --crds
}

func newValidate(streams genericiooptions.IOStreams) *cobra.Command {
	o := &validateVerb{IOStreams: streams}
	cmd := &cobra.Command{
		Use:        "validate CONFIG... [flags]",
		SuggestFor: []string{"lint", "check"},
		Short:      "Check index configs, also against CRD schemas",
		Args:       session.AtLeastOne("config", "indexes.yaml"),
		RunE:       session.RunE(o.complete, o.run),
	}
	set := cmd.Flags()
	o.flags.Add(cmd)
	set.StringSliceVar(&o.crds, "crds", nil, "File or directory with CRDs. May be repeated.")
	set.BoolVar(&o.live, "live", false, "Compare with the CRDs of the cluster.")
	session.AddChoice(cmd, &o.format, "output", "o", "Output format: text (on stderr) or json (on stdout).",
		session.FormatText, session.FormatJSON)
	return cmd
}

func (o *validateVerb) complete(cmd *cobra.Command, args []string) (err error) {
	o.IOStreams, o.configs = o.flags.Streams(o.IOStreams), args
	switch {
	case len(o.crds) == 0 && cmd.Flags().Changed("crds"):
		return session.Usagef("--crds is empty: is a shell variable unset?")
	case o.live && len(o.crds) > 0:
		return session.Usagef("--crds and --live cannot be used together: use one of them")
	case o.live:
		o.target, err = o.flags.Target(cmd.Context(), o.IOStreams)
		return err
	}
	err = o.flags.RejectSourceFlags("without --live, which compares with the types of a cluster or of --from")
	if err == nil && len(o.crds) > 0 { // other objects are ignored without a warning
		streams := genericiooptions.IOStreams{In: o.In, ErrOut: io.Discard}
		o.target, err = o.flags.FileTarget(cmd.Context(), streams, o.crds...)
	}
	return err
}

// run checks the configs. The error has all findings.
func (o *validateVerb) run(ctx context.Context) error {
	config, err := o.parseConfigs(ctx)
	findings, ok := errors.AsType[*indexers.ConfigError](err)
	if err != nil && !ok {
		return err
	}
	var warnings []indexers.Diagnostic
	switch {
	case config != nil:
		warnings = slices.Concat(config.Warnings, o.warnOfManySeries(ctx, config))
	case findings != nil:
		warnings = findings.Warnings
	}
	if o.format == session.FormatJSON {
		return o.printJSON(findings, warnings)
	}
	for _, w := range warnings {
		fmt.Fprintf(o.ErrOut, "warning: %s\n", w.Text())
	}
	if findings != nil {
		return err
	}
	return o.printSummary(config)
}

// parseConfigs parses the configs and compares them with the schemas.
func (o *validateVerb) parseConfigs(ctx context.Context) (*indexers.Config, error) {
	sources := indexers.ReadSources(o.configs...)
	if o.target == nil {
		return indexers.Parse(sources...)
	}
	return indexers.CheckSources(indexers.CheckOptions{Cluster: o.live,
		Definitions: func(groups []string) ([]*crd.Definition, error) {
			return o.readDefinitions(ctx, groups)
		}}, sources...)
}

// readDefinitions returns the CRDs of the groups, which can be patterns, or all those of --crds.
func (o *validateVerb) readDefinitions(ctx context.Context, groups []string) ([]*crd.Definition, error) {
	ctx, cancel := o.target.WithTimeout(ctx)
	defer cancel()
	client, err := dynamicinformer.NewClient(o.target.Rest, nil)
	if err != nil {
		return nil, err
	}
	definitions, err := bind.Definitions(ctx, client, func(group string) bool {
		matches := func(text string) bool { return naming.Match(text, group) }
		return !o.live || slices.ContainsFunc(groups, matches)
	})
	if err != nil {
		return nil, o.target.Explain(ctx, err)
	}
	err = o.target.FilesErr([]string{crd.GVR.GroupResource().String()})
	if !o.live && err == nil && len(definitions) == 0 {
		err = fmt.Errorf("%w in %s", crd.ErrNoDefinitions, strings.Join(o.crds, ", "))
	}
	return definitions, err
}

func (o *validateVerb) printSummary(config *indexers.Config) error {
	indexes := 0
	for _, r := range config.Resources {
		indexes += len(r.Indexes)
	}
	comparison := "the paths were not compared with any schema, give --crds or --live for that"
	switch {
	case o.live:
		comparison = "compared with the cluster's types"
	case len(o.crds) > 0:
		comparison = "compared with the types in files"
	}
	_, err := fmt.Fprintf(o.Out, "valid: %s, %s; %s\n",
		naming.FormatCount(len(config.Resources), "resource"), naming.FormatCount(indexes, "index"), comparison)
	return err
}

type findingRecord struct {
	Severity string        `json:"severity"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Column   int           `json:"column"`
	Length   int           `json:"length"`
	Code     indexers.Code `json:"code"`
	Message  string        `json:"message"`
	Hint     string        `json:"hint,omitempty"`
}

// printJSON prints all findings. Its error only counts them.
func (o *validateVerb) printJSON(findings *indexers.ConfigError, warnings []indexers.Diagnostic) error {
	records, invalid := []findingRecord{}, error(nil)
	add := func(severity string, diagnostics []indexers.Diagnostic) {
		for _, d := range diagnostics {
			records = append(records, findingRecord{severity, d.File, d.Line, d.Column, d.Length, d.Code,
				d.Message, d.Hint})
		}
	}
	if findings != nil {
		add("error", findings.Diagnostics)
		invalid = &invalidError{findings}
	}
	add("warning", warnings)
	return errors.Join(session.WriteStructured(o.Out, session.FormatJSON, records), invalid)
}

// invalidError counts findings that were printed.
type invalidError struct{ findings *indexers.ConfigError }

func (e *invalidError) Error() string {
	return "the config is invalid: " + naming.FormatCount(len(e.findings.Diagnostics), "error")
}

// Unwrap returns the findings, which determine the exit code.
func (e *invalidError) Unwrap() error { return e.findings }

// metricSample is the number of objects of a type from which validate estimates the series of metrics.
const metricSample = 1000

// warnOfManySeries returns warnings about metrics with many series. It prints a warning if it cannot read a
// sample of a type.
func (o *validateVerb) warnOfManySeries(ctx context.Context, config *indexers.Config) []indexers.Diagnostic {
	var warnings []indexers.Diagnostic
	for _, r := range config.Resources {
		if !o.live || len(r.Metrics) == 0 {
			continue
		}
		resourceWarnings, err := o.resourceSeriesWarnings(ctx, r)
		if err != nil && !r.Optional {
			o.target.Warnf("the number of series of the metrics of %q is unknown: %v", r.Name, err)
		}
		// a pattern can match several types
		warnings = naming.AppendMissing(warnings, resourceWarnings...)
	}
	return warnings
}

// resourceSeriesWarnings checks the metrics of a resource with a sample of each of its types.
func (o *validateVerb) resourceSeriesWarnings(ctx context.Context,
	r *indexers.Resource) ([]indexers.Diagnostic, error) {
	ctx, cancel := o.target.WithTimeout(ctx)
	defer cancel()
	name, err := session.TypeName(r)
	if err != nil {
		return nil, err
	}
	types, err := o.target.Resolve(ctx, []string{name}, "list")
	if err != nil {
		return nil, err
	}
	client, err := dynamicinformer.NewClient(o.target.Rest, nil)
	if err != nil {
		return nil, err
	}
	var warnings []indexers.Diagnostic
	for _, t := range types {
		sample, total, err := readSample(ctx, client, t.GVR, r.Selectors)
		if err != nil {
			return warnings, o.target.Explain(ctx, err)
		}
		warnings = append(warnings, r.CheckMetricSeries(sample, total)...)
	}
	return warnings, nil
}

// readSample lists the first objects of a type. total is the number of all objects if the server reports it.
func readSample(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource,
	selectors indexers.Selectors) (sample []*unstructured.Unstructured, total int, err error) {
	options := metav1.ListOptions{Limit: metricSample / 2, LabelSelector: selectors.Labels,
		FieldSelector: selectors.Fields}
	for {
		page, err := client.Resource(gvr).List(ctx, options)
		if err != nil {
			return nil, 0, err
		}
		for i := range page.Items {
			sample = append(sample, &page.Items[i])
		}
		total = len(sample)
		if remaining := page.GetRemainingItemCount(); remaining != nil {
			total += int(*remaining)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" || len(sample) >= metricSample {
			return sample, total, nil
		}
	}
}
