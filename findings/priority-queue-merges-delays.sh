#!/usr/bin/env bash
# controller-runtime v0.25.2 and client-go v0.37.2: one would expect that the priority queue of a controller keeps the promises of the
# work queue whose interface it implements. It holds one entry for each key, where client-go keeps delayed adds apart. An AddAfter is
# lost silently if the key is already queued, and an Add takes the place of an earlier AddAfter. If an event handler asks for a check
# in an hour, this check never comes when another event arrives first. ShutDown also drops the queued keys: Get reports the end at
# once, where client-go first hands out the rest.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

const delay = time.Second

type queue = workqueue.TypedRateLimitingInterface[string]

// count processes keys until none came for a while and returns their number.
func count(q queue) int {
	got := make(chan string)
	go func() {
		for {
			key, shutdown := q.Get()
			if shutdown {
				close(got)
				return
			}
			q.Done(key)
			got <- key
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-got:
		case <-time.After(3 * delay):
			q.ShutDown()
			return n
		}
	}
}

func main() {
	for name, create := range map[string]func() queue{
		"client-go": func() queue { return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()) },
		"priority":  func() queue { return priorityqueue.New[string]("") },
	} {
		q := create()
		q.Add("key")
		q.AddAfter("key", delay)
		fmt.Printf("%s: Add, then AddAfter: processed %d times\n", name, count(q))
		q = create()
		q.AddAfter("key", delay)
		q.Add("key")
		fmt.Printf("%s: AddAfter, then Add: processed %d times\n", name, count(q))
		q = create()
		for key := range 3 {
			q.Add(fmt.Sprint(key))
		}
		rest := q.Len()
		q.ShutDown()
		n := 0
		for _, shutdown := q.Get(); !shutdown; _, shutdown = q.Get() {
			n++
		}
		fmt.Printf("%s: ShutDown with %d keys queued: Get returns %d\n", name, rest, n)
	}
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/{api,apimachinery,client-go,apiextensions-apiserver}@v0.37.2 2>/dev/null
go run . | sort | tee seen
diff - seen <<'END'
client-go: Add, then AddAfter: processed 2 times
client-go: AddAfter, then Add: processed 2 times
client-go: ShutDown with 3 keys queued: Get returns 3
priority: Add, then AddAfter: processed 1 times
priority: AddAfter, then Add: processed 1 times
priority: ShutDown with 3 keys queued: Get returns 0
END
