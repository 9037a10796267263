#!/usr/bin/env bash
# client_golang v1.25.0: Unregister finds a collector by the name and the constant labels of its metrics.
# It removes the registered collector when it gets another one with a different help text and different
# variable labels. The registry keeps the old help and labels nevertheless: a later collector of the same
# name with new labels is rejected for the life of the registry.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

func gauge(help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cached_objects", Help: help}, labels)
}

func main() {
	registry := prometheus.NewRegistry()
	first := gauge("Objects.", "kind")
	first.WithLabelValues("Pod").Set(3)
	fmt.Println("register:", registry.Register(first))
	families, err := registry.Gather()
	fmt.Println("families:", len(families), err)
	fmt.Println("unregister another one:", registry.Unregister(gauge("Other text.", "group", "kind")))
	families, err = registry.Gather()
	fmt.Println("families:", len(families), err)
	fmt.Println("register with new labels: error", registry.Register(gauge("Objects.", "group", "kind")) != nil)
	fmt.Println("register with a new help: error", registry.Register(gauge("All objects.", "kind")) != nil)
	fmt.Println("register with the old ones:", registry.Register(gauge("Objects.", "kind")))
}
END
go get github.com/prometheus/client_golang@v1.25.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
register: <nil>
families: 1 <nil>
unregister another one: true
families: 0 <nil>
register with new labels: error true
register with a new help: error true
register with the old ones: <nil>
END
