package server

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/crdcache/crdcache/adapters/metrics"
)

// typeChecksPath is the path of the status of each type. It requires authorization, unlike the plain health
// checks.
const typeChecksPath = "/readyz/types"

// readyzCheck returns a check that fails until every type has synced or is known to be unreadable. The
// reasons are logged, and served at typeChecksPath.
func (c *typeCache) readyzCheck() healthz.HealthChecker {
	return healthz.NamedCheck("caches", func(*http.Request) error { return c.readyError() })
}

// serveTypeChecks writes a line for each type, in the format of kube-apiserver's health checks.
func (c *typeCache) serveTypeChecks(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err := c.readyError()
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	for _, condition := range c.conditions() {
		sign := "-"
		if condition.isMet {
			sign = "+"
		}
		// An error means that the client has disconnected.
		fmt.Fprintf(w, "[%s]%s %s\n", sign, condition.name, condition.text)
	}
	if err != nil {
		fmt.Fprintf(w, "not ready: %v\n", err)
		return
	}
	fmt.Fprintln(w, "ready")
}

// objectMetricsPath is the path of the metrics that index configs declare. It should be scraped through the
// Service instead of from each replica, because all replicas have the same series. The right to get the path
// is a right to read the values of all cached objects in these metrics.
const objectMetricsPath = "/metrics/objects"

// objectMetricsHandler serves the metrics that index configs declare.
func (c *typeCache) objectMetricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewObjectCollector(c.binding.MetricSources)) // unchecked, cannot fail
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// metricsHandler serves the metrics of the generic server, the process, and the caches.
func (c *typeCache) metricsHandler(l *limits) (http.Handler, error) {
	apimetrics.Register()
	registry := prometheus.NewRegistry()
	if c.indexConfigWatcher != nil {
		for i, metric := range c.indexConfigWatcher.Status().Metrics() {
			registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metric.Name,
				Help: metric.Help},
				func() float64 { return c.indexConfigWatcher.Status().Metrics()[i].Series[0].Value }))
		}
	}
	for _, collector := range []prometheus.Collector{
		metrics.NewCollector(c.factory, metrics.Options{OmitEmpty: true}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "crdcached_watches", Help: "Watches that are being served.",
		}, func() float64 { watches, _ := l.countUsage(); return float64(watches) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "crdcached_accounts", Help: "Users whose requests are being counted.",
		}, func() float64 { _, accounts := l.countUsage(); return float64(accounts) }),
		l.rejected,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(prometheus.Gatherers{legacyregistry.DefaultGatherer, registry},
		promhttp.HandlerOpts{MaxRequestsInFlight: 4}), nil
}
