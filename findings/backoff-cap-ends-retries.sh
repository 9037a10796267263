#!/usr/bin/env bash
# apimachinery v0.37.2: the Cap of wait.Backoff also ends the retries. As soon as a pause would exceed it, no tries are left, whatever
# Steps says: eight steps from 1 ms with a cap of 4 ms are three tries. Without a cap, or with one that is never reached, they are
# eight. A cap that somebody adds to keep pauses short thus makes a client give up early. Backoff.DelayFunc differs: it goes on with
# pauses of the cap.
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
	for _, limit := range []time.Duration{0, 4 * time.Millisecond, time.Hour} {
		backoff := wait.Backoff{Duration: time.Millisecond, Factor: 2, Steps: 8, Cap: limit}
		tries := 0
		err := wait.ExponentialBackoff(backoff, func() (bool, error) { tries++; return false, nil })
		fmt.Printf("cap %s: %d tries, interrupted: %t\n", limit, tries, wait.Interrupted(err))
		delay := backoff.DelayFunc()
		fmt.Print("pauses of DelayFunc:")
		for range 8 {
			fmt.Print(" ", delay())
		}
		fmt.Println()
	}
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
cap 0s: 8 tries, interrupted: true
pauses of DelayFunc: 1ms 2ms 4ms 8ms 16ms 32ms 64ms 128ms
cap 4ms: 3 tries, interrupted: true
pauses of DelayFunc: 1ms 2ms 4ms 4ms 4ms 4ms 4ms 4ms
cap 1h0m0s: 8 tries, interrupted: true
pauses of DelayFunc: 1ms 2ms 4ms 8ms 16ms 32ms 64ms 128ms
END
