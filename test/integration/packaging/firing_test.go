package packaging_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/util/annotations"
)

// alertTest is a test of alerts_test.yaml, in the format of "promtool test rules".
type alertTest struct {
	Name     string
	Interval string
	Input    []struct{ Series, Values string } `json:"input_series"`
	Rules    []struct {
		At       string          `json:"eval_time"`
		Alert    string          `json:"alertname"`
		Expected []expectedAlert `json:"exp_alerts"`
	} `json:"alert_rule_test"`
}

type expectedAlert struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

func readAlertTests(t *testing.T) []alertTest {
	t.Helper()
	var file struct {
		RuleFiles []string `json:"rule_files"`
		Interval  string   `json:"evaluation_interval"`
		Tests     []alertTest
	}
	parse(t, "alerts_test.yaml", &file)
	if want := monitoring + "alerts.yaml"; file.Interval != "1m" || !slices.Equal(file.RuleFiles, []string{want}) {
		t.Fatalf("the tests evaluate %q each %s, want %s each 1m", file.RuleFiles, file.Interval, want)
	}
	return file.Tests
}

// TestAlerts runs the tests of the alerts with Prometheus' engine. "make promtool" runs the same file with
// promtool, which takes minutes to build.
func TestAlerts(t *testing.T) {
	if _, errs := rulefmt.ParseFile(monitoring+"alerts.yaml", false, model.UTF8Validation,
		parser.NewParser(parser.Options{}), slog.Default()); len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}
	var rules ruleFile
	parse(t, monitoring+"alerts.yaml", &rules)
	for _, test := range readAlertTests(t) {
		t.Run(test.Name, func(t *testing.T) {
			series := test.series(t)
			for _, want := range test.Rules {
				i := slices.IndexFunc(rules.Groups[0].Rules,
					func(r rule) bool { return r.Alert == want.Alert })
				if i < 0 {
					t.Fatalf("alerts.yaml has no alert %s", want.Alert)
				}
				got := rules.Groups[0].Rules[i].firing(t, series, duration(t, want.At))
				for _, alerts := range [][]expectedAlert{got, want.Expected} {
					slices.SortFunc(alerts, func(a, b expectedAlert) int {
						return labels.Compare(labels.FromMap(a.Labels), labels.FromMap(b.Labels))
					})
				}
				if len(got)+len(want.Expected) > 0 && !cmp.Equal(want.Expected, got) {
					t.Errorf("%s at %s (-want +got):\n%s", want.Alert, want.At, cmp.Diff(want.Expected, got))
				}
			}
		})
	}
}

// series returns the input as samples.
func (test alertTest) series(t *testing.T) (all samples) {
	t.Helper()
	interval := duration(t, test.Interval)
	for _, input := range test.Input {
		text := input.Series + " " + input.Values
		metric, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(text)
		if err != nil {
			t.Fatal(err)
		}
		s := promql.Series{Metric: metric}
		for i, v := range values {
			if !v.Omitted {
				at := time.Duration(i) * interval
				s.Floats = append(s.Floats, promql.FPoint{T: at.Milliseconds(), F: v.Value})
			}
		}
		all = append(all, s)
	}
	return all
}

// firing returns the alerts of the rule that fire at a time: their expression had a result in each evaluation
// of the duration before it.
func (r rule) firing(t *testing.T, series samples, at time.Duration) (alerts []expectedAlert) {
	t.Helper()
	const interval = time.Minute
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute,
		LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	first := max(0, at-duration(t, r.For))
	query, err := engine.NewRangeQuery(t.Context(), series, nil, r.Expr, time.UnixMilli(first.Milliseconds()),
		time.UnixMilli(at.Milliseconds()), interval)
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	defer query.Close()
	result, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	for _, s := range result {
		if at < duration(t, r.For) || len(s.Floats) != int((at-first)/interval)+1 {
			continue
		}
		alert := expectedAlert{Labels: s.Metric.MatchLabels(false, "__name__").Map(),
			Annotations: map[string]string{}}
		for name, text := range r.Annotations {
			alert.Annotations[name] = expand(t, text, alert.Labels, s.Floats[len(s.Floats)-1].F)
		}
		for name, value := range r.Labels {
			alert.Labels[name] = value
		}
		alerts = append(alerts, alert)
	}
	return alerts
}

// expand replaces labels and the value in the text of an annotation, as Prometheus does.
func expand(t *testing.T, text string, values map[string]string, value float64) string {
	t.Helper()
	out, err := template.NewTemplateExpander(t.Context(), "{{$labels := .Labels}}{{$value := .Value}}"+text, "annotation",
		template.AlertTemplateData(values, nil, "", promql.Sample{F: value}), 0, nil, nil, nil).Expand()
	if err != nil {
		t.Fatalf("the annotation %q: %v", text, err)
	}
	return out
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(d)
}

// samples is a storage of series.
type samples []promql.Series

func (s samples) Querier(_, _ int64) (storage.Querier, error) {
	return querier{storage.NoopQuerier(), s}, nil
}

type querier struct {
	storage.Querier
	all samples
}

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	selected := &selection{}
	for _, s := range q.all {
		if !slices.ContainsFunc(matchers,
			func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			selected.rest = append(selected.rest, s)
		}
	}
	return selected
}

type selection struct {
	current promql.Series
	rest    samples
}

func (s *selection) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *selection) At() storage.Series                { return promql.NewStorageSeries(s.current) }
func (s *selection) Err() error                        { return nil }
func (s *selection) Warnings() annotations.Annotations { return nil }
