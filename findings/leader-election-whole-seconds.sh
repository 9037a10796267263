#!/usr/bin/env bash
# client-go v0.37.2: one would expect that candidates wait for the LeaseDuration after the last renewal, because its comment says so. The
# record holds it in whole seconds, rounded down. It holds the renewal time in whole seconds too, so that a second renewal within one
# second goes unnoticed. A candidate may take over nearly two seconds early. The options are checked with the exact durations: a
# RenewDeadline of 2.8 s passes for a LeaseDuration of 2.9 s. A leader that lost its connection then still leads when the next one starts.
# With a LeaseDuration of 5 s it stops first.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func elect(leaseDuration time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := fake.NewClientset()
	blueClient := fake.NewClientset()
	var disconnected atomic.Bool
	blueClient.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if disconnected.Load() {
			return true, nil, errors.New("no connection")
		}
		object, err := server.Invokes(action, nil)
		return true, object, err
	})
	happened := make(chan string, 10)
	start := func(name string, client *fake.Clientset) {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "controller"},
				Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: name}},
			LeaseDuration: leaseDuration,
			RenewDeadline: 2800 * time.Millisecond,
			RetryPeriod:   100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { happened <- name + " starts to lead" },
				OnStoppedLeading: func() { happened <- name + " stops" },
			},
		})
		if err != nil {
			panic(err)
		}
		go elector.Run(ctx)
	}
	fmt.Println("lease duration", leaseDuration)
	start("blue", blueClient)
	fmt.Println(" ", <-happened)
	start("red", server)
	for len(server.Actions()) < 30 { // both are at work
		time.Sleep(time.Millisecond)
	}
	disconnected.Store(true)
	fmt.Println(" ", <-happened)
	fmt.Println(" ", <-happened)
}

func main() {
	elect(2900 * time.Millisecond)
	elect(5 * time.Second)
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . 2>/dev/null | tee seen
diff - seen <<'END'
lease duration 2.9s
  blue starts to lead
  red starts to lead
  blue stops
lease duration 5s
  blue starts to lead
  blue stops
  red starts to lead
END
