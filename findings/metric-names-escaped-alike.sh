#!/usr/bin/env bash
# client_golang v1.25.0 and prometheus/common v0.72.0: a registry takes queue.depth and queue_depth as two metrics, and a.b and a_b as
# two labels of one metric, because names may hold any character. Which names a scraper reads depends on its Accept header: without
# escaping=allow-utf-8 the handler writes both as queue_depth, and both labels as a_b. It answers 200, and the text parser of the same
# project rejects the page, so that no metric of the process is read. Unit tests of the registry see no fault.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func main() {
	registry := prometheus.NewRegistry()
	for _, options := range []prometheus.GaugeOpts{
		{Name: "queue.depth", Help: "h"},
		{Name: "queue_depth", Help: "h"},
		{Name: "labels", Help: "h", ConstLabels: prometheus.Labels{"a.b": "1", "a_b": "2"}},
	} {
		fmt.Println("register", options.Name, registry.Register(prometheus.NewGauge(options)))
	}
	for _, accept := range []string{"text/plain", "text/plain;version=1.0.0;escaping=allow-utf-8"} {
		request := httptest.NewRequest("GET", "/metrics", nil)
		request.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, request)
		fmt.Println("accept", accept, answer.Code)
		for line := range strings.Lines(answer.Body.String()) {
			if !strings.HasPrefix(line, "#") {
				fmt.Print(line)
			}
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		_, err := parser.TextToMetricFamilies(strings.NewReader(answer.Body.String()))
		fmt.Println("parsed:", err)
	}
}
END
go get github.com/prometheus/client_golang@v1.25.0 github.com/prometheus/common@v0.72.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
register queue.depth <nil>
register queue_depth <nil>
register labels <nil>
accept text/plain 200
labels{a_b="1",a_b="2"} 0
queue_depth 0
queue_depth 0
parsed: text format parsing error in line 3: duplicate label names for metric "labels"
accept text/plain;version=1.0.0;escaping=allow-utf-8 200
labels{"a.b"="1",a_b="2"} 0
{"queue.depth"} 0
queue_depth 0
parsed: <nil>
END
