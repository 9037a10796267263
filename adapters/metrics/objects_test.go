package metrics

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// widgetMetrics has a binding to the widgets of a server.
type widgetMetrics struct {
	*testing.T
	*server
	ctx     context.Context
	tracker *discovery.Tracker
	binding *bind.Binding
}

func newWidgetMetrics(t *testing.T, config string, widgets ...string) *widgetMetrics {
	t.Helper()
	w := &widgetMetrics{T: t, server: newServer(t), ctx: testContext(t)}
	w.apply(widgets...)
	var err error
	w.tracker, err = discovery.NewTracker(&rest.Config{Host: w.URL, QPS: -1}, discovery.TrackerOptions{})
	must(t, err)
	running, stop := context.WithCancel(w.ctx)
	var tracked sync.WaitGroup
	tracked.Go(func() { _ = w.tracker.Run(running) }) // ended by stop
	t.Cleanup(func() {
		stop()
		tracked.Wait()
	})
	factory := newFactory(t, w.server, dynamicinformer.Options{Types: w.tracker.Types()})
	if w.binding, err = bind.New(factory, w.parse(config), bind.Options{}); err != nil {
		t.Fatal(err)
	}
	must(t, w.tracker.WaitForSync(w.ctx))
	unfollow := w.binding.Follow(w.tracker)
	t.Cleanup(func() {
		unfollow()
		w.binding.Close()
	})
	return w
}

func (w *widgetMetrics) parse(metrics string) *indexers.Config {
	w.Helper()
	config, err := indexers.Parse(indexers.Source{Name: "config.yaml", Data: fmt.Appendf(nil, `
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: widgets}
spec:
  resources:
  - name: widgets
    match: {group: example.com, resource: widgets}
    keep: {paths: []}
    indexes: [{name: lit_color, path: .spec.color, when: '@.spec.lit == true'}]
    metrics:
%s`, metrics)})
	if err != nil {
		w.Fatal(err)
	}
	return config
}

// apply stores widgets.
func (w *widgetMetrics) apply(widgets ...string) {
	w.Helper()
	for _, text := range widgets {
		applyJSON(w, w.storage, []byte(text))
	}
}

func widget(name, color string, watts int, lit bool) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget",`+
		`"metadata":{"namespace":"home","name":%q},"spec":{"color":"%s","watts":%d,"lit":%t},"dropped":"x"}`,
		name, color, watts, lit)
}

// eventually waits until the collector returns exactly these series of the metrics that the config declares,
// and of crdcache_stale.
func (w *widgetMetrics) eventually(want string) {
	w.Helper()
	names := []string{"crdcache_stale"}
	for _, m := range w.binding.Config().Resources[0].Metrics {
		names = append(names, m.Name)
	}
	collector := NewObjectCollector(w.binding.MetricSources)
	for {
		err := testutil.CollectAndCompare(collector, strings.NewReader(want), names...)
		if err == nil {
			return
		}
		select {
		case <-w.ctx.Done():
			w.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

const widgetConfig = `
    - name: widgets
      help: Number of widgets.
      labels: [{name: namespace, path: .metadata.namespace}, {name: color, path: .spec.color}]
    - name: widget_watts
      help: Power of a widget.
      labels: [{name: name, path: .metadata.name}]
      value: {path: .spec.watts}
    - {name: lit_widgets, help: Number of widgets that are lit., index: lit_color}
`

// TestObjectMetrics verifies the metrics of a config after changes of objects, of the config and of the type.
func TestObjectMetrics(t *testing.T) {
	w := newWidgetMetrics(t, widgetConfig, widget("a", "red", 40, true), widget("b", `\u0000\"\\\n/`, 60, false))
	w.apply(widget("c", "red", 5, false))
	const help = "# HELP widgets Number of widgets.\n# TYPE widgets gauge\n"
	const staleHelp = "# HELP crdcache_stale 1 if the metrics of a type can be behind the API server " +
		"or are missing, otherwise 0.\n" +
		"# TYPE crdcache_stale gauge\n" + `crdcache_stale{group="example.com",resource="widgets",version="v1"} `
	w.eventually(staleHelp + "0\n" + help + `widgets{color="` + "\x00" + `\"\\\n/",namespace="home"} 1
widgets{color="red",namespace="home"} 2
# HELP widget_watts Power of a widget.
# TYPE widget_watts gauge
widget_watts{name="a"} 40
widget_watts{name="b"} 60
widget_watts{name="c"} 5
# HELP lit_widgets Number of widgets that are lit.
# TYPE lit_widgets gauge
lit_widgets{lit_color="red"} 1
`)
	problems, err := testutil.CollectAndLint(NewObjectCollector(w.binding.MetricSources))
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if err := w.binding.Apply(w.parse(`
    - {name: widgets, help: Number of widgets., labels: [{name: ns, path: .metadata.namespace}]}
`)); err != nil {
		t.Fatal(err)
	}
	w.eventually(staleHelp + "0\n" + help + `widgets{ns="home"} 3` + "\n")
	// The series end with the type, and return with its next installation.
	for _, color := range []string{"a\xff", strings.Repeat("b", 10_000)} {
		w.storage.RemoveType(widgets.GroupResource())
		w.tracker.Refresh()
		w.eventually(staleHelp + "1\n")
		must(t, w.binding.Apply(w.parse(widgetConfig)))
		w.install(t, "widgets", "Widget")
		w.tracker.Refresh()
		w.apply(widget("d", color, 7, true))
		text, lit := strings.ToValidUTF8(color, "\uFFFD"), ""
		if len(color) <= 1024 { // the limit of values of an index
			lit = "# HELP lit_widgets Number of widgets that are lit.\n# TYPE lit_widgets gauge\n" +
				`lit_widgets{lit_color="` + text + `"} 1` + "\n"
		}
		w.eventually(staleHelp + "0\n" + help + `widgets{color="` + text + `",namespace="home"} 1
# HELP widget_watts Power of a widget.
# TYPE widget_watts gauge
widget_watts{name="d"} 7
` + lit)
	}
}
