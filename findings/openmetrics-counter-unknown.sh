#!/usr/bin/env bash
# prometheus/common v0.74.0: a registered counter should be of type counter in each exposition format. In OpenMetrics a counter whose
# name lacks the suffix _total is written with type unknown, without an error and without the suffix. Clients that prefer OpenMetrics, as
# Prometheus does, then see another type than a person who opens the page. A gauge may keep the suffix _total.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

func main() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		prometheus.NewCounter(prometheus.CounterOpts{Name: "restarts", Help: "Restarts."}),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "writes_total", Help: "Writes."}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "jobs_total", Help: "Jobs."}))
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, format := range []expfmt.FormatType{expfmt.TypeTextPlain, expfmt.TypeOpenMetrics} {
		encoder := expfmt.NewEncoder(os.Stdout, expfmt.NewFormat(format))
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				panic(err)
			}
		}
	}
}
END
go get github.com/prometheus/client_golang@v1.25.0 github.com/prometheus/common@v0.74.0 2>/dev/null
go mod tidy 2>/dev/null
go run . | grep -v HELP | tee seen
diff - seen <<'END'
# TYPE jobs_total gauge
jobs_total 0
# TYPE restarts counter
restarts 0
# TYPE writes_total counter
writes_total 0
# TYPE jobs_total gauge
jobs_total 0.0
# TYPE restarts unknown
restarts 0.0
# TYPE writes counter
writes_total 0.0
END
