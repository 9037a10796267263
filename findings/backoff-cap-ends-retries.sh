#!/usr/bin/env bash
# apimachinery v0.37.2: the field Cap of wait.Backoff does not only bound the delay. The first delay that
# passes the cap also ends the retries, whatever Steps says: 100 steps with a doubled delay and a cap of
# 4 ms make a few calls. ExponentialBackoff without Steps never calls the function and still reports that
# the time ran out.
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

	"k8s.io/apimachinery/pkg/util/wait"
)

func main() {
	for _, backoff := range []wait.Backoff{
		{Duration: time.Millisecond, Factor: 2, Steps: 6},
		{Duration: time.Millisecond, Factor: 2, Steps: 100, Cap: 4 * time.Millisecond},
		{Duration: time.Millisecond, Factor: 10, Steps: 100, Cap: 4 * time.Millisecond},
		{Duration: time.Millisecond, Factor: 2},
	} {
		calls := 0
		err := wait.ExponentialBackoff(backoff, func() (bool, error) {
			calls++
			return false, nil
		})
		fmt.Printf("factor %v, steps %d, cap %v: ", backoff.Factor, backoff.Steps, backoff.Cap)
		fmt.Printf("%d calls, %v\n", calls, err)
	}
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
factor 2, steps 6, cap 0s: 6 calls, timed out waiting for the condition
factor 2, steps 100, cap 4ms: 3 calls, timed out waiting for the condition
factor 10, steps 100, cap 4ms: 1 calls, timed out waiting for the condition
factor 2, steps 0, cap 0s: 0 calls, timed out waiting for the condition
END
