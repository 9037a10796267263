package serve

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/indexers"
)

func (o *verb) metricsServer(servers []*cacheServer) (*localserver.Metrics, error) {
	listener, err := net.Listen("tcp", o.metricsAddrPort.String())
	if err != nil {
		return nil, fmt.Errorf("listen for the metrics: %w", err)
	}
	return &localserver.Metrics{Listener: listener,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// A web page of another site has another host name.
			if _, err := ParseLoopback("", r.Host, ""); err != nil {
				http.Error(w, "read the metrics from a loopback address", http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			// An error means that the client has disconnected.
			_ = writeMetrics(w, readMetrics(servers))
		})}, nil
}

// readMetrics returns the metrics of the clusters and of their configs. With several clusters, each
// series has the label cluster.
func readMetrics(servers []*cacheServer) iter.Seq[indexers.MetricFamily] {
	return func(yield func(indexers.MetricFamily) bool) {
		families := map[string]indexers.MetricFamily{} // of several clusters
		for _, s := range servers {
			add := func(f indexers.MetricFamily) bool {
				if s.Cluster == "" {
					return yield(f)
				}
				for i := range f.Series {
					f.Series[i].Labels = withCluster(f.Series[i].Labels, s.Cluster)
				}
				f.Series = append(families[f.Name].Series, f.Series...)
				families[f.Name] = f
				return true
			}
			indexers.ReadMetrics(s.binding.MetricSources()...)(add)
			if s.configWatcher != nil {
				slices.Values(s.configWatcher.Status().Metrics())(add)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(families)) {
			if !yield(families[name]) {
				return
			}
		}
	}
}

// withCluster adds the label cluster. It renames a label of the config with this name, as Prometheus does.
func withCluster(labels []indexers.MetricLabel, cluster string) []indexers.MetricLabel {
	all := []indexers.MetricLabel{{Name: "cluster", Value: strings.ToValidUTF8(cluster, "\uFFFD")}}
	for _, l := range labels {
		if l.Name == "cluster" {
			l.Name = "exported_cluster"
		}
		all = append(all, l)
	}
	return all
}

var (
	helpEscapes  = strings.NewReplacer("\\", `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
)

// writeMetrics writes metrics in the text format of Prometheus. The command does not link its client.
func writeMetrics(to io.Writer, families iter.Seq[indexers.MetricFamily]) error {
	w := bufio.NewWriter(to)
	for f := range families {
		if len(f.Series) == 0 {
			continue
		}
		kind := "gauge"
		if f.Counter {
			kind = "counter"
		}
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", f.Name, helpEscapes.Replace(f.Help), kind)
		for _, series := range f.Series {
			w.WriteString(f.Name)
			separator := "{"
			for _, l := range series.Labels {
				w.WriteString(separator + l.Name + `="` + labelEscapes.Replace(l.Value) + `"`)
				separator = ","
			}
			if separator == "," {
				w.WriteString("}")
			}
			w.WriteString(" " + strconv.FormatFloat(series.Value, 'g', -1, 64) + "\n")
		}
	}
	return w.Flush()
}
