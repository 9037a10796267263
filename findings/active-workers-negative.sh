#!/usr/bin/env bash
# controller-runtime v0.25.2: one would expect that controller_runtime_active_workers counts the running reconciles of all controllers with
# one name, as controller_runtime_reconcile_total does: SkipNameValidation permits such controllers, and programs that create controllers at
# run time need it, because the names of ended controllers stay taken. But each controller sets the gauge to 0 when it starts. If one starts
# while another reconciles, the gauge is 0, and -1 after that reconcile.
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
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1 "k8s.io/api/core/v1"
)

func gauge() (value float64) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if family.GetName() == "controller_runtime_active_workers" {
			value = family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return value
}

func await(condition func() bool) {
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		panic(err)
	}
}

// start starts a controller, which reconciles one ConfigMap and calls run.
func start(run func()) {
	events := make(chan event.GenericEvent, 1)
	c, err := controller.NewUnmanaged("copies", controller.Options{SkipNameValidation: new(true),
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			run()
			return reconcile.Result{}, nil
		})})
	if err == nil {
		err = c.Watch(source.Channel(events, &handler.EnqueueRequestForObject{}))
	}
	if err != nil {
		panic(err)
	}
	var object client.Object = &corev1.ConfigMap{}
	object.SetName("a")
	events <- event.GenericEvent{Object: object}
	go func() { _ = c.Start(context.Background()) }()
}

func main() {
	running, end := make(chan struct{}), make(chan struct{})
	start(func() { close(running); <-end })
	<-running
	fmt.Println("one controller reconciles:", gauge())
	second := make(chan struct{})
	start(func() { close(second) })
	<-second
	await(func() bool { return gauge() == 0 })
	fmt.Println("another one has started and reconciled, the first still reconciles:", gauge())
	close(end)
	await(func() bool { return gauge() < 0 })
	fmt.Println("the first has reconciled:", gauge())
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/api@v0.37.2 k8s.io/client-go@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
go run . 2>/dev/null | tee seen
diff - seen <<'END'
one controller reconciles: 1
another one has started and reconciled, the first still reconciles: 0
the first has reconciled: -1
END
