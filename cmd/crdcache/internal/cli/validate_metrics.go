package cli

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// metricSample is the number of objects of a type from which validate estimates the series of metrics.
const metricSample = 1000

// warnOfManySeries returns warnings about metrics with many series. It prints a warning if it cannot read a
// sample of a type.
func (o *validateVerb) warnOfManySeries(ctx context.Context, config *indexers.Config) []indexers.Diagnostic {
	var warnings []indexers.Diagnostic
	for _, r := range config.Resources {
		if o.target == nil || len(r.Metrics) == 0 {
			continue
		}
		resourceWarnings, err := o.resourceSeriesWarnings(ctx, r)
		if err != nil && !r.Optional {
			o.target.Warnf("the number of series of the metrics of %q is unknown: %v", r.Name, err)
		}
		for _, w := range resourceWarnings {
			if !slices.Contains(warnings, w) { // of several types that a pattern matches
				warnings = append(warnings, w)
			}
		}
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
