#!/usr/bin/env bash
# client-go v0.37.2: one would expect that the provider given to cache.SetReflectorMetricsProvider receives the counts and
# durations of lists and watches, because the function is exported and documented, and SetInformerMetricsProvider works. Nothing
# reads it: a reflector lists and watches, and creates no metric.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

var created int

type provider struct{}

func count() provider                                                { created++; return provider{} }
func (provider) Inc()                                                {}
func (provider) Observe(float64)                                     {}
func (provider) Set(float64)                                         {}
func (provider) NewListsMetric(string) cache.CounterMetric           { return count() }
func (provider) NewListDurationMetric(string) cache.SummaryMetric    { return count() }
func (provider) NewItemsInListMetric(string) cache.SummaryMetric     { return count() }
func (provider) NewWatchesMetric(string) cache.CounterMetric         { return count() }
func (provider) NewShortWatchesMetric(string) cache.CounterMetric    { return count() }
func (provider) NewWatchDurationMetric(string) cache.SummaryMetric   { return count() }
func (provider) NewItemsInWatchMetric(string) cache.SummaryMetric    { return count() }
func (provider) NewLastResourceVersionMetric(string) cache.GaugeMetric { return count() }

func main() {
	cache.SetReflectorMetricsProvider(provider{})
	ctx, cancel := context.WithCancel(context.Background())
	lists, watches := 0, 0
	source := &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			lists++
			return &v1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, fmt.Errorf("no watch-lists")
			}
			watches++
			cancel()
			return watch.NewFake(), nil
		},
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	cache.NewReflectorWithOptions(source, &v1.ConfigMap{}, store, cache.ReflectorOptions{Name: "a"}).RunWithContext(ctx)
	fmt.Printf("lists %t, watches %t, metrics created %d\n", lists > 0, watches > 0, created)
}
END
go get k8s.io/client-go@v0.37.2 k8s.io/api@v0.37.2 k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . 2>log | tee seen || { cat log; exit 1; }
diff - seen <<'END'
lists true, watches true, metrics created 0
END
