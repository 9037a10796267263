package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/crdcache/crdcache/metrics"
)

// metricsHandler serves the metrics of the generic server, the process, and the caches.
func (c *cache) metricsHandler(l *limits) (http.Handler, error) {
	apimetrics.Register()
	own := prometheus.NewRegistry()
	for _, collector := range []prometheus.Collector{
		metrics.NewCollector(c.factory),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "crdcached_watches", Help: "Watches that are being served.",
		}, func() float64 { watches, _ := l.counts(); return float64(watches) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "crdcached_accounts", Help: "Users whose requests are being counted.",
		}, func() float64 { _, accounts := l.counts(); return float64(accounts) }),
		l.refused,
	} {
		if err := own.Register(collector); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(prometheus.Gatherers{legacyregistry.DefaultGatherer, own},
		promhttp.HandlerOpts{MaxRequestsInFlight: 4}), nil
}
